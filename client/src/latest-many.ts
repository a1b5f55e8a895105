// The newest reports of many streams: in one request if the server has the extension, else one by one within the rate limit (D100).
import { type Body, type ErrorCode, type FeedId, limits, type ReportJson } from '@sealpost/protocol';
import { readFeedIds, targetOf } from './arguments.ts';
import { retryAfterMsOf } from './backoff.ts';
import { type ClientFailure, SealpostError } from './errors.ts';
import { type BulkReports, latest, type MissingReport, readReports } from './reads.ts';
import type { AnswerDetails } from './request/answer.ts';
import type { CallOptions } from './request/call.ts';
import { abortedBy, openCall, type Sleep } from './request/call.ts';
import { createPace, type Pace } from './request/pace.ts';
import { paths } from './request/paths.ts';
import type { Requester } from './request/requester.ts';

/** When to try the extension again on a server without it: it may have been upgraded. */
const lackingMs = 600_000;
/** Attempts of one request that get 429 before the call fails: another program uses up the account's limit. */
const refusalsMax = 5;
/** Single requests under way at once: enough for the default limit while each takes 800 ms. */
const inFlightMax = 8;

/** What the client has learned about a server. */
type ServerState = { readonly many: Pace; readonly single: Pace; lacksUntilMs: number; feedIdsMax: number };

export type LatestMany = (feedIds: readonly string[], options?: CallOptions) => Promise<BulkReports>;

type ManyRequester = Pick<Requester, 'get' | 'baseUrls'>;

/** Remembers for each base URL whether it has the extension, and its pace; concurrent calls share both. */
export const createLatestMany = (requester: ManyRequester, sleep: Sleep, monotonicMs: () => number): LatestMany => {
  const servers = new Map<string, ServerState>();
  const serverState = (): ServerState => {
    const url = requester.baseUrls[0] ?? '';
    const pace = () => createPace(sleep, monotonicMs);
    const server = servers.get(url) ?? { many: pace(), single: pace(), lacksUntilMs: 0, feedIdsMax: limits.feedIdsMax };
    servers.set(url, server);
    return server;
  };
  return async (feedIds, options = {}) => {
    const asked = readFeedIds(feedIds);
    const call = openMany(options);
    const { signal } = call.options;
    try {
      if (serverState().lacksUntilMs <= monotonicMs()) {
        const found = await askTogether(requester, asked, serverState, call);
        if (!(found instanceof SealpostError)) return found;
        // If both forms are one endpoint, the failed request used one of its limit.
        await serverState().single.turn(signal);
      }
      const found = await askEach(requester, asked, serverState().single, signal);
      serverState().lacksUntilMs = monotonicMs() + lackingMs;
      return found;
    } catch (error) {
      if (!signal.aborted) throw error;
      throw signal.reason instanceof SealpostError ? signal.reason : abortedBy(signal);
    } finally {
      call.close();
    }
  };
};

type ManyCall = { readonly options: CallOptions & { readonly signal: AbortSignal }; readonly close: () => void };

/** The caller's time-out covers all requests together; the client's default covers each, because pacing may take minutes. */
const openMany = (options: CallOptions): ManyCall => {
  const { timeoutMs, signal } = options;
  if (timeoutMs === undefined) return { options: { signal: signal ?? new AbortController().signal }, close: () => {} };
  const { close, ...call } = openCall(options, timeoutMs);
  return { options: { signal: call.signal }, close };
};

/** Sends a request within the pace; after a 429 it waits and retries. */
const inPace = async <T extends { readonly details: AnswerDetails }>(
  pace: Pace,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> => {
  for (let refusals = 1; ; refusals += 1) {
    await pace.turn(signal);
    try {
      const answer = await ask();
      pace.learn(answer.details.rateLimit);
      return answer;
    } catch (error) {
      if (!(error instanceof SealpostError) || error.status === undefined) throw error;
      pace.learn(undefined);
      if (error.status !== 429 || refusals >= refusalsMax) throw error;
      pace.hold(Math.max(1_000, retryAfterMsOf(error)));
    }
  }
};

/**
 * Codes that say nothing about the extension: errors of a Sealpost server that has it, and failures of the client. `missing_argument` and
 * `route_not_found` are not among them: a Sealpost server without the extension misses the `feedID`.
 */
export const inconclusiveCodes: readonly string[] = [
  'malformed_argument',
  'repeated_argument',
  'malformed_target',
  'malformed_header',
  'missing_header',
  'repeated_header',
  'repeated_host',
  'unexpected_body',
  'clock_skew',
  'unauthorized',
  'stream_not_accessible',
  'report_not_found',
  'method_not_allowed',
  'request_timeout',
  'rate_limited',
  'too_many_failures',
  'head_too_large',
  'internal_error',
  'store_unavailable',
  'overloaded',
  'draining',
  'network_error',
  'timeout',
  'aborted',
  'missing_credentials',
  'invalid_option',
  'secret_unavailable',
] satisfies (ErrorCode | ClientFailure)[];

/** Whether the server may lack the extension. A request for one stream then shows what is really wrong. */
const mayLack = ({ code, isInferred }: SealpostError): boolean => isInferred || !inconclusiveCodes.includes(code);

/** Requests as many streams at once as the server allows. Returns the error if the server may lack the extension. */
const askTogether = async (
  requester: ManyRequester,
  asked: readonly FeedId[],
  serverState: () => ServerState,
  call: ManyCall,
): Promise<BulkReports | SealpostError> => {
  const reports: ReportJson[] = [];
  const missing: MissingReport[] = [];
  let details: AnswerDetails | undefined;
  for (let start = 0; start < asked.length; ) {
    const { many, feedIdsMax } = serverState();
    const chunk = asked.slice(start, start + feedIdsMax);
    const target = targetOf(paths.reportLatest, { feedIDs: chunk.join(','), missing: true });
    try {
      const answer = await inPace(many, call.options.signal, () =>
        requester.get<Partial<Body<'PartialReports'>>>(target, call.options),
      );
      const found = readReports(answer.body, chunk, answer.details);
      reports.push(...found.reports);
      missing.push(...found.missing);
      details = answer.details;
      start += chunk.length;
    } catch (error) {
      if (!(error instanceof SealpostError)) throw error;
      const { feedIdsMax: told } = error.details;
      const isLess = typeof told === 'number' && Number.isInteger(told) && told > 0 && told < chunk.length;
      if (isLess) serverState().feedIdsMax = told;
      else if (mayLack(error)) return error;
      else throw error;
    }
  }
  return { reports, missing, details: details as AnswerDetails }; // at least one stream was asked for
};

/** A report, or the error instead of one. */
type Found = ReportJson | SealpostError;

/** One request per stream. The first failure cancels the others. */
const askEach = async (
  requester: ManyRequester,
  asked: readonly FeedId[],
  pace: Pace,
  signal: AbortSignal,
): Promise<BulkReports> => {
  const controller = new AbortController();
  const abort = (): void => controller.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const found = new Map<FeedId, Found>();
  let [details, failure]: [AnswerDetails | undefined, unknown] = [undefined, undefined];
  const ask = async (feedId: FeedId): Promise<void> => {
    try {
      const own = { signal: controller.signal };
      const one = await inPace(pace, own.signal, () => latest(requester, feedId, own));
      found.set(feedId, one.report);
      details = one.details;
    } catch (error) {
      if (error instanceof SealpostError && error.status === 404) found.set(feedId, error);
      else {
        failure ??= error;
        controller.abort(error);
      }
    }
  };
  const inFlight = new Set<Promise<void>>();
  for (const feedId of asked) {
    // The first response has the rate limit; until then, a second request may exceed it.
    if (inFlight.size >= (pace.isKnown() ? inFlightMax : 1)) await Promise.race(inFlight);
    if (controller.signal.aborted || signal.aborted) break;
    const task = ask(feedId).finally(() => inFlight.delete(task));
    inFlight.add(task);
  }
  await Promise.all(inFlight);
  signal.removeEventListener('abort', abort);
  signal.throwIfAborted();
  if (failure !== undefined) throw failure;
  return gather(asked, found, details);
};

/** The results in the order of the request. If all are 404 without a code, the server lacks the route. */
const gather = (
  asked: readonly FeedId[],
  found: ReadonlyMap<FeedId, Found>,
  details: AnswerDetails | undefined,
): BulkReports => {
  const reports: ReportJson[] = [];
  const misses: (MissingReport & { readonly error: SealpostError })[] = [];
  for (const feedID of asked) {
    const one = found.get(feedID);
    if (one instanceof SealpostError)
      misses.push({
        feedID,
        error: one,
        ...(one.details.reason === 'no_reports' && { reason: 'no_reports' as const }),
      });
    else if (one !== undefined) reports.push(one);
  }
  const isBare = misses.every(({ error: { code } }) => code === 'http_404' || code === 'route_not_found');
  const { requestId } = misses[0]?.error ?? {};
  if (reports.length === 0 && isBare) throw misses[0]?.error;
  const missing = misses.map(({ error: _, ...miss }) => miss);
  return {
    reports,
    missing,
    details: details ?? { status: 404, requestId, rateLimit: undefined, serverTimeMs: undefined },
  };
};
