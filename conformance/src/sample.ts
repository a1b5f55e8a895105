// The streams of a run: what the account may read, a few of them to look at, and their newest reports. Each is read once, when first needed.
import { type ReportJson, timeResolutionOf } from '@sealpost/protocol';
import { NoAnswerError, type ReceivedAnswer } from './exchange.ts';
import { reportsOf } from './reports.ts';
import type { Ask } from './requester.ts';
import { describeAnswer, SkipError } from './verdict.ts';

/** What the run needs of a catalog entry; every field may be missing. */
export type SampleEntry = { readonly feedId: string } & Readonly<Record<string, unknown>>;

export type SampleStream = {
  readonly feedId: string;
  readonly entry: SampleEntry | undefined;
  /** The newest report when the run began; undefined if there was none. */
  readonly newest: ReportJson | undefined;
};

/** A stream with a report. */
export type ReportingStream = SampleStream & { readonly newest: ReportJson };

export type Sample = {
  /** The public catalog. */
  readonly catalog: () => Promise<readonly SampleEntry[]>;
  /** Feed IDs that the account may read. At least one. */
  readonly readable: () => Promise<readonly string[]>;
  /** The streams to look at. At least one. */
  readonly streams: () => Promise<readonly SampleStream[]>;
  /** Those with a report. At least one. */
  readonly reporting: () => Promise<readonly [ReportingStream, ...ReportingStream[]]>;
};

/** Streams that a run looks at, unless more are named. */
const streamsMax = 6;

export const targets = {
  latest: (feedId: string) => `/api/v1/reports/latest?feedID=${feedId}`,
  at: (feedId: string, timestamp: number | string) => `/api/v1/reports?feedID=${feedId}&timestamp=${timestamp}`,
  bulk: (feedIds: readonly string[], timestamp: number | string, comma = ',') =>
    `/api/v1/reports/bulk?feedIDs=${feedIds.join(comma)}&timestamp=${timestamp}`,
  page: (feedId: string, startTimestamp: number | string, limit?: number | string) =>
    `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${startTimestamp}${limit === undefined ? '' : `&limit=${limit}`}`,
  feeds: '/api/v1/feeds',
  discovery: '/api/v1/discovery',
} as const;

/** The entries of a catalog answer that have a feed ID. */
export function entriesOf(json: unknown): readonly SampleEntry[] {
  const { feeds } = Object(json);
  return Array.isArray(feeds)
    ? feeds.filter((entry): entry is SampleEntry => typeof Object(entry).feedId === 'string')
    : [];
}

/** The feed IDs of an answer of /api/v1/feeds. */
export function feedIdsOf(json: unknown): readonly string[] {
  const { feeds } = Object(json);
  return Array.isArray(feeds) ? feeds.map((feed) => Object(feed).feedID).filter((id) => typeof id === 'string') : [];
}

/** Only these are sent: the checks of the lists report the others. */
export const isFeedId = (id: string): boolean => /^0x[0-9a-f]{64}$/i.test(id);

/** Reads once. A request without an answer counts once too, in the checks of the whole run; what depends on it is skipped. */
const memo = <T>(read: () => Promise<T>): (() => Promise<T>) => {
  let reading: Promise<T> | undefined;
  const explain = (error: unknown): never => {
    if (!(error instanceof NoAnswerError)) throw error;
    throw new SkipError(`The streams of this account are not known: ${error.request.target} got no answer.`);
  };
  return () => {
    reading ??= read().catch(explain);
    return reading;
  };
};

/** `named` are feed IDs to look at before others. */
export function createSample(ask: Ask, named: readonly string[]): Sample {
  const catalog = memo(async () => entriesOf((await ask(targets.discovery, { signed: false })).json));
  const readable = memo(async () => {
    if (named.length > 0) return named;
    const answer = await ask(targets.feeds);
    // Not part of the specification: without it, what is listed may be readable.
    const listed = answer.status === 404 ? await listedIds(ask) : requireOk(answer, feedIdsOf(answer.json));
    if (listed.length === 0) throw new SkipError('This account may not read any stream.');
    const found = listed.filter(isFeedId);
    if (found.length === 0) throw new SkipError('Every feed ID that the deployment lists is malformed.');
    return found;
  });
  const streams = memo(async () => {
    const entries = new Map((await catalog()).map((entry) => [entry.feedId, entry]));
    const chosen = named.length > 0 ? named : chooseStreams(await readable(), entries);
    const found: SampleStream[] = [];
    for (const feedId of chosen) {
      const answer = await ask(targets.latest(feedId));
      if (answer.status === 401 && named.length === 0) continue; // listed, but not readable
      found.push({ feedId, entry: entries.get(feedId), newest: reportsOf(answer.json)[0] });
    }
    if (found.length === 0) throw new SkipError('This account may not read any of the listed streams.');
    return found;
  });
  const reporting = memo(async () => {
    const [first, ...rest] = (await streams()).filter((one): one is ReportingStream => one.newest !== undefined);
    if (first === undefined) throw new SkipError('No stream that this account may read has a report.');
    return [first, ...rest] as const;
  });
  return { catalog, readable, streams, reporting: async () => [...(await reporting())] };
}

const listedIds = async (ask: Ask): Promise<readonly string[]> => {
  const answer = await ask(`${targets.discovery}?hidden=true`);
  return requireOk(
    answer,
    entriesOf(answer.json).map(({ feedId }) => feedId),
  );
};

const requireOk = <T>(answer: ReceivedAnswer, value: T): T => {
  if (answer.status === 200) return value;
  throw new SkipError(
    `The streams of this account are not known: ${answer.request.target} returned ${describeAnswer(answer)}`,
  );
};

/** Is the stream expected to have a report every few seconds? Undefined if the catalog does not say. */
export const isAlwaysOn = (entry: SampleEntry | undefined): boolean | undefined =>
  entry === undefined || typeof entry.status !== 'string'
    ? undefined
    : entry.status === 'live' && (entry.marketHours === undefined || entry.marketHours === '24/7');

/** Live streams first, but also one in milliseconds and one that is not live, which may have no report at a time when others have. */
const chooseStreams = (ids: readonly string[], entries: ReadonlyMap<string, SampleEntry>): readonly string[] => {
  const isOn = (id: string) => isAlwaysOn(entries.get(id)) === true;
  const isFine = (id: string) => timeResolutionOf(id) === 'milliseconds';
  const fine = ids
    .filter((id) => isFine(id))
    .sort((a, b) => Number(isOn(b)) - Number(isOn(a)))
    .slice(0, 1);
  const off = ids.filter((id) => isAlwaysOn(entries.get(id)) === false && !fine.includes(id)).slice(-1);
  const rest = ids.filter((id) => !fine.includes(id) && !off.includes(id));
  const ordered = [...rest.filter(isOn), ...rest.filter((id) => !isOn(id))].slice(
    0,
    streamsMax - fine.length - off.length,
  );
  return [...ordered, ...fine, ...off];
};
