// Reads a time range of a stream page by page: to its end, or on with new reports by polling.
import { limits, type ReportJson, timeResolutionOf } from '@sealpost/protocol';
import { readFeedId, readSeconds } from './arguments.ts';
import { readWhole } from './options.ts';
import { continueAfter, type PageCursor } from './page-walk.ts';
import { type ReceivedPage, type ReportPage, readPage, toReportPage } from './reads.ts';
import type { CallOptions } from './request/call.ts';
import { abortedBy, type Sleep, sleepOnTimer } from './request/call.ts';
import type { Requester } from './request/requester.ts';

export type PagesOptions = CallOptions & {
  /** First second: pages begin with the first report observed at or after it. */
  readonly from: number;
  /** Last second at which a report may be observed; without it, to the newest. */
  readonly to?: number;
  /** Reports in a page, 1,000 unless given. */
  readonly limit?: number;
  /** Go on with new reports as they come, until `to` is reached or the signal is aborted. */
  readonly follow?: boolean;
  /** Between two questions whether there is something new; 1,000 ms unless given, 100 at least. */
  readonly pollMs?: number;
};

const pollMaxMs = 3_600_000;

/**
 * Pages of a span, oldest first, none of them empty. A page is asked for only when the one before has been used up. Reports that arrive
 * late, behind what was read already, are not seen by following: read the span again, or look at its coverage.
 */
export async function* pages(
  requester: Pick<Requester, 'get'>,
  feedId: string,
  options: PagesOptions,
  sleep: Sleep = sleepOnTimer,
): AsyncGenerator<ReportPage, void, undefined> {
  const { from, to, limit = limits.pageLimitMax, follow = false } = options;
  const end = to === undefined ? Number.POSITIVE_INFINITY : readSeconds(to, 'to');
  // The last second is over once it has its one report; a stream that counts milliseconds may have more to come.
  const overAt = timeResolutionOf(readFeedId(feedId)) === 'seconds' ? end : end + 1;
  const pollMs = readWhole('pollMs', options.pollMs ?? 1_000, 100, pollMaxMs);
  const start = readSeconds(from, 'from');
  const seen = createSeen(start - 1);
  let cursor: PageCursor = { start };
  while (cursor.start <= end) {
    const read = await readPage(requester, feedId, cursor.start, cursor.isRecheck ? limits.pageLimitMax : limit, {
      ...options,
      retryRateLimited: true,
    });
    const found = read.reports.map(({ report }) => report);
    const fresh = found.filter((one, i, all) => seen.isNew(one) && !isSame(one, all[i - 1]));
    const { accept, next } = continueAfter(feedId, cursor, read, fresh.length);
    const reports = accept ? fresh.filter(({ observationsTimestamp }) => observationsTimestamp <= end) : [];
    if (accept) seen.add(fresh);
    if (reports.length > 0) yield { ...toReportPage(read, cursor.start), reports };
    if (seen.second() >= overAt || (next === undefined && !follow)) return;
    // The newest second may not be over: it is asked for again.
    cursor = next ?? { start: Math.max(start, seen.second()) };
    await pause(next === undefined ? pollMs : pacingMs(read), options.signal, sleep);
  }
}

const isSame = (a: ReportJson, b: ReportJson | undefined): boolean =>
  a.observationsTimestamp === b?.observationsTimestamp && a.fullReport === b.fullReport;

/** What was read of the newest second, so that reading it again gives only what is new. */
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

/** With no request left, the time in which the server grants one more. */
const pacingMs = ({ details: { rateLimit } }: ReceivedPage): number =>
  rateLimit !== undefined && rateLimit.remaining === 0 ? Math.ceil(1_000 / Math.max(1, rateLimit.limit)) : 0;

const pause = async (ms: number, signal: AbortSignal | undefined, sleep: Sleep): Promise<void> => {
  if (ms === 0) return;
  await sleep(ms, signal ?? new AbortController().signal).catch((error: unknown) => {
    throw signal?.aborted ? abortedBy(signal) : error;
  });
};
