// What tests/bars/run-bar.test.ts runs as a part of a bar.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { barSeed, countVariable, firstOf, tally, tallyControl } from './tally.ts';

test('a bar has its count, what was done before, its seed, and hours', ({ task }) => {
  const units = Number(process.env[countVariable('sample')] ?? 1);
  tally({ units, first: firstOf(), seed: barSeed(), 'ms at most': task.timeout });
  tallyControl({ lost: 1 });
  const left = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'], { stdio: 'ignore' });
  writeFileSync(join(tmpdir(), 'left.txt'), String(left.pid));
  expect(units, `${units} is too many`).toBeLessThan(13);
  left.kill();
});
