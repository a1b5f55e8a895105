import { expect, test } from 'vitest';
import { type CpuProfile, framesOf } from './profile.ts';

const frame = (id: number, functionName: string, lineNumber: number) => ({
  id,
  callFrame: { functionName, url: functionName.startsWith('(') ? '' : 'file:///a.mjs', lineNumber },
});

const profile: CpuProfile = {
  nodes: [frame(1, 'render', 9), frame(2, 'send', 19), frame(3, '(idle)', -1), frame(4, 'render', 9)],
  startTime: 1_000,
  samples: [2, 1, 3, 4, 2],
  timeDeltas: [50, 100, 900, 200, 80],
};

test('frames are listed by self time, the calls of one function together, and waiting is left out', () => {
  expect(framesOf(profile, (url, line) => `${url}:${line + 1}`)).toEqual([
    { name: 'render', place: 'file:///a.mjs:10', microseconds: 300 },
    { name: 'send', place: 'file:///a.mjs:20', microseconds: 130 },
  ]);
});

test('what a process did before it was ready does not count', () => {
  expect(framesOf(profile, () => '', 2_100)).toEqual([
    { name: 'render', place: '', microseconds: 200 },
    { name: 'send', place: '', microseconds: 80 },
  ]);
});
