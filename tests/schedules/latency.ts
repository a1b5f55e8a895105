// How long messages take: most of them nothing, few of them long, so that everything can overtake everything else.
import type { Random } from '../support/random.ts';

/** Shares of a hundred messages, and the longest time of each share; the third reaches the time limits of reads and writes. */
const profiles: readonly (readonly (readonly [number, number])[])[] = [
  [[100, 3]],
  [
    [80, 5],
    [98, 60],
    [100, 900],
  ],
  [
    [60, 20],
    [97, 250],
    [100, 2_500],
  ],
  [
    [90, 10],
    [100, 60],
  ],
];

export const createLatency = (random: Random, profile: number): (() => number) => {
  const shares = profiles[profile] ?? [[100, 3]];
  return () => {
    const percent = random(100);
    const [, maxMs = 0] = shares.find(([upTo]) => percent < upTo) ?? [];
    return random(maxMs * 10) / 10;
  };
};
