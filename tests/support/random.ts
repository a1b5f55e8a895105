// Seeded randomness for tests.

/** Numbers below a bound, the same for the same seed. */
export type Random = (below: number) => number;

export const createRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
};

/** One of a list that is not empty. */
export const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T;
