// Coverage of a stream by hour. Ingest has counted the reports of every hour: one of a stream of seconds with 3,600 of them has no gap, so its reports
// are not read. The gaps of other hours that are over are kept for a while (D192).
import { type FeedId, timeResolutionOf } from '@sealpost/protocol';
import type { KeptValues } from '../runtime/kept-values.ts';
import { coverageOf, type TimeRange, windowsTouching } from './coverage.ts';
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

/** Gaps by stream and hour, of hours that are over. */
export type KeptGaps = KeptValues<readonly TimeRange[]>;

/** What is read of a store, by whoever bounds and paces it. */
export type CoverageReader = Pick<ReportStore, 'windows' | 'neighbours' | 'newestMs'> & {
  /** Reports of each hour that has any, by its first second. */
  readonly hourCounts: (feedId: FeedId, range: TimeRange) => Promise<ReadonlyMap<number, number>>;
  /** Without it all reports count. */
  readonly isVisible?: (feedId: FeedId, window: Window) => boolean;
};

/** Measures a range of one stream. */
export const readHourCoverage = async (
  reader: CoverageReader,
  feedId: FeedId,
  range: TimeRange,
  kept?: KeptGaps,
): Promise<StreamCoverage> => {
  const newestMs = reader.newestMs(feedId);
  const gaps = joinGaps(await readGaps(reader, feedId, range, newestMs, kept));
  const [leading] = gaps;
  const isStart = leading?.from === range.from && (await isBeforeFirst(reader, feedId, range.from));
  const from = isStart ? leading.to + 1 : range.from;
  const counted = isStart ? gaps.slice(1) : gaps;
  const known = newestMs === undefined ? {} : { newestMs };
  if (from > range.to) return { ...known, coveredSeconds: 0, gapCount: 0, longestGap: null, hours: [] };
  return { ...known, ...measure(counted, { from, to: range.to }) };
};

const secondsOf = ({ from, to }: TimeRange): number => to - from + 1;

const measure = (gaps: readonly TimeRange[], range: TimeRange) => {
  let longest: TimeRange | undefined;
  for (const gap of gaps) if (longest === undefined || secondsOf(gap) > secondsOf(longest)) longest = gap;
  const hours: { timestamp: number; seconds: number; coveredSeconds: number }[] = hoursOf(range).map((hour) => ({
    timestamp: startOf(hour.from),
    seconds: secondsOf(hour),
    coveredSeconds: secondsOf(hour),
  }));
  const first = startOf(range.from);
  for (const gap of gaps)
    for (const part of hoursOf(gap)) {
      const hour = hours[(startOf(part.from) - first) / hourSeconds];
      if (hour !== undefined) hour.coveredSeconds -= secondsOf(part);
    }
  return {
    from: range.from,
    coveredSeconds: hours.reduce((sum, { coveredSeconds }) => sum + coveredSeconds, 0),
    gapCount: gaps.length,
    longestGap: longest === undefined ? null : { ...longest, seconds: secondsOf(longest) },
    hours,
  };
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
  range: TimeRange,
  newestMs: number | undefined,
  kept: KeptGaps | undefined,
): Promise<readonly TimeRange[]> => {
  if (newestMs === undefined) return [range];
  const hours = hoursOf(range);
  const openStart = startOf(Math.floor(newestMs / 1_000));
  const isOver = (hour: TimeRange): boolean => hour.to < openStart && secondsOf(hour) === hourSeconds;
  const keyOf = (hour: TimeRange): string => `${feedId} ${hour.from}`;
  const before = hours.map((hour) => (isOver(hour) ? kept?.get(keyOf(hour)) : undefined));
  const found = [...before];
  if (found.includes(undefined) && timeResolutionOf(feedId) === 'seconds') {
    const counts = await reader.hourCounts(feedId, range);
    for (const [i, hour] of hours.entries()) if (counts.get(startOf(hour.from)) === hourSeconds) found[i] ??= [];
  }
  for (const [first, end] of unknownRuns(found)) {
    const run = hours.slice(first, end);
    const gaps = await gapsOf(reader, feedId, { from: run[0]?.from ?? 0, to: run.at(-1)?.to ?? 0 });
    const parts = gaps.flatMap(hoursOf);
    for (const [i, hour] of run.entries())
      found[first + i] = parts.filter(({ from }) => from >= hour.from && from <= hour.to);
  }
  for (const [i, hour] of hours.entries()) {
    const gaps = found[i] ?? [];
    if (isOver(hour) && before[i] === undefined) kept?.put(keyOf(hour), gaps, gaps.length + 1);
  }
  return found.flatMap((gaps) => gaps ?? []);
};

/** Where hours in a row are unknown: they are read together. */
const unknownRuns = (found: readonly (readonly TimeRange[] | undefined)[]): readonly (readonly [number, number])[] => {
  const runs: [number, number][] = [];
  for (const [i, gaps] of found.entries()) {
    const last = runs.at(-1);
    if (gaps !== undefined) continue;
    if (last?.[1] === i) last[1] = i + 1;
    else runs.push([i, i + 1]);
  }
  return runs;
};

const gapsOf = async (reader: CoverageReader, feedId: FeedId, range: TimeRange): Promise<readonly TimeRange[]> => {
  const { isVisible = () => true } = reader;
  async function* visible() {
    for await (const page of windowsTouching(reader, feedId, range))
      yield page.filter((window) => isVisible(feedId, window));
  }
  const { gaps } = await coverageOf(visible(), range, Number.POSITIVE_INFINITY);
  return gaps.map(({ from, to }) => ({ from, to }));
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
  reader: Pick<ReportStore, 'neighbours'>,
  feedId: FeedId,
  second: number,
): Promise<boolean> => {
  const { previous, damaged } = await reader.neighbours(feedId, second);
  return previous === undefined && damaged !== true;
};
