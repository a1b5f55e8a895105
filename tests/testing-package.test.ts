// `@sealpost/sandbox` as built, with node:test as the runner, on the newest Node release, and with FULL=1 on every other one than that which runs the tests: it runs the example, leaves nothing behind, and the runner exits.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { isFull } from './support/full-count.ts';
import { downloadMs, getNode, nodeReleases } from './support/runtimes.ts';
import { root } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-runner-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a file by node:test; a process that does not exit by itself is ended, and fails. */
const runTests = async (binary: string, file: string): Promise<string> => {
  const ended = await promisify(execFile)(binary, ['--test', '--test-reporter=tap', file], {
    cwd: root,
    env: { PATH: process.env.PATH, TMPDIR: folder },
    timeout: 300_000,
  }).catch((error: unknown) => error as { readonly stdout: string; readonly stderr: string }); // a test failed, or it did not exit
  return `${ended.stdout}${ended.stderr}`;
};

test.for(isFull ? nodeReleases : nodeReleases.slice(-1))(
  'testing on node %i: the settlement job passes its tests by node:test, which exits by itself and leaves no file',
  { timeout: downloadMs + 70_000, retry: 1 },
  async (major, { skip }) => {
    const runtime = await getNode(major);
    if ('missing' in runtime) return skip(runtime.missing);
    const printed = await runTests(runtime.binary, 'examples/testing/settlement-job.test.mjs');
    expect(printed).toMatch(/^# pass 4$/m);
    expect(printed).toMatch(/^# fail 0$/m);
    expect(readdirSync(folder)).toEqual([]);
  },
);
