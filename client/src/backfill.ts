// Owns reading what a stream has not delivered yet, over REST: page by page, from the last delivered report on.
import { parseReceived, type ReceivedReport, stepMsOf } from './received-report.ts';
import type { Requester } from './requester.ts';

/** Reports of one request: the most that a page may have, so that one second of a millisecond stream always fits. */
const pageReports = 1_000;

/** The first second that can hold a report observed after `lastMs`. */
const secondAfter = (feedId: string, lastMs: number): number =>
  stepMsOf(feedId) === 1 ? Math.floor((lastMs + 1) / 1_000) : Math.ceil((lastMs + 1) / 1_000);

/**
 * Everything stored that was observed after `lastMs`, in pages, oldest first, to the end as it is when the last page is read.
 * A short page is the last one, unless the stream counts milliseconds: those pages end on a whole second.
 */
export async function* readAfter(
  requester: Pick<Requester, 'get'>,
  feedId: string,
  lastMs: number,
  signal: AbortSignal,
): AsyncGenerator<readonly ReceivedReport[], void> {
  for (let after = lastMs; ; ) {
    const start = secondAfter(feedId, after);
    const target = `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${start}&limit=${pageReports}`;
    const { body, more } = await requester.get<{ readonly reports: readonly unknown[] }>(target, { signal });
    const found = body.reports.map(parseReceived).filter(({ observationsMs }) => observationsMs > after);
    const last = found.at(-1);
    if (last === undefined) return;
    yield found;
    after = last.observationsMs;
    if (more === false || (more !== true && stepMsOf(feedId) === 1_000 && body.reports.length < pageReports)) return;
  }
}
