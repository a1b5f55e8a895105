// Load on several nodes at once: reports that are sent until they are acknowledged, signed readings of what was acknowledged, and
// probes. Everything begins when it is due, however long what began before takes, and every answer is held against what was sent.
import { Agent, request } from 'node:http';
import { type FeedId, signRequest, toReportJson } from '@sealpost/protocol';
import type { Server, World } from '../support/real-program.ts';
import type { SignedReports } from '../support/signed-reports.ts';

/** What is asked of nodes. */
export type Kind = 'latest' | 'at' | 'page' | 'bulk' | 'ingest' | 'livez' | 'readyz';

/** After this nothing is waited for any more; the promised bounds are far below. */
const givenUpMs = 20_000;
/** Before what was not acknowledged is sent again. */
const againAfterMs = 200;
/** Parts of a second in which reports are sent, each in one request. */
const partsPerSecond = 10;
/** Reports in one request, and requests under way to one node. */
const [linesMax, requestsMax] = [256, 2];
const bulkStreams = 10;
const pageLimit = 10;
const probesPerSecond = 4;
/** Wrong answers that are shown, beside their number. */
const shownMax = 5;

export type Answer = { readonly status: number | 'failed' | 'none'; readonly body: string };
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
    asked.on('error', ({ name, code }: NodeJS.ErrnoException) => {
      // A connection that was closed for idleness while this was sent: any client tries again.
      if (asked.reusedSocket && code === 'ECONNRESET') resolve(ask(url, { method, headers, ...(body && { body }) }));
      else resolve({ status: name === 'AbortError' ? 'none' : 'failed', body: '' });
    });
    asked.end(body);
  });

const addOne = (counts: Record<string, number>, name: string | number): void => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** What must not be without a good answer for long. */
const seriesNames = ['latest', 'history', 'write', 'livez', 'readyz'] as const;
type Series = (typeof seriesNames)[number];

/** Counts answers, and measures what is longest: until one came, and without a good one at any of the nodes. */
const createTally = (nodes: number) => {
  const answers: Record<string, Record<string, number>> = {};
  const slowestMs: Record<string, number> = {};
  const beyondBound: Record<string, number> = {};
  const failedOnceSettled: Record<string, number> = {};
  let isSettled = false;
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
    failedOnceSettled,
    /** From here on nothing is expected to fail. */
    settle: (): void => {
      isSettled = true;
    },
    count: (kind: Kind, status: Answer['status'], tookMs: number, boundMs: number): void => {
      answers[kind] ??= {};
      addOne(answers[kind], status);
      slowestMs[kind] = Math.round(Math.max(slowestMs[kind] ?? 0, tookMs));
      if (tookMs > boundMs) addOne(beyondBound, kind);
      if (isSettled && status !== 200) addOne(failedOnceSettled, kind);
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
type Sending = {
  readonly second: number;
  readonly feedIds: readonly FeedId[];
  /** When it was handed over, before it was sent for the first time. */
  readonly offeredMs: number;
  left: number;
};

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
  /** A report is sent only once the one before it of its stream is acknowledged: so none is late. */
  readonly inOrder?: boolean;
  /** Called with each answer but 200; what it is called with is not counted as wrong. */
  readonly onFailure?: (kind: Kind, node: number, answer: Answer) => void;
};

type Meter = LoadParts & { readonly tally: Tally };

const measured = async (
  { nodes, tally, boundsMs, onFailure }: Meter,
  kind: Kind,
  node: number,
  path: string,
  asked: Asked,
): Promise<Answer> => {
  const { url, opsUrl } = nodes[node] as Server; // by its index
  const began = performance.now();
  const answer = await ask(`${kind === 'ingest' || kind.endsWith('z') ? opsUrl : url}${path}`, asked);
  tally.count(kind, answer.status, performance.now() - began, boundsMs[kind]);
  if (answer.status !== 200) onFailure?.(kind, node, answer);
  return answer;
};

/** What was acknowledged: the report of each stream and second as it was sent. */
export type Acknowledged = ReadonlyMap<FeedId, ReadonlyMap<number, string>>;

/** A report on its way. */
type Line = { readonly feedId: FeedId; readonly text: string; readonly fullReport: string; readonly sending: Sending };

/** Lines for nodes. In order, a stream has one line in the queues at a time, and the rest wait for it to be settled. */
const createQueues = (nodes: number, inOrder: boolean) => {
  const queues = Array.from({ length: nodes }, (): Line[] => []);
  const queueOf = (node: number) => queues[node % nodes] as Line[]; // one each
  const waiting = new Map<FeedId, { readonly line: Line; readonly node: number }[]>();
  return {
    of: queueOf,
    add: (line: Line, node: number): void => {
      const before = waiting.get(line.feedId);
      if (inOrder && before !== undefined) before.push({ line, node });
      else {
        queueOf(node).push(line);
        waiting.set(line.feedId, []);
      }
    },
    settled: ({ feedId }: Line): void => {
      const next = waiting.get(feedId)?.shift();
      if (next === undefined) waiting.delete(feedId);
      else queueOf(next.node).push(next.line);
    },
    /** Whether no line is on its way. */
    isEmpty: (): boolean => (inOrder ? waiting.size === 0 : true),
  };
};

/** Sends reports, each until it is acknowledged: what one node does not take goes to the next, a few requests at a time. */
const createSender = (meter: Meter, floors: readonly Map<FeedId, number>[]) => {
  const { nodes, report, streams, tally, token, inOrder = false } = meter;
  const acknowledged = new Map<FeedId, Map<number, string>>(streams.map((feedId) => [feedId, new Map()]));
  const times = new Map<FeedId, Map<number, { readonly offeredMs: number; readonly acknowledgedMs: number }>>(
    streams.map((feedId) => [feedId, new Map()]),
  );
  const complete: Sending[] = [];
  const counts = { sent: 0, acknowledged: 0, refused: 0 };
  const queues = createQueues(nodes.length, inOrder);
  let isBrokenOff = false;
  const settle = (line: Line, node: number, result: string): void => {
    const { feedId, fullReport, sending } = line;
    queues.settled(line);
    if (result === 'refused') {
      counts.refused += 1;
      return;
    }
    counts.acknowledged += 1;
    acknowledged.get(feedId)?.set(sending.second, fullReport);
    times.get(feedId)?.set(sending.second, { offeredMs: sending.offeredMs, acknowledgedMs: performance.now() });
    floors[node]?.set(feedId, Math.max(floors[node].get(feedId) ?? 0, sending.second));
    tally.good('write', node);
    sending.left -= 1;
    if (sending.left === 0) complete.push(sending);
  };
  /** Tells whether all of the lines were settled. */
  const post = async (lines: readonly Line[], node: number): Promise<boolean> => {
    const { status, body } = await measured(meter, 'ingest', node, '/ingest', {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: lines.map(({ text }) => text).join(''),
    });
    const results = new Map(status === 200 ? parseResults(body).map(({ line, result }) => [line, result]) : []);
    const left = lines.filter((line, i) => {
      const result = results.get(i + 1);
      if (result !== undefined) settle(line, node, result);
      return result === undefined;
    });
    queues.of(node + 1).unshift(...left);
    return left.length === 0;
  };
  return {
    acknowledged,
    complete,
    counts,
    isStoredBefore: (feedId: FeedId, second: number, other: number): boolean => {
      const [{ acknowledgedMs } = { acknowledgedMs: Infinity }, { offeredMs } = { offeredMs: Infinity }] = [
        times.get(feedId)?.get(second),
        times.get(feedId)?.get(other),
      ];
      return acknowledgedMs < offeredMs;
    },
    /** Makes a report of each stream and hands it to a node's senders. */
    offer: (second: number, feedIds: readonly FeedId[], node: number): void => {
      const sending = { second, feedIds, offeredMs: performance.now(), left: feedIds.length };
      for (const feedId of feedIds) {
        const one = report(feedId, second, second);
        const fullReport = `0x${Buffer.from(one.fullReport).toString('hex')}` as const;
        const text = `${JSON.stringify(toReportJson(feedId, one, fullReport))}\n`;
        queues.add({ feedId, text, fullReport, sending }, node);
        counts.sent += 1;
      }
    },
    /** Sends what there is until it is over and nothing is left, or no longer taken. */
    run: async (node: number, isOver: () => boolean): Promise<void> => {
      for (;;) {
        const lines = queues.of(node).splice(0, linesMax);
        if (lines.length === 0 && isOver() && (queues.isEmpty() || isBrokenOff)) return;
        const isSettled = lines.length > 0 && (await post(lines, node));
        if (lines.length > 0 && !isSettled && isOver()) {
          isBrokenOff = true;
          return;
        }
        if (!isSettled) await new Promise((resolve) => setTimeout(resolve, lines.length === 0 ? 5 : againAfterMs));
      }
    },
  };
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
  const { nodes, world, streams, tally, onFailure } = meter;
  const counts = { latestWentBack: 0, latestBehindOtherNode: 0, wrong: 0, wrongOnes: [] as string[] };
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
    if (status === 503 || typeof status === 'string' || (onFailure !== undefined && status !== 200)) return;
    const isRight = status === 200 && expected.every((text, i) => reportsOf(body)[i]?.fullReport === text);
    if (isRight) return tally.good('history', node);
    counts.wrong += 1;
    if (counts.wrongOnes.length < shownMax) counts.wrongOnes.push(`${path}: ${status} ${body.slice(0, 300)}`);
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

/** Calls so many times a second until told to stop; what is due and was not done is made good, a few calls at a time. */
const paced = async (perSecond: number, isOver: () => boolean, act: (i: number) => unknown): Promise<void> => {
  const begun = performance.now();
  const burst = Math.ceil(perSecond / 20);
  const underWay = new Set<Promise<unknown>>();
  const begin = (i: number): void => {
    const acting = Promise.resolve(act(i)).finally(() => underWay.delete(acting));
    underWay.add(acting);
  };
  for (let done = 0; !isOver(); ) {
    const due = Math.min(done + burst, ((performance.now() - begun) * perSecond) / 1_000);
    for (; done < due; done++) begin(done);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await Promise.all(underWay);
};

export type Load = {
  readonly tally: Pick<Tally, 'answers' | 'slowestMs' | 'beyondBound' | 'failedOnceSettled' | 'settle'>;
  readonly acknowledged: Acknowledged;
  /** Was the report of a second acknowledged before that of another second was sent for the first time? Then it comes first on a live stream. */
  readonly isStoredBefore: (feedId: FeedId, second: number, other: number) => boolean;
  readonly counts: () => {
    readonly sent: number;
    readonly acknowledged: number;
    readonly refused: number;
    readonly latestWentBack: number;
    readonly latestBehindOtherNode: number;
    readonly wrong: number;
    /** The first of them: what was asked, and the answer. */
    readonly wrongOnes: readonly string[];
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
  const offerPart = (i: number): void => {
    const part = i % partsPerSecond;
    const seconds = Math.floor(i / partsPerSecond);
    // A stream goes through another node every second.
    sender.offer(firstSecond + seconds, streams.slice(part * perPart, (part + 1) * perPart), i + seconds);
  };
  const senders = nodes.flatMap((_, node) => Array.from({ length: requestsMax }, () => sender.run(node, isOver)));
  for (const node of nodes.keys()) sender.offer(firstSecond - nodes.length + node, streams, node);
  while (sender.complete.length < nodes.length) await new Promise((resolve) => setTimeout(resolve, 10));
  meter.tally.begin();
  const running = [
    ...senders,
    paced(partsPerSecond, isOver, offerPart),
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
    isStoredBefore: sender.isStoredBefore,
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
