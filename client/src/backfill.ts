// Owns reading what a stream has not delivered yet, over REST: page by page, from the last delivered report on, or from the oldest moment
// that the server still keeps.
import { SealpostError } from './errors.ts';
import { parseReceived, type ReceivedReport, stepMsOf } from './received-report.ts';
import type { Requester } from './requester.ts';

/** What a stream can no longer deliver. */
export type StreamGap = {
  readonly feedId: string;
  /** Reports observed from this second on… */
  readonly from: number;
  /** …to before this second are older than the server keeps. */
  readonly to: number;
};

/** Reports of one request: the most that a page may have, so that one second of a millisecond stream always fits. */
const pageReports = 1_000;
/** How often the oldest kept second is followed while it moves on. */
const oldestTriesMax = 5;

/** The first second that can hold a report observed after `lastMs`. */
const secondAfter = (feedId: string, lastMs: number): number =>
  stepMsOf(feedId) === 1 ? Math.floor((lastMs + 1) / 1_000) : Math.ceil((lastMs + 1) / 1_000);

/** The first second that is kept, where that is why `start` was refused. */
const oldestKept = (error: unknown, start: number): number | undefined => {
  if (!(error instanceof SealpostError) || error.code !== 'timestamp_out_of_bounds') return undefined;
  const { oldestTimestamp } = error.details;
  return typeof oldestTimestamp === 'number' && oldestTimestamp > start ? Math.ceil(oldestTimestamp) : undefined;
};

type Page = { readonly start: number; readonly reports: readonly unknown[]; readonly more: boolean | undefined };

/** A page from a second on, or from the oldest that is kept. That one moves on between two questions, so each asks a little later. */
const readPage = async (
  requester: Pick<Requester, 'get'>,
  feedId: string,
  from: number,
  signal: AbortSignal,
): Promise<Page> => {
  let start = from;
  for (let tries = 1; ; tries += 1) {
    const target = `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${start}&limit=${pageReports}`;
    try {
      const { body, more } = await requester.get<{ readonly reports: readonly unknown[] }>(target, { signal });
      return { start, reports: body.reports, more };
    } catch (error) {
      const oldest = oldestKept(error, start);
      if (oldest === undefined || tries > oldestTriesMax) throw error;
      start = oldest + 2 ** (tries - 1) - 1;
    }
  }
};

/**
 * Everything stored that was observed after `lastMs`, in pages, oldest first, to the end as it is when the last page is read; `onGap` hears
 * what is no longer kept, before the page that follows it. A short page is the last one, unless the stream counts milliseconds: those pages
 * end on a whole second.
 */
export async function* readAfter(
  requester: Pick<Requester, 'get'>,
  feedId: string,
  lastMs: number,
  signal: AbortSignal,
  onGap: (gap: StreamGap) => void,
): AsyncGenerator<readonly ReceivedReport[], void> {
  for (let after = lastMs; ; ) {
    const from = secondAfter(feedId, after);
    const { start, reports, more } = await readPage(requester, feedId, from, signal);
    if (start > from) onGap({ feedId, from, to: start });
    const found = reports.map(parseReceived).filter(({ observationsMs }) => observationsMs > after);
    const last = found.at(-1);
    if (last === undefined) return;
    yield found;
    after = last.observationsMs;
    if (more === false || (more !== true && stepMsOf(feedId) === 1_000 && reports.length < pageReports)) return;
  }
}
