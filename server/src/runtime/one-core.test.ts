import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-one-core-'));
afterAll(() => rmSync(folder, { recursive: true }));

const oneCore = new URL('./one-core.ts', import.meta.url).href;

/** What V8 says of itself, in a process that may use these cores and has loaded the module. V8 writes more than a pipe takes, and does not wait. */
const marksConcurrently = (cores: string): boolean => {
  const file = join(folder, `cores-${cores}`);
  const program = 'import { setFlagsFromString } from "node:v8"; setFlagsFromString("--help");';
  const args = ['--import', 'tsx', '--import', oneCore, '--input-type=module', '--eval', program];
  const output = openSync(file, 'w');
  execFileSync('taskset', ['-c', cores, process.execPath, ...args], { stdio: ['ignore', output, 'inherit'] });
  closeSync(output);
  const [, flag] = /--concurrent-marking \(.*\n.*default: (\S+)/.exec(readFileSync(file, 'utf8')) ?? [];
  expect(flag).toBeDefined();
  return flag === '--concurrent-marking';
};

test.runIf(process.platform === 'linux')('one core: no other thread marks garbage', () => {
  expect(marksConcurrently('0')).toBe(false);
});

test.runIf(process.platform === 'linux' && cpus().length > 1)('one core: with two, others mark', () => {
  expect(marksConcurrently('0,1')).toBe(true);
});
