// Latencies of single requests over a run, and whether they rise: compared are stretches in which nothing was done to the deployment.
import { medianOf, medianSlope } from './measures.ts';

/** One entry of each list for each request; times are of the clock. */
export type Latencies = { readonly atMs: readonly number[]; readonly tookMs: readonly number[] };

/** Collects latencies in memory that it takes at once, so that it does not look like a leak. Beyond its capacity none are kept. */
export const createLatencies = (capacity: number) => {
  const [atMs, tookMs] = [new Float64Array(capacity).fill(1), new Float32Array(capacity).fill(1)]; // zeros would take no memory yet
  let count = 0;
  return {
    add: (at: number, took: number): void => {
      if (count === capacity) return;
      atMs[count] = at;
      tookMs[count] = took;
      count += 1;
    },
    list: (): Latencies => ({ atMs: [...atMs.subarray(0, count)], tookMs: [...tookMs.subarray(0, count)] }),
  };
};

export type Span = { readonly fromMs: number; readonly toMs: number };

/** Requests whose 99th percentile is one point. */
const groupSize = 300;

const quantileOf = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? 0;

export type Drift = {
  /** The median of the groups. */
  readonly p99Ms: number;
  /** From the first to the last group, by the median slope between groups. */
  readonly percent: number;
  readonly groups: number;
};

/** How the 99th percentile moved outside of the spans; undefined with fewer than two groups of requests. */
export const driftOf = ({ atMs, tookMs }: Latencies, spans: readonly Span[], warmUpMs: number): Drift | undefined => {
  const begun = atMs[0] ?? 0;
  const calm = atMs
    .map((at, i) => ({ atMs: at, tookMs: tookMs[i] ?? 0 }))
    .filter(({ atMs: at }) => at - begun >= warmUpMs && !spans.some(({ fromMs, toMs }) => at >= fromMs && at <= toMs));
  const points = Array.from({ length: Math.floor(calm.length / groupSize) }, (_, i) => {
    const group = calm.slice(i * groupSize, (i + 1) * groupSize);
    return {
      atMs: medianOf(group.map((one) => one.atMs)),
      value: quantileOf(
        group.map((one) => one.tookMs),
        0.99,
      ),
    };
  });
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < 2) return undefined;
  const p99Ms = medianOf(points.map(({ value }) => value));
  return { p99Ms, percent: ((medianSlope(points) * (last.atMs - first.atMs)) / p99Ms) * 100, groups: points.length };
};
