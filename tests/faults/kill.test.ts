import { afterAll, beforeAll, expect, test } from 'vitest';
import { runKillLoop } from './kill.ts';
import { buildPrograms, type Programs } from './programs.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await buildPrograms();
});
afterAll(() => programs.remove());

const lives = Number(process.env.KILL_LIVES ?? 40);

test(`kill -9: ${lives} lives, nothing acknowledged is lost or altered, latest never goes back`, async () => {
  // Two folders at once, one per core.
  const half = Math.ceil(lives / 2);
  const results = await Promise.all([runKillLoop(programs, half, 'honest'), runKillLoop(programs, half, 'honest')]);
  for (const result of results) {
    expect(result).toMatchObject({ lives: half, lost: 0, altered: 0, wentBack: 0 });
    expect(result.acknowledged).toBeGreaterThan(half * 3);
  }
}, 3_600_000);

test('kill -9: the control, which acknowledges too early, loses', async () => {
  // A kill falls between its promise and the disk in about one life of five: sixty lives without one would be luck of 1 in 600,000.
  let lost = 0;
  for (let round = 0; round < 10 && lost === 0; round++) ({ lost } = await runKillLoop(programs, 6, 'early'));
  expect(lost).toBeGreaterThan(0);
}, 3_600_000);
