// Load on several nodes at once: reports that are sent until they are acknowledged, signed readings of what was acknowledged, and
// probes. Everything begins when it is due, however long what began before takes, and every answer is held against what was sent.
import { Agent, request } from 'node:http';
import { type FeedId, signRequest, toReportJson } from '@sealpost/protocol';
import type { Server, World } from '../real-program.ts';
import type { SignedReports } from '../signed-reports.ts';

/** What is asked of nodes. */
export type Kind = 'latest' | 'at' | 'page' | 'bulk' | 'ingest' | 'livez' | 'readyz';

/** After this nothing is waited for any more; the promised bounds are far below. */
const givenUpMs = 20_000;
/** Before what was not acknowledged is sent again. */
const againAfterMs = 200;
/** Parts of a second in which reports are sent, each in one request. */
const partsPerSecond = 10;
const bulkStreams = 10;
const pageLimit = 10;
const probesPerSecond = 4;

type Answer = { readonly status: number | 'failed' | 'none'; readonly body: string };
type Asked = { readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: string };

const agent = new Agent({ keepAlive: true });

const ask = (url: string, { method, headers, body }: Asked): Promise<Answer> =>
  new Promise((resolve) => {
    const asked = request(url, { method, headers, agent, signal: AbortSignal.timeout(givenUpMs) }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      response.on('error', () => resolve({ status: 'failed', body: '' }));
    });
    asked.on('error', ({ name }) => resolve({ status: name === 'AbortError' ? 'none' : 'failed', body: '' }));
    asked.end(body);
  });

/** What must not be without a good answer for long. */
const seriesNames = ['latest', 'history', 'write', 'livez', 'readyz'] as const;
type Series = (typeof seriesNames)[number];

/** Counts answers, and measures what is longest: until one came, and without a good one at any of the nodes. */
const createTally = (nodes: number) => {
  const answers: Record<string, Record<string, number>> = {};
  const slowestMs: Record<string, number> = {};
  const beyondBound: Record<string, number> = {};
  let begun = performance.now();
  const goodAt = new Map<string, number>();
  const withoutMs = new Map<string, number>();
  const place = (series: Series, node: number) => `${series} ${node}`;
  const endOf = (name: string, now: number): void => {
    const gap = now - (goodAt.get(name) ?? begun);
    withoutMs.set(name, Math.max(withoutMs.get(name) ?? 0, gap));
    goodAt.set(name, now);
  };
  return {
    answers,
    slowestMs,
    beyondBound,
    count: (kind: Kind, status: Answer['status'], tookMs: number, boundMs: number): void => {
      const counts = (answers[kind] ??= {});
      counts[status] = (counts[status] ?? 0) + 1;
      slowestMs[kind] = Math.round(Math.max(slowestMs[kind] ?? 0, tookMs));
      if (tookMs > boundMs) beyondBound[kind] = (beyondBound[kind] ?? 0) + 1;
    },
    /** Gaps are counted from here on. */
    begin: (): void => {
      begun = performance.now();
      for (const times of [goodAt, withoutMs]) times.clear();
    },
    /** Something went well at a node: what happens between two of these is a gap. */
    good: (series: Series, node: number): void => endOf(place(series, node), performance.now()),
    /** The longest gap of each series at any node, from the begin until now. */
    longestWithoutMs: (): Record<Series, number> => {
      const longest = seriesNames.map((series) => {
        const names = Array.from({ length: nodes }, (_, node) => place(series, node));
        for (const name of names) endOf(name, performance.now());
        return [series, Math.round(Math.max(...names.map((name) => withoutMs.get(name) ?? 0)))];
      });
      return Object.fromEntries(longest) as Record<Series, number>; // each by its own name
    },
  };
};

type Tally = ReturnType<typeof createTally>;

/** Reports of one second, sent together. */
type Sending = { readonly second: number; readonly feedIds: readonly FeedId[] };

export type LoadParts = {
  readonly nodes: readonly Server[];
  readonly world: World;
  readonly report: SignedReports['report'];
  /** Each has a report a second. */
  readonly streams: readonly FeedId[];
  readonly readsPerSecond: number;
  readonly token: string;
  /** How long each may take until it is answered, whatever the answer. */
  readonly boundsMs: Readonly<Record<Kind, number>>;
};

type Meter = LoadParts & { readonly tally: Tally };

const measured = async (
  { nodes, tally, boundsMs }: Meter,
  kind: Kind,
  node: number,
  path: string,
  asked: Asked,
): Promise<Answer> => {
  const { url, opsUrl } = nodes[node] as Server; // by its index
  const began = performance.now();
  const answer = await ask(`${kind === 'ingest' || kind.endsWith('z') ? opsUrl : url}${path}`, asked);
  if (process.env.FO_TRACE && (answer.status !== 200 || performance.now() - began > 700)) // DEBUG
    console.error(`T ${Date.now() / 1000} ${kind} ${node} ${answer.status} ${Math.round(performance.now() - began)} ${answer.status === 200 ? '' : answer.body.slice(0, 130).trim()}`);
  tally.count(kind, answer.status, performance.now() - began, boundsMs[kind]);
  return answer;
};

/** What was acknowledged: the report of each stream and second as it was sent. */
export type Acknowledged = ReadonlyMap<FeedId, ReadonlyMap<number, string>>;

/** Sends reports, each until it is acknowledged, to one node after the other. */
const createSender = (meter: Meter, floors: readonly Map<FeedId, number>[]) => {
  const { nodes, report, streams, tally, token } = meter;
  const acknowledged = new Map<FeedId, Map<number, string>>(streams.map((feedId) => [feedId, new Map()]));
  const complete: Sending[] = [];
  const counts = { sent: 0, acknowledged: 0, refused: 0 };
  const note = (node: number, feedId: FeedId, second: number, fullReport: string): void => {
    acknowledged.get(feedId)?.set(second, fullReport);
    floors[node]?.set(feedId, Math.max(floors[node].get(feedId) ?? 0, second));
    counts.acknowledged += 1;
    tally.good('write', node);
  };
  const send = async (sending: Sending, first: number, isOver: () => boolean): Promise<void> => {
    const { second, feedIds } = sending;
    const waiting = new Map(
      feedIds.map((feedId) => {
        const one = report(feedId, second, second);
        return [feedId, toReportJson(feedId, one, `0x${Buffer.from(one.fullReport).toString('hex')}`)] as const;
      }),
    );
    counts.sent += waiting.size;
    for (let node = first; waiting.size > 0; node = (node + 1) % nodes.length) {
      const lines = [...waiting.values()];
      const { status, body } = await measured(meter, 'ingest', node, '/ingest', {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
        body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
      });
      for (const { line, result } of status === 200 ? parseResults(body) : []) {
        const { feedID, fullReport } = lines[line - 1] as (typeof lines)[number]; // numbered as they were sent
        if (!waiting.delete(feedID as FeedId)) continue;
        if (result === 'refused') counts.refused += 1;
        else note(node, feedID as FeedId, second, fullReport);
      }
      if (waiting.size > 0 && isOver()) return;
      if (waiting.size > 0) await new Promise((resolve) => setTimeout(resolve, againAfterMs));
    }
    complete.push(sending);
  };
  return { acknowledged, complete, counts, send };
};

// A store that fails in the middle ends the answer with a line that has no result.
const parseResults = (body: string): readonly { readonly line: number; readonly result: string }[] =>
  body
    .split('\n')
    .filter((line) => line.includes('"result"'))
    .map((line) => JSON.parse(line));

type ReportAnswer = { readonly observationsTimestamp: number; readonly fullReport: string };

/** Readings by turns: of ten, four of `latest` and six of history, whose answer is known. */
const createReader = (
  meter: Meter,
  floors: readonly Map<FeedId, number>[],
  { acknowledged, complete }: ReturnType<typeof createSender>,
) => {
  const { nodes, world, streams, tally } = meter;
  const counts = { latestWentBack: 0, latestBehindOtherNode: 0, wrong: 0 };
  const get = async (kind: Kind, node: number, path: string): Promise<Answer> => {
    const target = `/api/v1/reports${path}`;
    const { userId, secret } = world;
    const headers = { ...signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret) };
    return measured(meter, kind, node, target, { method: 'GET', headers });
  };
  const readLatest = async (node: number, feedId: FeedId): Promise<void> => {
    const [own = 0, ...others] = [node, ...nodes.keys()].map((n) => floors[n]?.get(feedId) ?? 0);
    const { status, body } = await get('latest', node, `/latest?feedID=${feedId}`);
    if (status !== 200) return;
    tally.good('latest', node);
    const newest = (JSON.parse(body) as { report: ReportAnswer }).report.observationsTimestamp;
    if (newest < own) counts.latestWentBack += 1;
    else if (newest < Math.max(...others)) counts.latestBehindOtherNode += 1;
    floors[node]?.set(feedId, Math.max(floors[node].get(feedId) ?? 0, newest));
  };
  const readHistory = async (
    kind: Kind,
    node: number,
    path: string,
    expected: readonly (string | undefined)[],
    reportsOf: (body: string) => readonly ReportAnswer[],
  ): Promise<void> => {
    const { status, body } = await get(kind, node, path);
    if (status === 503 || typeof status === 'string') return;
    const isRight = status === 200 && expected.every((text, i) => reportsOf(body)[i]?.fullReport === text);
    if (isRight) tally.good('history', node);
    else counts.wrong += 1;
  };
  const oneOf = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T; // never asked of an empty one
  const read = (i: number): Promise<void> => {
    const [turn, node] = [i % 10, Math.floor(i / 10) % nodes.length];
    if (turn < 4) return readLatest(node, oneOf(streams));
    const { second, feedIds } = oneOf(complete);
    const feedId = oneOf(feedIds);
    const textOf = (id: FeedId) => acknowledged.get(id)?.get(second);
    const listOf = (body: string) => (JSON.parse(body) as { reports: ReportAnswer[] }).reports;
    if (turn < 7)
      return readHistory('at', node, `?feedID=${feedId}&timestamp=${second}`, [textOf(feedId)], (body) => [
        (JSON.parse(body) as { report: ReportAnswer }).report,
      ]);
    if (turn < 9) {
      const page = `/page?feedID=${feedId}&startTimestamp=${second}&limit=${pageLimit}`;
      return readHistory('page', node, page, [textOf(feedId)], listOf);
    }
    const several = feedIds.slice(0, bulkStreams);
    const bulk = `/bulk?feedIDs=${several.join(',')}&timestamp=${second}`;
    return readHistory('bulk', node, bulk, several.map(textOf), listOf);
  };
  return { counts, read };
};

/** Calls so many times a second until told to stop: what is due and was not done is made good. Resolves when all calls have. */
const paced = async (perSecond: number, isOver: () => boolean, act: (i: number) => Promise<void>): Promise<void> => {
  const begun = performance.now();
  const underWay: Promise<void>[] = [];
  for (let done = 0; !isOver(); ) {
    const due = ((performance.now() - begun) * perSecond) / 1_000;
    for (; done < due; done++) underWay.push(act(done));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await Promise.all(underWay);
};

export type Load = {
  readonly tally: Pick<Tally, 'answers' | 'slowestMs' | 'beyondBound'>;
  readonly acknowledged: Acknowledged;
  readonly counts: () => {
    readonly sent: number;
    readonly acknowledged: number;
    readonly refused: number;
    readonly latestWentBack: number;
    readonly latestBehindOtherNode: number;
    readonly wrong: number;
  };
  /**
   * No more is begun; resolves when everything under way has ended, with the longest gaps until then. What is not acknowledged then
   * never was.
   */
  readonly stop: () => Promise<ReturnType<Tally['longestWithoutMs']>>;
};

/** Begins once every node has acknowledged something. */
export const startLoad = async (parts: LoadParts): Promise<Load> => {
  const { nodes, streams, readsPerSecond } = parts;
  const meter: Meter = { ...parts, tally: createTally(nodes.length) };
  const floors = nodes.map(() => new Map<FeedId, number>());
  const sender = createSender(meter, floors);
  const reader = createReader(meter, floors, sender);
  let over = false;
  const isOver = () => over;
  const perPart = Math.ceil(streams.length / partsPerSecond);
  const firstSecond = Math.floor(Date.now() / 1_000);
  const sendPart = (i: number): Promise<void> => {
    const part = i % partsPerSecond;
    const feedIds = streams.slice(part * perPart, (part + 1) * perPart);
    const seconds = Math.floor(i / partsPerSecond);
    // A stream goes through another node every second.
    return sender.send({ second: firstSecond + seconds, feedIds }, (i + seconds) % nodes.length, isOver);
  };
  for (const node of nodes.keys())
    await sender.send({ second: firstSecond - nodes.length + node, feedIds: streams }, node, isOver);
  meter.tally.begin();
  const running = [
    paced(partsPerSecond, isOver, sendPart),
    paced(readsPerSecond, isOver, reader.read),
    paced(probesPerSecond * nodes.length, isOver, async (i) => {
      for (const kind of ['livez', 'readyz'] as const) {
        const { status } = await measured(meter, kind, i % nodes.length, `/${kind}`, { method: 'GET', headers: {} });
        if (status === 200) meter.tally.good(kind, i % nodes.length);
      }
    }),
  ];
  return {
    tally: meter.tally,
    acknowledged: sender.acknowledged,
    counts: () => ({ ...sender.counts, ...reader.counts }),
    stop: async () => {
      over = true;
      const longest = meter.tally.longestWithoutMs();
      await Promise.all(running);
      agent.destroy();
      return longest;
    },
  };
};
