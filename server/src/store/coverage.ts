// How complete a stream is in a time range. A second is covered when a report is valid in it, whatever the stream's resolution: that is what a
// reader asks for at that second.
import { type FeedId, secondsMax } from '@sealpost/protocol';
import type { ReportStore, Window } from './store.ts';

/** Whole seconds, both ends included. */
export type TimeRange = { readonly from: number; readonly to: number };

/** Seconds in a row in which no report holds, both ends included. */
export type CoverageGap = TimeRange & { readonly seconds: number };

export type Coverage = TimeRange & {
  /** Reports that hold in at least one second of the range. */
  readonly reports: number;
  readonly coveredSeconds: number;
  /** Covered seconds over all seconds of the range, 0 to 1. */
  readonly completeness: number;
  readonly gapCount: number;
  /** The first 1,000 gaps, oldest first. */
  readonly gaps: readonly CoverageGap[];
  /** The middle one of the times between successive observations, the lower of two; null with fewer than two reports. */
  readonly medianIntervalMs: number | null;
};

const answeredGapsMax = 1_000;
const windowsPerPage = 1_100; // more than the 1,000 that a second can hold, and some 2 ms of reading

const secondOf = (ms: number): number => Math.floor(ms / 1_000);

/** Follows windows through a range, ascending and without overlaps, and calls back with each gap before, between and after them. */
export function createGapFinder({ from, to }: TimeRange, onGap: (from: number, to: number) => void) {
  let next = from;
  const passTo = (end: number): void => {
    if (end >= next) onGap(next, end);
  };
  return {
    /** Returns whether the window touches the range; another one is skipped. */
    add: ({ validFromMs, observationsMs }: Window): boolean => {
      const first = Math.max(from, secondOf(validFromMs));
      const last = Math.min(to, secondOf(observationsMs));
      if (first > last) return false;
      passTo(first - 1);
      next = Math.max(next, last + 1);
      return true;
    },
    end: (): void => passTo(to),
  };
}

/** Measures a range by the windows that touch it, in pages, ascending and without overlaps; others are skipped. */
export async function coverageOf(
  pages: AsyncIterable<readonly Window[]> | Iterable<readonly Window[]>,
  { from, to }: TimeRange,
): Promise<Coverage> {
  const gaps: CoverageGap[] = [];
  const intervals = createMedian();
  let [reports, missingSeconds, gapCount] = [0, 0, 0];
  let lastMs: number | undefined;
  const finder = createGapFinder({ from, to }, (start, end) => {
    gapCount += 1;
    missingSeconds += end - start + 1;
    if (gaps.length < answeredGapsMax) gaps.push({ from: start, to: end, seconds: end - start + 1 });
  });
  for await (const page of pages) {
    for (const window of page) {
      if (!finder.add(window)) continue;
      reports += 1;
      if (lastMs !== undefined) intervals.add(window.observationsMs - lastMs);
      lastMs = window.observationsMs;
    }
  }
  finder.end();
  const coveredSeconds = to - from + 1 - missingSeconds;
  const completeness = coveredSeconds / (to - from + 1);
  return { from, to, reports, coveredSeconds, completeness, gapCount, gaps, medianIntervalMs: intervals.median() };
}

// Counted by value: a stream has few different intervals, and a month of them would not fit in memory one by one.
const createMedian = () => {
  const counts = new Map<number, number>();
  let total = 0;
  return {
    add: (value: number): void => {
      counts.set(value, (counts.get(value) ?? 0) + 1);
      total += 1;
    },
    median: (): number | null => {
      let seen = 0;
      for (const [value, count] of [...counts].sort(([a], [b]) => a - b)) {
        seen += count;
        if (seen * 2 >= total) return value;
      }
      return null;
    },
  };
};

/** Reads the windows of a stream that touch a range, in pages, ascending. */
export async function* windowsTouching(
  reports: Pick<ReportStore, 'windows'>,
  feedId: FeedId,
  { from, to }: TimeRange,
): AsyncGenerator<readonly Window[]> {
  let lastMs = -1;
  for (let start = from; ; start = secondOf(lastMs)) {
    const page = await reports.windows(feedId, start, to, windowsPerPage);
    // A page begins on a whole second, of which the page before may have held a part.
    const fresh = page.filter(({ observationsMs }) => observationsMs > lastMs);
    yield fresh;
    lastMs = fresh.at(-1)?.observationsMs ?? lastMs;
    if (page.length < windowsPerPage) break;
  }
  // One that is observed after the range may have begun to hold inside it.
  yield await reports.windows(feedId, to + 1, secondsMax, 1);
}
