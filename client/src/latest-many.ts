// The newest reports of many streams: 100 a request if the server has the extension, else one by one within the rate limit (D100).
import type { Body, FeedId, ReportJson } from '@sealpost/protocol';
import { readFeedIds, targetOf } from './arguments.ts';
import { SealpostError } from './errors.ts';
import { type BulkReports, joinParts, latest, readReports } from './reads.ts';
import type { AnswerDetails } from './request/answer.ts';
import { type Call, type CallOptions, openCall, type Sleep, timerMaxMs } from './request/call.ts';
import { inParts } from './request/extensions.ts';
import { createPacedGet } from './request/pace.ts';
import { paths } from './request/paths.ts';
import type { Requester } from './request/requester.ts';

/** When to try the extension again on a server without it: it may have been upgraded. */
const lackingMs = 600_000;
/** Attempts of one request that get 429 before the call fails: another program uses up the account's limit. */
const refusalsMax = 5;
/** Single requests under way at once: enough for the default limit while each takes 800 ms. */
const inFlightMax = 8;

export type LatestMany = (feedIds: readonly string[], options?: CallOptions) => Promise<BulkReports>;

/** Remembers whether the server has the extension, and its pace; concurrent calls share both. */
export function createLatestMany(requester: Requester, sleep: Sleep, monotonicMs: () => number): LatestMany {
  const get = createPacedGet(requester.get, sleep, monotonicMs, refusalsMax);
  let lacksUntilMs = 0;
  const askPart = async (part: readonly FeedId[], call: Call): Promise<BulkReports> => {
    if (lacksUntilMs <= monotonicMs())
      try {
        const target = targetOf(paths.reportLatest, { feedIDs: part.join(','), missing: true });
        const { body, details } = await get<Partial<Body<'PartialReports'>>>(target, { signal: call.signal });
        return readReports(body, part, details);
      } catch (error) {
        if (!mayLack(error)) throw error;
      }
    const found = await askEach(get, part, call);
    lacksUntilMs = monotonicMs() + lackingMs;
    return found;
  };
  return async (feedIds, options = {}) => {
    const asked = readFeedIds(feedIds);
    // The caller's time-out covers all requests together; the client's default covers each, because pacing may take minutes.
    const call = openCall(options, options.timeoutMs ?? timerMaxMs);
    try {
      return joinParts(await inParts(requester, asked, (part) => askPart(part, call)));
    } catch (error) {
      call.signal.throwIfAborted();
      throw error;
    } finally {
      call.close();
    }
  };
}

/** Whether the server may lack the extension: a server with it has error codes. One request per stream then shows what is really wrong. */
const mayLack = (error: unknown): boolean =>
  error instanceof SealpostError &&
  error.status !== 429 &&
  (error.isInferred || ['missing_argument', 'route_not_found', 'unexpected_answer'].includes(error.code));

/** One request per stream. The first failure but a 404 ends the call. If all are 404 without a code, the server lacks the route. */
const askEach = async (get: Requester['get'], asked: readonly FeedId[], call: Call): Promise<BulkReports> => {
  const reports: ReportJson[] = [];
  const misses: { readonly feedID: FeedId; readonly reason: unknown; readonly error: SealpostError }[] = [];
  let last: AnswerDetails | undefined;
  const ask = async (feedID: FeedId): Promise<void> => {
    try {
      const { report, details } = await latest({ get }, feedID, { signal: call.signal });
      reports.push(report);
      last = details;
    } catch (error) {
      if (!(error instanceof SealpostError) || error.status !== 404) {
        call.end(error);
        throw error;
      }
      misses.push({ feedID, reason: error.details.reason, error });
    }
  };
  const rest = asked.values();
  const askRest = async (): Promise<void> => {
    for (const feedId of rest) await ask(feedId);
  };
  await ask(rest.next().value as FeedId); // there is one; its response has the rate limit, which a second request may exceed
  await Promise.all(Array.from({ length: inFlightMax }, askRest));
  const [miss] = misses;
  const isBare = misses.every(({ error: { code } }) => code === 'http_404' || code === 'route_not_found');
  if (reports.length === 0 && isBare) throw miss?.error;
  const ofMiss = { status: 404, requestId: miss?.error.requestId, rateLimit: undefined, serverTimeMs: undefined };
  return readReports({ reports, missing: misses }, asked, last ?? ofMiss);
};
