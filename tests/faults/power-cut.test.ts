import { afterAll, beforeAll, expect, test } from 'vitest';
import { findDebianProgram } from '../support/debian-programs.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { ext4, isMountable, runPowerCuts, xfs } from './power-cut.ts';
import { buildPrograms, type Programs } from './programs.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await buildPrograms();
});
afterAll(() => {
  programs.remove();
});

const cuts = countOf(2, 100) / 2;

const findDisk = (name: 'ext4' | 'xfs') => {
  if (name === 'ext4') return ext4;
  const mkfs = findDebianProgram('mkfs.xfs');
  return 'path' in mkfs ? xfs(mkfs.path) : undefined;
};

test.for(['ext4', 'xfs'] as const)(
  'power cut, %s: nothing acknowledged is lost',
  { timeout: 7_200_000 },
  async (name, { skip }) => {
    const disk = findDisk(name);
    if (disk === undefined || !isMountable(disk)) return skip(`mounting ${name} needs root and its programs`);
    const { acknowledged, lost } = await runPowerCuts(programs, disk, cuts, 'honest');
    tally({ acknowledged, lost, [`cuts on ${name}`]: cuts });
    expect(lost).toBe(0);
    expect(acknowledged).toBeGreaterThan(cuts);
  },
);

test('power cut: the control, which never flushes, loses', { timeout: 600_000 }, async ({ skip }) => {
  if (!isMountable(ext4)) skip('mounting ext4 needs root');
  const { cutsWithLoss } = await runPowerCuts(programs, ext4, 1, 'unsynced');
  tallyControl({ 'cuts with a loss': cutsWithLoss });
  expect(cutsWithLoss).toBe(1);
});
