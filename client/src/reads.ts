// The calls that are one request each: their arguments, and the shape of their results.
import type { Body, FeedId, ReportJson, SignerSetsJson } from '@sealpost/protocol';
import { readFeedId, readFeedIds, readLimit, readResolution, readSeconds, targetOf } from './arguments.ts';
import { SealpostError } from './errors.ts';
import { checkPage, type WalkedPage } from './page-walk.ts';
import type { AnswerDetails } from './request/answer.ts';
import { type CallOptions, type InnerCallOptions, withRest } from './request/call.ts';
import { inParts, readExtension, withExtension, withPageLimit } from './request/extensions.ts';
import { paths } from './request/paths.ts';
import type { Requester } from './request/requester.ts';
import { toReceived, toReport } from './stream/received-report.ts';

/** The part that every result has. */
type WithDetails = { readonly details: AnswerDetails };

export type OneReport = WithDetails & { readonly report: ReportJson };

type MissingReason = Body<'MissingReport'>['reason'];

/** A stream without a report at that time; `reason` if the server sends one. */
export type MissingReport = { readonly feedID: string; readonly reason?: MissingReason };

export type BulkReports = WithDetails & {
  /** In the order of the request. */
  readonly reports: readonly ReportJson[];
  /** Streams without a report; empty if every stream has one. */
  readonly missing: readonly MissingReport[];
};

export type ReportPage = WithDetails & {
  /** Oldest first. */
  readonly reports: readonly ReportJson[];
  /** True if there may be more reports. Without `Link` headers, true unless the page is empty. */
  readonly more: boolean;
  /** Start of the next page, now or later. */
  readonly nextStartTimestamp: number;
};

/** A time range in seconds, both ends included. */
export type TimeRange = { readonly from: number; readonly to: number };

/** A time range, and the seconds per candle: 1, 60, 300, 900, 3600, 14400 or 86400. */
export type CandleRange = TimeRange & { readonly resolution: number };

/** Gaps and completeness of a time range. */
export type Coverage = Body<'Coverage'>;

/** The status of a service. */
export type ServiceStatus = Body<'Status'>;

export type CoverageResult = WithDetails & { readonly coverage: Coverage };
/** Completeness of one of several streams, by hour. */
export type StreamCoverage = Body<'StreamCoverage'>;

export type CoverageManyResult = WithDetails & {
  /** In the order of the request. */
  readonly streams: readonly StreamCoverage[];
};
export type CandlesResult = WithDetails & { readonly candles: readonly Candle[] };
export type CandlesManyResult = WithDetails & {
  /** In the order of the request. */
  readonly streams: readonly { readonly feedID: string; readonly candles: readonly Candle[] }[];
};
export type FeedsResult = WithDetails & { readonly feeds: readonly { readonly feedID: string }[] };
export type SignersResult = WithDetails & { readonly signers: SignerSetsJson };
export type TimeResult = WithDetails & { readonly serverTimeMs: number };
export type StatusResult = WithDetails & { readonly status: ServiceStatus };

type Get = Pick<Requester, 'get' | 'lacks' | 'bounds'>;

const strange = ({ status, requestId }: AnswerDetails): SealpostError =>
  new SealpostError('unexpected_answer', 'The response does not have the expected form.', { status, requestId });

/** Validates a report of a response: it must be of a requested stream. */
const checkReport = (raw: unknown, asked: readonly string[], details: AnswerDetails): ReportJson => {
  const report = toReport(raw);
  if (report !== undefined && asked.includes(report.feedID)) return report;
  throw strange(details);
};

const checkReports = (raw: unknown, asked: readonly string[], details: AnswerDetails): readonly ReportJson[] => {
  if (raw === null) return []; // how a server in Go may write an empty list
  if (!Array.isArray(raw)) throw strange(details);
  return raw.map((one) => checkReport(one, asked, details));
};

/** On a server without error codes, a 404 with a message is a missing report: the route is in the specification, so it exists. */
const asMiss = (error: unknown): never => {
  if (!(error instanceof SealpostError) || error.code !== 'not_found') throw error;
  const { message, status, requestId, details, isInferred } = error;
  const advice = 'Request another time, or try again later.';
  throw new SealpostError('report_not_found', message, { status, requestId, details, isInferred, advice });
};

const readReport = async (
  requester: Get,
  target: string,
  feedId: FeedId,
  options?: CallOptions,
): Promise<OneReport> => {
  const { body, details } = await requester.get<Partial<Body<'OneReport'>>>(target, options).catch(asMiss);
  return { report: checkReport(body.report, [feedId], details), details };
};

/** The newest report of a stream. */
export async function latest(requester: Get, feedId: string, options?: CallOptions): Promise<OneReport> {
  const feedID = readFeedId(feedId);
  return readReport(requester, targetOf(paths.reportLatest, { feedID }), feedID, options);
}

/** The report that is valid at a second. If there is none, the error's details have the reason and the nearest reports. */
export async function at(requester: Get, feedId: string, timestamp: number, options?: CallOptions): Promise<OneReport> {
  const feedID = readFeedId(feedId);
  const query = { feedID, timestamp: readSeconds(timestamp, 'timestamp') };
  return readReport(requester, targetOf(paths.reportAt, query), feedID, options);
}

/** The reports of several streams at a second, in several requests if the server allows fewer at once; streams without one are in `missing`. */
export async function bulk(
  requester: Get,
  feedIds: readonly string[],
  timestamp: number,
  options?: CallOptions,
): Promise<BulkReports> {
  const seconds = readSeconds(timestamp, 'timestamp');
  const startedMs = performance.now();
  const ask = (part: readonly FeedId[]) =>
    readPart(requester, part, seconds, withRest(options, performance.now() - startedMs));
  return joinParts(await inParts(requester, readFeedIds(feedIds), ask));
}

/** The answers to parts of a request as one. */
export const joinParts = (parts: readonly BulkReports[]): BulkReports => ({
  reports: parts.flatMap(({ reports }) => reports),
  missing: parts.flatMap(({ missing }) => missing),
  details: (parts.at(-1) as BulkReports).details, // at least one stream was asked for
});

const readPart = async (
  requester: Get,
  asked: readonly FeedId[],
  timestamp: number,
  options?: CallOptions,
): Promise<BulkReports> => {
  const query = { feedIDs: asked.join(','), timestamp };
  const { body, details } = await withExtension(requester, 'missing', (extended) => {
    const target = targetOf(paths.reportBulk, extended ? { ...query, missing: true } : query);
    return requester.get<Partial<Body<'PartialReports'>>>(target, options);
  });
  return readReports(body, asked, details);
};

/** The reports in the order of the request, and the streams without one, even if the server does not list them. */
export function readReports(
  body: { readonly reports?: unknown; readonly missing?: unknown },
  asked: readonly FeedId[],
  details: AnswerDetails,
): BulkReports {
  const received = checkReports(body.reports, asked, details);
  const there = new Map<string, ReportJson>(received.map((report) => [report.feedID, report]));
  // Two reports of one stream would be ambiguous.
  if (there.size < received.length) throw strange(details);
  const reports = asked.flatMap((feedID) => there.get(feedID) ?? []);
  const listed: readonly unknown[] = Array.isArray(body.missing) ? body.missing : [];
  const reasons = new Map(listed.map((one) => [Object(one).feedID, Object(one).reason]));
  const missing = asked
    .filter((feedID) => !there.has(feedID))
    .map((feedID): MissingReport => {
      const reason = reasons.get(feedID);
      return { feedID, ...(typeof reason === 'string' && { reason: reason as MissingReason }) }; // a later server may have more of them
    });
  return { reports, missing, details };
}

/** A page with the windows of its reports in milliseconds. */
export type ReceivedPage = WithDetails & WalkedPage;

/** Reads and validates one page; the server's default limit unless given. */
export async function readPage(
  requester: Get,
  feedId: string,
  startTimestamp: number,
  limit?: number,
  options?: InnerCallOptions,
): Promise<ReceivedPage> {
  const feedID = readFeedId(feedId);
  const start = { feedID, startTimestamp: readSeconds(startTimestamp, 'startTimestamp') };
  const query = limit === undefined ? start : { ...start, limit: readLimit(limit) };
  const target = targetOf(paths.reportPage, query);
  const { body, details, more } = await requester.get<Partial<Body<'Reports'>>>(target, options);
  const reports = checkReports(body.reports, [feedID], details).map(toReceived);
  checkPage(reports, startTimestamp, more);
  return { reports, more, details };
}

/** As `readPage`, with a smaller limit on a server that rejects this one. */
export const readLargePage = (
  requester: Get,
  feedId: string,
  startTimestamp: number,
  limit: number,
  options?: InnerCallOptions,
): Promise<ReceivedPage> =>
  withPageLimit(requester, readLimit(limit), (most) => readPage(requester, feedId, startTimestamp, most, options));

/** A page in the form that callers get. */
export function toReportPage({ reports: received, more, details }: ReceivedPage, startTimestamp: number): ReportPage {
  const reports = received.map(({ report }) => report);
  const last = reports.at(-1);
  const nextStartTimestamp = last === undefined ? startTimestamp : last.observationsTimestamp + 1;
  return { reports, more: more ?? last !== undefined, nextStartTimestamp, details };
}

/** Reports of one stream observed at or after a second, oldest first. `limit`: 10 by default, at most 1,000. */
export const page = async (
  requester: Get,
  feedId: string,
  startTimestamp: number,
  limit?: number,
  options?: InnerCallOptions,
): Promise<ReportPage> =>
  toReportPage(await readPage(requester, feedId, startTimestamp, limit, options), startTimestamp);

const spanQuery = ({ from, to }: TimeRange) => ({
  from: readSeconds(from, 'from'),
  to: readSeconds(to, 'to'),
});

/** Gaps and completeness of a stream in a time range of at most a day. */
export async function coverage(
  requester: Get,
  feedId: string,
  span: TimeRange,
  options?: CallOptions,
): Promise<CoverageResult> {
  const target = targetOf(paths.reportCoverage, { feedID: readFeedId(feedId), ...spanQuery(span) });
  const { body, details } = await readExtension(
    'coverage',
    'Read the time range with pages() and compare the windows.',
    () => requester.get<Body<'Coverage'>>(target, options),
  );
  if (!Array.isArray(body.gaps)) throw strange(details);
  return { coverage: body, details };
}

/** Completeness of several streams by hour, in a time range of at most a day, in the order of the request. */
export async function coverageMany(
  requester: Get,
  feedIds: readonly string[],
  span: TimeRange,
  options?: CallOptions,
): Promise<CoverageManyResult> {
  const asked = readFeedIds(feedIds);
  const query = { feedIDs: asked.join(','), ...spanQuery(span) };
  const { body, details } = await readExtension(
    'coverage of several streams',
    'Read each stream with coverage().',
    () => requester.get<Partial<Body<'CoverageMany'>>>(targetOf(paths.reportCoverageMany, query), options),
  );
  const received = new Map((Array.isArray(body.streams) ? body.streams : []).map((one) => [Object(one).feedID, one]));
  const streams = asked.map((feedID) => {
    const one = received.get(feedID);
    if (one === undefined || !Array.isArray(one.hours)) throw strange(details);
    return one;
  });
  return { streams, details };
}

/** Open, high, low and close as exact integers with 18 decimals. Empty buckets are absent. */
export type Candle = {
  /** First second of the bucket. */
  readonly timestamp: number;
  readonly open: bigint;
  readonly high: bigint;
  readonly low: bigint;
  readonly close: bigint;
  readonly reports: number;
};

/** Whole decimal numbers, up to the length of 256 bits. */
const isWhole = (raw: unknown): boolean => typeof raw === 'string' && /^-?[0-9]{1,78}$/.test(raw);

const isCandle = (raw: unknown): boolean => {
  const { timestamp, open, high, low, close, reports } = Object(raw) as Readonly<Record<string, unknown>>; // looked at here
  return [open, high, low, close].every(isWhole) && [timestamp, reports].every(Number.isSafeInteger);
};

/** Validates candles of a response, and makes their prices exact. */
const readCandles = (raw: unknown, details: AnswerDetails): readonly Candle[] => {
  if (!Array.isArray(raw) || !raw.every(isCandle)) throw strange(details);
  return raw.map((one) => ({
    ...one,
    open: BigInt(one.open),
    high: BigInt(one.high),
    low: BigInt(one.low),
    close: BigInt(one.close),
  }));
};

const candleAdvice = 'Read the time range with pages() and decode the prices.';

/** Candles of 1, 60, 300, 900, 3600, 14400 or 86400 seconds. */
export async function candles(
  requester: Get,
  feedId: string,
  { resolution, ...span }: CandleRange,
  options?: CallOptions,
): Promise<CandlesResult> {
  const query = { feedID: readFeedId(feedId), ...spanQuery(span), resolution: readResolution(resolution) };
  const { body, details } = await readExtension('candles', candleAdvice, () =>
    requester.get<Partial<Body<'Candles'>>>(targetOf(paths.reportCandles, query), options),
  );
  return { candles: readCandles(body.candles, details), details };
}

/** Candles of several streams, in the order of the request; a stream without reports has none. */
export async function candlesMany(
  requester: Get,
  feedIds: readonly string[],
  { resolution, ...span }: CandleRange,
  options?: CallOptions,
): Promise<CandlesManyResult> {
  const asked = readFeedIds(feedIds);
  const query = { feedIDs: asked.join(','), ...spanQuery(span), resolution: readResolution(resolution) };
  const { body, details } = await readExtension('candles of several streams', 'Read each stream with candles().', () =>
    requester.get<Partial<Body<'CandlesMany'>>>(targetOf(paths.reportCandlesMany, query), options),
  );
  const received = new Map<unknown, unknown>(
    Array.isArray(body.streams) ? body.streams.map((one) => [Object(one).feedID, Object(one).candles]) : [],
  );
  const streams = asked.map((feedID) => ({ feedID, candles: readCandles(received.get(feedID), details) }));
  return { streams, details };
}

/** The streams that this account may read. */
export async function feeds(requester: Get, options?: CallOptions): Promise<FeedsResult> {
  const { body, details } = await readExtension(
    'list of readable streams',
    'List the catalog with discovery(), and keep your own list of readable streams.',
    () => requester.get<Partial<Body<'Feeds'>>>(paths.feeds, options),
  );
  if (body.feeds === null) return { feeds: [], details };
  if (!Array.isArray(body.feeds) || body.feeds.some((one) => typeof one?.feedID !== 'string')) throw strange(details);
  return { feeds: body.feeds, details };
}

/** The signer sets that the server publishes, to pass to `verify` or keep in a file. */
export async function signers(requester: Get, options?: CallOptions): Promise<SignersResult> {
  const { body, details } = await readExtension(
    'signer sets',
    'Pass a signer set to verify, from a file that you keep.',
    () => requester.get<SignerSetsJson>(paths.signers, options),
  );
  if (Array.isArray(body) || Object.values(body).some((set) => !Array.isArray(set?.addresses))) throw strange(details);
  return { signers: body, details };
}

/** The server's clock, which signed timestamps are compared with. On servers without this route, its Date header, in whole seconds. */
export async function time(requester: Get, options?: CallOptions): Promise<TimeResult> {
  const read = () => requester.get<Partial<Body<'ServerTime'>>>(paths.time, options);
  try {
    const { body, details } = await readExtension('time', 'Compare the clocks in another way.', read);
    if (!Number.isSafeInteger(body.serverTimeMs)) throw strange(details);
    return { serverTimeMs: body.serverTimeMs as number, details }; // just checked
  } catch (error) {
    const { code, status = 0, requestId, details } = error as SealpostError; // looked at only where it is one
    if (code !== 'not_supported' || typeof details.serverDateMs !== 'number') throw error;
    const serverTimeMs = details.serverDateMs;
    return { serverTimeMs, details: { status, requestId, rateLimit: undefined, serverTimeMs } };
  }
}

/** The status of the service. */
export async function status(requester: Get, options?: CallOptions): Promise<StatusResult> {
  const { body, details } = await readExtension(
    'status',
    'Read a report with latest() to see whether the service works.',
    () => requester.get<Body<'Status'>>(paths.status, options),
  );
  if (typeof body.ready !== 'boolean') throw strange(details);
  return { status: body, details };
}
