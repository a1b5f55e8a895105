import { expect, test } from 'vitest';
import { countOf, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { runMirrorFaults } from './mirror.ts';

/** The same faults at the same moments in every run. */
const createRandom = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
};

const minutes = countOf(0.1, 7);
const isFull = minutes >= 1;
const random = createRandom(seedOf(7) % 2 ** 31);
const plan = isFull
  ? { pastSeconds: 600, durationMs: minutes * 60_000, speed: 1, kills: 10, cuts: 5, random }
  : { streams: 4, pastSeconds: 300, durationMs: 8_000, speed: 20, kills: 3, cuts: 2, random };

test('mirror: killed and cut off on every side, it has every report once, byte by byte', async () => {
  const result = await runMirrorFaults(plan);
  const { reports, lost, altered, extra, cuts, controlLost } = result;
  const kills = Object.values(result.kills).reduce((sum, one) => sum + one, 0);
  tally({ reports, kills, cuts, lost, altered, extra });
  tallyControl({ lost: controlLost });
  if (isFull) {
    expect(result).toMatchObject({ cuts: 5, lost: 0, altered: 0, extra: 0, controlLost: 1 });
    return;
  }
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
