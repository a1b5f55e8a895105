// Coverage of a stream by hour. Ingest has counted the reports of every hour: one of a stream of seconds with 3,600 of them has no gap, so its reports
// are not read. The gaps of other hours that are over are kept for a while (D192).
import { type FeedId, timeResolutionOf } from '@sealpost/protocol';
import type { KeptValues } from '../runtime/kept-values.ts';
import { createGapFinder, type TimeRange, windowsTouching } from './coverage.ts';
import type { ReportStore, Window } from './store.ts';

const hourSeconds = 3_600;
const startOf = (second: number): number => Math.floor(second / hourSeconds) * hourSeconds;

/** How much of an hour is covered; the first and the last may be parts of one. */
export type HourCoverage = {
  /** First second of the hour. */
  readonly timestamp: number;
  /** Seconds of it that were measured. */
  readonly seconds: number;
  readonly coveredSeconds: number;
};

export type StreamCoverage = {
  /** First measured second: where the stream's first report is later than the range, that one. Absent when it has none. */
  readonly from?: number;
  readonly coveredSeconds: number;
  readonly gapCount: number;
  readonly longestGap: (TimeRange & { readonly seconds: number }) | null;
  /** When the stream was last observed; absent when it never was. */
  readonly newestMs?: number;
  readonly hours: readonly HourCoverage[];
};

/**
 * What is missing of an hour, or of a part of one. A gap at either end may continue in the next hour, so those are here; a stream may have 1,800 others in an hour,
 * of which only the sum and the longest are needed.
 */
export type HourGaps = {
  readonly missingSeconds: number;
  /** The gaps that the hour begins or ends with, at most two. */
  readonly edges: readonly TimeRange[];
  readonly innerCount: number;
  readonly longestInner: TimeRange | undefined;
};

const complete: HourGaps = { missingSeconds: 0, edges: [], innerCount: 0, longestInner: undefined };

/** Gaps by stream and hour, of hours that are over. */
export type KeptGaps = KeptValues<HourGaps>;

/** What is read of a store, by whoever bounds and paces it. */
export type CoverageReader = Pick<ReportStore, 'windows' | 'neighbours' | 'newestMs'> & {
  /** Reports of each hour that has any, by its first second. */
  readonly hourCounts: (feedId: FeedId, range: TimeRange) => Promise<ReadonlyMap<number, number>>;
  /** When the oldest report that retention keeps is observed; those before it are hidden, and may still be stored. Without it there are none. */
  readonly oldestMs?: number;
  /** Without it all reports count. */
  readonly isVisible?: (feedId: FeedId, window: Window) => boolean;
};

/** Measures a range of one stream. */
export async function readHourCoverage(
  reader: CoverageReader,
  feedId: FeedId,
  range: TimeRange,
  kept?: KeptGaps,
): Promise<StreamCoverage> {
  const newestMs = reader.newestMs(feedId);
  const hours = hoursOf(range);
  const gaps = await readGaps(reader, feedId, hours, newestMs, kept);
  const edges = joinGaps(gaps.flatMap((hour) => hour.edges));
  const [leading] = edges;
  const isStart = leading?.from === range.from && (await isBeforeFirst(reader, feedId, range.from));
  const from = isStart ? leading.to + 1 : range.from;
  const known = newestMs === undefined ? {} : { newestMs };
  if (from > range.to) return { ...known, coveredSeconds: 0, gapCount: 0, longestGap: null, hours: [] };
  return { ...known, from, ...measure(hours, gaps, isStart ? edges.slice(1) : edges, from) };
}

const secondsOf = ({ from, to }: TimeRange): number => to - from + 1;

/** Sums up what hours are missing, of which `edges` are the joined gaps at their ends, from a second on before which nothing counts. */
const measure = (
  hours: readonly TimeRange[],
  gaps: readonly HourGaps[],
  edges: readonly TimeRange[],
  from: number,
): Pick<StreamCoverage, 'coveredSeconds' | 'gapCount' | 'longestGap' | 'hours'> => {
  const inner = gaps.flatMap(({ longestInner }) => longestInner ?? []);
  const longest = [...edges, ...inner].reduce<TimeRange | undefined>(longerOf, undefined);
  const measured = hours.flatMap((hour, i): readonly HourCoverage[] => {
    if (hour.to < from) return [];
    const coveredSeconds = secondsOf(hour) - (gaps[i]?.missingSeconds ?? 0);
    return [
      {
        timestamp: startOf(hour.from),
        seconds: secondsOf({ from: Math.max(from, hour.from), to: hour.to }),
        coveredSeconds,
      },
    ];
  });
  return {
    coveredSeconds: measured.reduce((sum, { coveredSeconds }) => sum + coveredSeconds, 0),
    gapCount: edges.length + gaps.reduce((sum, { innerCount }) => sum + innerCount, 0),
    longestGap: longest === undefined ? null : { ...longest, seconds: secondsOf(longest) },
    hours: measured,
  };
};

/** The longer one of two gaps; of equal ones the earlier. */
const longerOf = (a: TimeRange | undefined, b: TimeRange): TimeRange => {
  if (a === undefined || secondsOf(b) > secondsOf(a)) return b;
  return secondsOf(b) === secondsOf(a) && b.from < a.from ? b : a;
};

/** A range cut at whole hours. */
const hoursOf = ({ from, to }: TimeRange): readonly TimeRange[] => {
  const hours: TimeRange[] = [];
  for (let start = from; start <= to; start = startOf(start) + hourSeconds)
    hours.push({ from: start, to: Math.min(to, startOf(start) + hourSeconds - 1) });
  return hours;
};

const readGaps = async (
  reader: CoverageReader,
  feedId: FeedId,
  hours: readonly TimeRange[],
  newestMs: number | undefined,
  kept: KeptGaps | undefined,
): Promise<readonly HourGaps[]> => {
  const range = { from: hours[0]?.from ?? 0, to: hours.at(-1)?.to ?? 0 };
  if (newestMs === undefined) {
    const { add, gaps } = createCollector(hours);
    add(range.from, range.to);
    return gaps;
  }
  const openStart = startOf(Math.floor(newestMs / 1_000));
  const isOver = (hour: TimeRange): boolean => hour.to < openStart && secondsOf(hour) === hourSeconds;
  const keyOf = (hour: TimeRange): string => `${feedId} ${hour.from}`;
  const before = hours.map((hour) => (isOver(hour) ? kept?.get(keyOf(hour)) : undefined));
  const found = [...before];
  if (found.includes(undefined) && timeResolutionOf(feedId) === 'seconds') {
    const counts = await reader.hourCounts(feedId, range);
    for (const [i, hour] of hours.entries()) if (counts.get(startOf(hour.from)) === hourSeconds) found[i] ??= complete;
  }
  for (const [first, end] of unknownRuns(found))
    found.splice(first, end - first, ...(await gapsOf(reader, feedId, hours.slice(first, end))));
  for (const [i, hour] of hours.entries())
    if (isOver(hour) && before[i] === undefined) kept?.put(keyOf(hour), found[i] ?? complete, 1);
  return found.map((gaps) => gaps ?? complete);
};

/** Where hours in a row are unknown: they are read together. */
const unknownRuns = (found: readonly (HourGaps | undefined)[]): readonly (readonly [number, number])[] => {
  const runs: [number, number][] = [];
  for (const [i, gaps] of found.entries()) {
    const last = runs.at(-1);
    if (gaps !== undefined) continue;
    if (last?.[1] === i) last[1] = i + 1;
    else runs.push([i, i + 1]);
  }
  return runs;
};

/** The gaps of hours in a row, whose windows are looked through page by page. */
const gapsOf = async (
  reader: CoverageReader,
  feedId: FeedId,
  hours: readonly TimeRange[],
): Promise<readonly HourGaps[]> => {
  const { isVisible = () => true } = reader;
  const range = { from: hours[0]?.from ?? 0, to: hours.at(-1)?.to ?? 0 };
  const { add, gaps } = createCollector(hours);
  const finder = createGapFinder(range, add);
  for await (const page of windowsTouching(reader, feedId, range))
    for (const window of page) if (isVisible(feedId, window)) finder.add(window);
  finder.end();
  return gaps;
};

/** Sums up gaps by hour, each of them as it is found. */
const createCollector = (hours: readonly TimeRange[]) => {
  const gaps = hours.map((hour) => ({ hour, ...complete, edges: [] as TimeRange[] })); // filled below
  const first = startOf(hours[0]?.from ?? 0);
  const addPart = (from: number, to: number): void => {
    const gap = gaps[(startOf(from) - first) / hourSeconds];
    if (gap === undefined) return;
    gap.missingSeconds += to - from + 1;
    if (from === gap.hour.from || to === gap.hour.to) gap.edges.push({ from, to });
    else {
      gap.innerCount += 1;
      gap.longestInner = longerOf(gap.longestInner, { from, to });
    }
  };
  return {
    gaps,
    add: (from: number, to: number): void => {
      for (let start = from; start <= to; start = startOf(start) + hourSeconds)
        addPart(start, Math.min(to, startOf(start) + hourSeconds - 1));
    },
  };
};

/** A gap that goes on in the next hour is one gap. */
const joinGaps = (gaps: readonly TimeRange[]): readonly TimeRange[] => {
  const joined: TimeRange[] = [];
  for (const gap of gaps) {
    const last = joined.at(-1);
    if (last?.to === gap.from - 1) joined[joined.length - 1] = { from: last.from, to: gap.to };
    else joined.push(gap);
  }
  return joined;
};

const isBeforeFirst = async (
  { neighbours, oldestMs = 0 }: Pick<CoverageReader, 'neighbours' | 'oldestMs'>,
  feedId: FeedId,
  second: number,
): Promise<boolean> => {
  const { previous, damaged } = await neighbours(feedId, second);
  return damaged !== true && (previous === undefined || previous.observationsMs < oldestMs);
};
