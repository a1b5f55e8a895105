// Decides where reading continues after a page, on any server: by its link where it sends one, else until a page is empty. Rejects pages
// after which reading would lose reports or never end (D95).
import { secondsMax } from '@sealpost/protocol';
import { SealpostError } from './errors.ts';
import { type ReceivedReport, stepMsOf, windowStartMs } from './stream/received-report.ts';

/** Where to read next. */
export type PageCursor = {
  readonly start: number;
  /** The second before `start` seemed complete up to this moment; undefined unless that is to be checked. */
  readonly afterMs?: number;
  /** The second `start` is read again with the largest page, because it did not join what follows it. */
  readonly isRecheck?: boolean;
};

/** A page as a server returned it. */
export type WalkedPage = {
  readonly reports: readonly ReceivedReport[];
  /** What its Link header says; undefined: the server sends none. */
  readonly more: boolean | undefined;
};

const invalidPage = (message: string): SealpostError => new SealpostError('invalid_page', message);

/** Throws unless the reports start at `start` and ascend. */
export function checkPage(reports: readonly ReceivedReport[], start: number, more: boolean | undefined): void {
  if (reports.length === 0 && more === true)
    throw invalidPage('The server returned an empty page that links to a next one.');
  let lastMs = 0;
  for (const { report, observationsMs } of reports) {
    const { observationsTimestamp: second } = report;
    if (second < start)
      throw invalidPage(`The server returned a report observed at ${second} in a page that starts at ${start}.`);
    if (observationsMs < lastMs) throw invalidPage(`The page that starts at ${start} is not sorted by observation.`);
    lastMs = observationsMs;
  }
}

/**
 * What follows a page: `accept` says whether its reports count, `next` where to read then; undefined at the end. `fresh` is how many of its
 * reports were not read before.
 *
 * A stream in seconds continues one second after the last report. A page of a stream in milliseconds may end within a second, so that second
 * is read again until it brings nothing new.
 */
export function continueAfter(
  feedId: string,
  cursor: PageCursor,
  { reports, more }: WalkedPage,
  fresh: number,
): { readonly accept: boolean; readonly next: PageCursor | undefined } {
  const [first, last] = [reports[0], reports.at(-1)];
  if (first === undefined || last === undefined || more === false) return { accept: true, next: undefined };
  const second = last.report.observationsTimestamp;
  const following = second === secondsMax ? undefined : { start: second + 1 };
  if (stepMsOf(feedId) === 1_000) return { accept: true, next: following };
  // Something is missing before this page: it came in meanwhile, or one page does not hold the whole second.
  if (cursor.afterMs !== undefined && windowStartMs(first) > cursor.afterMs + 1)
    return { accept: false, next: { start: cursor.start - 1, isRecheck: true } };
  if (fresh > 0 || second > cursor.start) return { accept: true, next: { start: second } };
  if (cursor.isRecheck)
    throw invalidPage(`Second ${second} of ${feedId} has more reports than a page of this server. Ask its operator.`);
  return { accept: true, next: following && { ...following, afterMs: last.observationsMs } };
}
