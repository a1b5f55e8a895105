// Owns reading a span of a stream page by page: to its end, or on with the present by asking again gently.
import { limits, type ReportJson, timeResolutionOf } from '@sealpost/protocol';
import { readFeedId, readSeconds } from './arguments.ts';
import { abortedBy, type Sleep } from './call.ts';
import { readWhole } from './options.ts';
import { page, type ReportPage } from './reads.ts';
import type { CallOptions, Requester } from './requester.ts';

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

/** Where reading goes on, and the reports of that very second that are known already. */
type Place = { readonly start: number; readonly known: ReadonlySet<string> };

/**
 * Pages of a span, oldest first, none of them empty. A page is asked for only when the one before has been used up. Reports that arrive
 * late, behind what was read already, are not seen by following: read the span again, or look at its coverage.
 */
export async function* pages(
  requester: Pick<Requester, 'get'>,
  feedId: string,
  options: PagesOptions,
  sleep: Sleep,
): AsyncGenerator<ReportPage, void, undefined> {
  const { from, to, limit = limits.pageLimitMax, follow = false } = options;
  const end = to === undefined ? Number.POSITIVE_INFINITY : readSeconds(to, 'to');
  // The last second is over once it has its one report; a stream that counts milliseconds may have more to come.
  const overAt = timeResolutionOf(readFeedId(feedId)) === 'seconds' ? end : end + 1;
  const pollMs = readWhole('pollMs', options.pollMs ?? 1_000, 100, pollMaxMs);
  let place: Place = { start: readSeconds(from, 'from'), known: new Set() };
  while (place.start <= end) {
    const read = await page(requester, feedId, place.start, limit, options);
    const reports = read.reports.filter((one) => one.observationsTimestamp <= end && !place.known.has(one.fullReport));
    if (reports.length > 0) yield { ...read, reports };
    const newest = read.reports.at(-1);
    if ((newest?.observationsTimestamp ?? 0) >= overAt || !(read.more || follow)) return;
    place = read.more ? { start: read.nextStartTimestamp, known: new Set() } : lastSecondOf(read.reports, place);
    await pause(read.more ? pacingMs(read) : pollMs, options.signal, sleep);
  }
}

// The newest second may not be over: it is asked for again, and what is known of it left out.
const lastSecondOf = (reports: readonly ReportJson[], place: Place): Place => {
  const start = reports.at(-1)?.observationsTimestamp;
  if (start === undefined) return place;
  const known = reports.filter((one) => one.observationsTimestamp === start).map((one) => one.fullReport);
  return { start, known: new Set(known) };
};

/** With no request left, the time in which the server grants one more. */
const pacingMs = ({ details: { rateLimit } }: ReportPage): number =>
  rateLimit !== undefined && rateLimit.remaining === 0 ? Math.ceil(1_000 / Math.max(1, rateLimit.limit)) : 0;

const pause = async (ms: number, signal: AbortSignal | undefined, sleep: Sleep): Promise<void> => {
  if (ms === 0) return;
  await sleep(ms, signal ?? new AbortController().signal).catch((error: unknown) => {
    throw signal?.aborted ? abortedBy(signal) : error;
  });
};
