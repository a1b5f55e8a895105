// Reads what a stream has not delivered yet over REST, page by page: from the last delivered report, or from the oldest second that
// the server retains.
import { limits, secondsMax } from '@sealpost/protocol';
import { SealpostError } from '../errors.ts';
import { continueAfter, type PageCursor } from '../page-walk.ts';
import { type ReceivedPage, readLargePage } from '../reads.ts';
import type { Requester } from '../request/requester.ts';
import { type ReceivedReport, stepMsOf } from './received-report.ts';
import type { StreamGap } from './state.ts';

/** Retries while the oldest retained second advances. */
const oldestTriesMax = 5;

/** The first second that can hold a report observed after `lastMs`. */
const secondAfter = (feedId: string, lastMs: number): number =>
  stepMsOf(feedId) === 1 ? Math.floor((lastMs + 1) / 1_000) : Math.ceil((lastMs + 1) / 1_000);

/** The first retained second, where `start` was rejected for being older. */
const oldestRetained = (error: unknown, start: number): number | undefined => {
  if (!(error instanceof SealpostError) || error.code !== 'timestamp_out_of_bounds') return undefined;
  const { oldestTimestamp } = error.details;
  return typeof oldestTimestamp === 'number' && oldestTimestamp > start ? Math.ceil(oldestTimestamp) : undefined;
};

/** A page from a second, or from the oldest that is retained. That one advances between requests, so each retry starts a little later. */
const readRetainedPage = async (
  requester: Pick<Requester, 'get' | 'bounds'>,
  feedId: string,
  from: number,
  signal: AbortSignal,
): Promise<ReceivedPage & { readonly start: number }> => {
  let start = from;
  for (let tries = 1; ; tries += 1)
    try {
      // The largest page, so that one second of a stream in milliseconds fits.
      return { start, ...(await readLargePage(requester, feedId, start, limits.pageLimitMax, { signal })) };
    } catch (error) {
      const oldest = oldestRetained(error, start);
      if (oldest === undefined || tries > oldestTriesMax) throw error;
      start = oldest + 2 ** (tries - 1) - 1;
    }
};

/**
 * Everything stored that was observed after `lastMs`, in pages, oldest first, to the end as it is when the last page is read; `onGap` is called
 * for what is no longer retained, before the page that follows it. The last page is the one that the server says is the last, or an empty one: a
 * short page may be all that a server returns at once.
 */
export async function* readAfter(
  requester: Pick<Requester, 'get' | 'bounds'>,
  feedId: string,
  lastMs: number,
  signal: AbortSignal,
  onGap: (gap: StreamGap) => void,
): AsyncGenerator<readonly ReceivedReport[], void> {
  const first = secondAfter(feedId, lastMs);
  let cursor: PageCursor | undefined = first > secondsMax ? undefined : { start: first };
  for (let after = lastMs; cursor !== undefined; ) {
    const { start, reports, more } = await readRetainedPage(requester, feedId, cursor.start, signal);
    if (start > cursor.start) {
      onGap({ feedId, from: cursor.start, to: start });
      cursor = { start };
    }
    const found = reports.filter(({ observationsMs }) => observationsMs > after);
    const { accept, next } = continueAfter(feedId, cursor, { reports, more }, found.length);
    if (accept && found.length > 0) {
      yield found;
      after = found.at(-1)?.observationsMs ?? after;
    }
    cursor = next;
  }
}
