// Reads a time range of a stream page by page: to its end, or on with new reports by polling.
import { limits, type ReportJson, timeResolutionOf } from '@sealpost/protocol';
import { readFeedId, readSeconds } from './arguments.ts';
import { readWhole } from './options.ts';
import { continueAfter, type PageCursor } from './page-walk.ts';
import { type ReceivedPage, type ReportPage, readLargePage, toReportPage } from './reads.ts';
import type { CallOptions } from './request/call.ts';
import { abortedBy, type Sleep, sleepOnTimer } from './request/call.ts';
import type { Requester } from './request/requester.ts';

export type PagesOptions = CallOptions & {
  /** First second: pages start with the first report observed at or after it. */
  readonly from: number;
  /** Last second of observation; by default, up to the newest report. */
  readonly to?: number;
  /** Reports per page; 1,000 by default, or as many as the server allows. */
  readonly limit?: number;
  /** Continue with new reports until `to` is reached or the signal is aborted. */
  readonly follow?: boolean;
  /** Interval between polls for new reports; 1,000 ms by default, at least 100. */
  readonly pollMs?: number;
  /** Wait and retry when the rate limit is exceeded; true by default. With false the call rejects, and you can show the wait. */
  readonly retryRateLimited?: boolean;
};

const pollMaxMs = 3_600_000;

/**
 * Pages of a time range, oldest first, none of them empty. A page is requested only once you have consumed the one before. With `follow`,
 * reports that the server stores late, before what was read already, are missed: read the range again, or check its coverage.
 */
export async function* pages(
  requester: Pick<Requester, 'get' | 'bounds'>,
  feedId: string,
  options: PagesOptions,
  sleep: Sleep = sleepOnTimer,
): AsyncGenerator<ReportPage, void, undefined> {
  const { from, to, limit = limits.pageLimitMax, follow = false } = options;
  const end = to === undefined ? Number.POSITIVE_INFINITY : readSeconds(to, 'to');
  // A stream in seconds has one report per second; a stream in milliseconds may get more within the last second.
  const overAt = timeResolutionOf(readFeedId(feedId)) === 'seconds' ? end : end + 1;
  const pollMs = readWhole('pollMs', options.pollMs ?? 1_000, 100, pollMaxMs);
  const start = readSeconds(from, 'from');
  const seen = createSeen(start - 1);
  let cursor: PageCursor = { start };
  while (cursor.start <= end) {
    const read = await readLargePage(requester, feedId, cursor.start, cursor.isRecheck ? limits.pageLimitMax : limit, {
      ...options,
      retryRateLimited: options.retryRateLimited ?? true,
    });
    const found = read.reports.map(({ report }) => report);
    const fresh = found.filter((one, i, all) => seen.isNew(one) && !isSame(one, all[i - 1]));
    const { accept, next } = continueAfter(feedId, cursor, read, fresh.length);
    const reports = accept ? fresh.filter(({ observationsTimestamp }) => observationsTimestamp <= end) : [];
    if (accept) seen.add(fresh);
    if (reports.length > 0) yield { ...toReportPage(read, cursor.start), reports };
    if (seen.second() >= overAt || (next === undefined && !follow)) return;
    // The newest second may not be over: it is read again.
    cursor = next ?? { start: Math.max(start, seen.second()) };
    await pause(next === undefined ? pollMs : pacingMs(read), options.signal, sleep);
  }
}

const isSame = (a: ReportJson, b: ReportJson | undefined): boolean =>
  a.observationsTimestamp === b?.observationsTimestamp && a.fullReport === b.fullReport;

/** What was read of the newest second, so that reading it again returns only new reports. */
const createSeen = (before: number) => {
  let [second, fullReports] = [before, new Set<string>()];
  return {
    second: () => second,
    isNew: ({ observationsTimestamp: at, fullReport }: ReportJson): boolean =>
      at > second || (at === second && !fullReports.has(fullReport)),
    add: (reports: readonly ReportJson[]): void => {
      for (const { observationsTimestamp: at, fullReport } of reports) {
        if (at > second) [second, fullReports] = [at, new Set()];
        fullReports.add(fullReport);
      }
    },
  };
};

/** The wait for one more request if the rate limit is used up. */
const pacingMs = ({ details: { rateLimit } }: ReceivedPage): number =>
  rateLimit !== undefined && rateLimit.remaining === 0 ? Math.ceil(1_000 / Math.max(1, rateLimit.limit)) : 0;

const pause = async (ms: number, signal: AbortSignal | undefined, sleep: Sleep): Promise<void> => {
  if (ms === 0) return;
  await sleep(ms, signal ?? new AbortController().signal).catch((error: unknown) => {
    throw signal?.aborted ? abortedBy(signal) : error;
  });
};
