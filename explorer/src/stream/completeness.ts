// Completeness of a stream for display: the share of seconds with a valid report, and the gaps.
import type { Body } from '@sealpost/protocol';

type Coverage = Body<'Coverage'>;
export type Gap = Coverage['gaps'][number];

export type Completeness = {
  /** The measured range, both ends included. It starts with the first report if that is later than the requested start. */
  readonly from: number;
  readonly to: number;
  readonly coveredSeconds: number;
  readonly gapCount: number;
  /** Newest first. */
  readonly gaps: readonly Gap[];
  readonly longest: Gap | undefined;
  /** Whether these are all gaps: a response lists the first 1,000. */
  readonly isWhole: boolean;
};

/** Measures a response. `firstSecond`: the stream's first stored second, if it is within the range. */
export function measure(coverage: Coverage, firstSecond?: number): Completeness {
  const from = Math.max(coverage.from, firstSecond ?? 0);
  const gaps = coverage.gaps.filter((gap) => gap.to >= from);
  return {
    from,
    to: coverage.to,
    coveredSeconds: coverage.coveredSeconds,
    gapCount: coverage.gapCount - (coverage.gaps.length - gaps.length),
    gaps: gaps.toReversed(),
    longest: gaps.reduce<Gap | undefined>(
      (longest, gap) => (gap.seconds > (longest?.seconds ?? 0) ? gap : longest),
      undefined,
    ),
    isWhole: coverage.gapCount === coverage.gaps.length,
  };
}

/** The part of a measured range from a second on; undefined if not all gaps are known. */
export function measureFrom(whole: Completeness, second: number): Completeness | undefined {
  if (!whole.isWhole) return undefined;
  const from = Math.max(whole.from, second);
  const gaps = whole.gaps.filter(({ to }) => to >= from).map((gap) => cut(gap, from, whole.to));
  const missing = gaps.reduce((sum, { seconds }) => sum + seconds, 0);
  const seconds = Math.max(0, whole.to - from + 1);
  return {
    ...measure({ ...emptyCoverage, from, to: whole.to, gaps: gaps.toReversed(), gapCount: gaps.length }),
    coveredSeconds: seconds - missing,
  };
}

const emptyCoverage: Coverage = {
  from: 0,
  to: 0,
  reports: 0,
  coveredSeconds: 0,
  completeness: 0,
  gapCount: 0,
  gaps: [],
  medianIntervalMs: null,
};

const cut = (gap: Gap, from: number, to: number): Gap => {
  const [first, last] = [Math.max(gap.from, from), Math.min(gap.to, to)];
  return { from: first, to: last, seconds: last - first + 1 };
};

/** A share in percent, rounded down, so that only complete coverage reads 100 %. */
export function formatShare(part: number, whole: number): string {
  if (whole <= 0) return '–';
  return `${Math.floor((part * 10_000) / whole) / 100} %`;
}

/** One cell of the strip: its seconds, and the share of them with a valid report; undefined before the first report. */
export type Cell = { readonly from: number; readonly to: number; readonly covered: number | undefined };

/** The range in `count` cells, oldest first. */
export function cellsOf(
  { from, gaps }: Completeness,
  span: { readonly from: number; readonly to: number },
  count: number,
): readonly Cell[] {
  const size = (span.to - span.from + 1) / count;
  return Array.from({ length: count }, (_, i): Cell => {
    const cell = { from: Math.round(span.from + i * size), to: Math.round(span.from + (i + 1) * size) - 1 };
    const first = Math.max(cell.from, from);
    if (first > cell.to) return { ...cell, covered: undefined };
    const missing = gaps
      .map((gap) => cut(gap, first, cell.to))
      .reduce((sum, { seconds }) => sum + Math.max(0, seconds), 0);
    return { ...cell, covered: (cell.to - first + 1 - missing) / (cell.to - first + 1) };
  });
}

/** The color grade of a cell. */
export function gradeOf(covered: number | undefined): 'none' | 'whole' | 'most' | 'half' | 'little' | 'nothing' {
  if (covered === undefined) return 'none';
  if (covered >= 1) return 'whole';
  if (covered >= 0.99) return 'most';
  if (covered >= 0.9) return 'half';
  return covered > 0 ? 'little' : 'nothing';
}
