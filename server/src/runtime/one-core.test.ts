import { spawnSync } from 'node:child_process';
import { closeSync, copyFileSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { allowedCores } from '../../../tests/load/cores.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-one-core-'));
afterAll(() => rmSync(folder, { recursive: true }));

// It has no types, and a loader would be a thread: V8 ends the process once it has written, and threads that run then may make that a crash.
const oneCore = join(folder, 'one-core.mjs');
copyFileSync(new URL('./one-core.ts', import.meta.url), oneCore);

/** What V8 says of itself, in a process that a program starts and that has loaded the module. V8 writes more than a pipe takes, and does not wait. */
const marksConcurrently = (starter: readonly string[]): boolean => {
  const file = join(folder, `flags-${starter.length}`);
  const code = 'import { setFlagsFromString } from "node:v8"; setFlagsFromString("--help");';
  const args = ['--import', oneCore, '--input-type=module', '--eval', code];
  const output = openSync(file, 'w');
  const [program = '', ...rest] = [...starter, process.execPath, ...args];
  spawnSync(program, rest, { stdio: ['ignore', output, 'inherit'] });
  closeSync(output);
  const [, flag] = /--concurrent-marking \(.*\n.*default: (\S+)/.exec(readFileSync(file, 'utf8')) ?? [];
  expect(flag).toBeDefined();
  return flag === '--concurrent-marking';
};

const [firstCore = ''] = allowedCores();

test.runIf(firstCore !== '')('one core: no other thread marks garbage', () => {
  expect(marksConcurrently(['taskset', '-c', firstCore])).toBe(false);
});

test.runIf(availableParallelism() > 1)('one core: with more, others mark', () => {
  expect(marksConcurrently([])).toBe(true);
});

test.each([
  ['../../../cli/src/main.ts', '@sealpost/server/runtime/one-core'],
  ['../cluster/worker.ts', '../runtime/one-core.ts'],
])('one core: %s loads it before anything else', (entry, module) => {
  const text = readFileSync(new URL(entry, import.meta.url), 'utf8');
  expect(/^import .*$/m.exec(text)?.[0]).toBe(`import '${module}';`);
});
