import { expect, test } from 'vitest';
import { runMirrorFaults } from './mirror.ts';

/** The same faults at the same moments in every run. */
const createRandom = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
};

test('mirror: killed and cut off on every side, it has every report once, byte by byte', async () => {
  const result = await runMirrorFaults({
    streams: 4,
    pastSeconds: 300,
    durationMs: 8_000,
    speed: 20,
    kills: 3,
    cuts: 2,
    random: createRandom(7),
  });
  expect(result).toMatchObject({
    streams: 4,
    kills: { source: 1, target: 1, mirror: 1 },
    cuts: 2,
    lost: 0,
    altered: 0,
    extra: 0,
    controlLost: 1,
  });
  expect(result.reports).toBeGreaterThan(1_000);
});
