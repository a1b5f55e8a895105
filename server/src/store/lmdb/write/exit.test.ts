// A process that exits while its writer thread loads LMDB or is inside a transaction.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { buildPrograms } from '../../../../../tests/faults/programs.ts';

const programs = await buildPrograms(['server/src/store/lmdb/write/exiting.fixture.ts']);
afterAll(programs.remove);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-exit-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The exit code of the process, or the signal that ended it. One that does not end is killed. */
const exitAfter = async (moment: 'opening' | 'writing', afterMs: number): Promise<unknown> => {
  const args = [programs.fileOf('exiting.fixture'), folder, moment, String(afterMs)];
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  const hung = setTimeout(() => child.kill('SIGKILL'), 120_000);
  const [code, signal] = await once(child, 'exit');
  clearTimeout(hung);
  return signal ?? code;
};

test.each(['opening', 'writing'] as const)(
  'exit: a process that exits while it is %s ends with its exit code',
  async (moment) => {
    const codes: unknown[] = [];
    for (let afterMs = 0; afterMs < 24; afterMs += 4) codes.push(await exitAfter(moment, afterMs));
    expect(codes).toEqual(Array(6).fill(130));
  },
);
