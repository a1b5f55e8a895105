import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { runKillLoop } from './kill.ts';
import { buildPrograms, type Programs } from './programs.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await buildPrograms();
});
afterAll(() => programs.remove());

const lives = countOf(5, 1_500);

test(`kill -9: ${lives} lives, nothing acknowledged is lost or altered, latest never goes back`, async () => {
  // Two folders at once, one per core.
  const half = Math.ceil(lives / 2);
  const results = await Promise.all([runKillLoop(programs, half, 'honest'), runKillLoop(programs, half, 'honest')]);
  for (const { lives: _, readyMs, wentBack, ...counts } of results) {
    const slowest = readyMs.toSorted((a, b) => a - b)[Math.ceil(readyMs.length * 0.99) - 1] ?? 0;
    const ready = 'ms until a life is ready, 99th percentile';
    tally({ ...counts, 'times `latest` went back': wentBack, [ready]: Math.round(slowest) }, { [ready]: 2_000 });
  }
  for (const result of results) {
    expect(result).toMatchObject({ lives: half, lost: 0, altered: 0, wentBack: 0 });
    expect(result.acknowledged).toBeGreaterThan(half * 3);
  }
}, 3_600_000);

test('kill -9: the control, which acknowledges too early, loses', async () => {
  // A kill falls between its promise and the disk in about one life of five: sixty lives without one would be luck of 1 in 600,000.
  let lost = 0;
  for (let round = 0; round < 10 && lost === 0; round++) ({ lost } = await runKillLoop(programs, 6, 'early'));
  tallyControl({ lost });
  expect(lost).toBeGreaterThan(0);
}, 3_600_000);
