// A histogram of latencies of fixed size, as HDR histograms are: linear within each power of two, so that every value is kept to 1 %.

export type Histogram = {
  readonly add: (microseconds: number) => void;
  /** In microseconds, at most 1 % above the value; 0 without values. */
  readonly quantile: (q: number) => number;
  readonly count: () => number;
  readonly max: () => number;
};

/** Buckets of each power of two. */
const subBuckets = 128;
/** 2^32 µs are 71 minutes. */
const powers = 32;

/** The first 2 × 128 values have a bucket each; from there on every power of two has 128. */
const indexOf = (value: number): number => {
  if (value < 2 * subBuckets) return value;
  const power = 31 - Math.clz32(value);
  const shift = power - 7;
  return (shift + 1) * subBuckets + (value >>> shift) - subBuckets;
};

/** The highest value of a bucket. */
const highestOf = (index: number): number => {
  if (index < 2 * subBuckets) return index;
  const shift = Math.floor(index / subBuckets) - 1;
  return ((index % subBuckets) + subBuckets + 1) * 2 ** shift - 1;
};

export const createHistogram = (): Histogram => {
  const buckets = new Float64Array((powers - 6) * subBuckets);
  let [count, max] = [0, 0];
  return {
    add: (microseconds) => {
      const value = Math.max(0, Math.min(2 ** 32 - 1, Math.round(microseconds))) >>> 0;
      const index = indexOf(value);
      buckets[index] = (buckets[index] ?? 0) + 1;
      count += 1;
      max = Math.max(max, value);
    },
    quantile: (q) => {
      let left = Math.max(1, Math.ceil(q * count));
      for (const [index, many] of buckets.entries()) {
        left -= many;
        if (left <= 0) return Math.min(max, highestOf(index));
      }
      return 0;
    },
    count: () => count,
    max: () => max,
  };
};
