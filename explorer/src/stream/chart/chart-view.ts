// What the chart shows: a length of time that follows the newest report or stays at a fixed end, candles or line, and a second stream to compare
// with. Pure, and kept in the address, so that a link shows the same.
import { secondsMax as lastSecond, parseFeedId } from '@sealpost/protocol';
import type { AddressProblem } from '../../ui/address-problem.ts';
import { formatAge } from '../../ui/format.ts';
import { alignedEnd, type ChartWindow, resolutionOf } from './resolution.ts';

export type ChartKind = 'candles' | 'line';

export type ChartView = {
  /** Length of time in view. */
  readonly seconds: number;
  /** The first second after it; undefined while the chart follows the newest report. */
  readonly end: number | undefined;
  readonly kind: ChartKind;
  /** Feed ID of a second stream. */
  readonly compare: string | undefined;
};

/** The ranges that have a button. */
export const ranges = {
  '1m': { label: '1m', words: 'minute', seconds: 60 },
  '5m': { label: '5m', words: '5 minutes', seconds: 300 },
  '15m': { label: '15m', words: '15 minutes', seconds: 900 },
  '1h': { label: '1h', words: 'hour', seconds: 3_600 },
  '6h': { label: '6h', words: '6 hours', seconds: 21_600 },
  '1d': { label: '1d', words: 'day', seconds: 86_400 },
  '7d': { label: '7d', words: '7 days', seconds: 604_800 },
  '30d': { label: '30d', words: '30 days', seconds: 2_592_000 },
} as const satisfies Record<string, { readonly label: string; readonly words: string; readonly seconds: number }>;

export type RangeName = keyof typeof ranges;
export const rangeNames = Object.keys(ranges) as readonly RangeName[]; // keys of its own

const defaultRange: RangeName = '5m';
const secondsMin = 5;
const secondsMax = ranges['30d'].seconds;
/** The first second that a permalink may have. */
const firstSecond = 0;

const clampSeconds = (seconds: number): number => Math.min(secondsMax, Math.max(secondsMin, seconds));

/** The named range of this length; undefined for a length of its own. */
const rangeNameOf = (seconds: number): RangeName | undefined =>
  rangeNames.find((name) => ranges[name].seconds === seconds);

/** For `in the last …`. */
export function rangeWordsOf(seconds: number): string {
  const name = rangeNameOf(seconds);
  return name === undefined ? formatAge(seconds * 1_000) : ranges[name].words;
}

const parseSeconds = (text: string | null): number | undefined => {
  if (text !== null && Object.hasOwn(ranges, text)) return ranges[text as RangeName].seconds; // it is a key
  const [, seconds] = /^([0-9]{1,8})s$/.exec(text ?? '') ?? [];
  return seconds === undefined ? undefined : clampSeconds(Number(seconds));
};

const parseFixed = (text: string | null): ChartWindow | undefined => {
  const [, from, to] = /^([0-9]{1,10})-([0-9]{1,10})$/.exec(text ?? '') ?? [];
  if (from === undefined || to === undefined || Number(to) - Number(from) < 1 || Number(to) > lastSecond)
    return undefined;
  return { from: Number(from), to: Number(to) };
};

const parseCompare = (text: string | null): string | undefined => {
  try {
    return text === null ? undefined : parseFeedId(text);
  } catch {
    return undefined; // not a feed ID
  }
};

/** The view in the address's query. What cannot be read is left out, and among the problems. */
export function parseView(query: URLSearchParams): ChartView {
  const fixed = parseFixed(query.get('view'));
  const length = fixed === undefined ? parseSeconds(query.get('range')) : clampSeconds(fixed.to - fixed.from);
  const seconds = length ?? ranges[defaultRange].seconds;
  return {
    seconds,
    end: fixed === undefined ? undefined : Math.max(firstSecond + seconds, fixed.to),
    kind: query.get('kind') === 'line' ? 'line' : 'candles',
    compare: parseCompare(query.get('compare')),
  };
}

/** What is wrong with each argument that cannot be read. */
const viewRules: Readonly<Record<string, (text: string) => string | undefined>> = {
  range: (text) =>
    parseSeconds(text) === undefined ? `must be ${rangeNames.join(', ')}, or seconds, such as 90s.` : undefined,
  view: (text) =>
    parseFixed(text) === undefined ? 'must be two Unix times, such as 1763190000-1763193600.' : undefined,
  kind: (text) => (text === 'line' || text === 'candles' ? undefined : 'must be candles or line.'),
  compare: (text) => (parseCompare(text) === undefined ? 'must be a feed ID: 0x and 64 hex digits.' : undefined),
};

/** The stream to compare with, if the user may read it. */
export const comparedIn = (
  { compare }: Pick<ChartView, 'compare'>,
  readable: ReadonlySet<string>,
): string | undefined => (compare !== undefined && readable.has(compare) ? compare : undefined);

/** The arguments of the address that the chart ignores. */
export function viewProblems(query: URLSearchParams, readable: ReadonlySet<string>): readonly AddressProblem[] {
  const malformed = Object.entries(viewRules).flatMap(([name, problemOf]) => {
    const text = query.get(name);
    const problem = text === null ? undefined : problemOf(text);
    return problem === undefined ? [] : [{ name, text: `${name} ${problem}` }];
  });
  const { compare } = parseView(query);
  if (compare === undefined || readable.has(compare)) return malformed;
  const text = 'compare is not a stream of this server, or your account may not read it.';
  return [...malformed, { name: 'compare', text }];
}

/** The query with this view in it; what is usual is left out, what belongs to others stays. */
export function writeView(query: URLSearchParams, { seconds, end, kind, compare }: ChartView): URLSearchParams {
  const next = new URLSearchParams(query);
  const set = (name: string, value: string | undefined): void =>
    value === undefined ? next.delete(name) : next.set(name, value);
  const length = Math.max(1, Math.round(seconds));
  const name = rangeNameOf(length);
  const to = end === undefined ? undefined : Math.round(end);
  set('range', to !== undefined || name === defaultRange ? undefined : (name ?? `${length}s`));
  set('view', to === undefined ? undefined : `${Math.max(firstSecond, to - length)}-${to}`);
  set('kind', kind === 'line' ? kind : undefined);
  set('compare', compare);
  return next;
}

/** The time in view. While it follows, it ends with the bar that is not over yet. */
export function windowOf({ seconds, end }: Pick<ChartView, 'seconds' | 'end'>, nowSeconds: number): ChartWindow {
  const to = end ?? alignedEnd(nowSeconds, resolutionOf(seconds));
  return { from: to - seconds, to };
}

/** Ends at this second; from the newest report on, it follows. */
const endAt = (view: ChartView, end: number, nowSeconds: number): ChartView => {
  const newest = windowOf({ seconds: view.seconds, end: undefined }, nowSeconds).to;
  return { ...view, end: end >= newest ? undefined : Math.max(firstSecond + view.seconds, end) };
};

/** Moves by seconds; negative ones into the past. */
export const panView = (view: ChartView, seconds: number, nowSeconds: number): ChartView =>
  endAt(view, windowOf(view, nowSeconds).to + seconds, nowSeconds);

/**
 * Changes the length by a factor; less than 1 zooms in. The time at `share` of the width stays where it is; without it, the middle, or
 * the newest report while the chart follows.
 */
export function zoomView(view: ChartView, factor: number, nowSeconds: number, share?: number): ChartView {
  const seconds = clampSeconds(view.seconds * factor);
  if (view.end === undefined && share === undefined) return { ...view, seconds };
  const { from, to } = windowOf(view, nowSeconds);
  const anchor = from + (to - from) * (share ?? 0.5);
  return endAt({ ...view, seconds }, anchor + seconds * (1 - (share ?? 0.5)), nowSeconds);
}

/** Exactly this time. */
export function viewOf(view: ChartView, { from, to }: ChartWindow, nowSeconds: number): ChartView {
  const seconds = clampSeconds(to - from);
  return endAt({ ...view, seconds }, (from + to + seconds) / 2, nowSeconds);
}

/** A named range, ending with the newest report. */
export const followView = (view: ChartView, seconds = view.seconds): ChartView => ({
  ...view,
  seconds,
  end: undefined,
});
