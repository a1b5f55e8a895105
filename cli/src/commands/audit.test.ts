import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEnvironment, openTable } from '@sealpost/server/store/lmdb/environment';
import { openStore } from '@sealpost/server/store/open';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../sample-session.fixture.ts';

let folder: string;
const run = (...args: string[]) => runCommand(['audit', ...args, '--store', folder]);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-audit-'));
  const { admin, close } = await openStore(folder, 'write');
  for (const action of ['one', 'two', 'three', 'four'])
    await admin.log({ atMs: 0, actor: 'tester', action, detail: {} });
  await close();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Flips a bit of entries, as a failing disk does. */
const damage = async (...entries: readonly number[]): Promise<void> => {
  const environment = openEnvironment(join(folder, 'admin'), false);
  const table = openTable(environment, 'audit');
  environment.root.transactionSync(() => {
    for (const { key, value } of [...table.getRange()].filter((_, i) => entries.includes(i + 1))) {
      value[12] = (value[12] as number) ^ 4;
      table.put(key, value);
    }
  });
  await environment.root.close();
};

const actionsOf = (lines: string) =>
  lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).action);

test('audit list: a damaged entry is reported, the others are printed, and the exit code is 1', async () => {
  expect(await run('list', '--json')).toMatchObject({ code: 0, stderr: '' });
  await damage(2);
  const listed = await run('list', '--json');
  const named = 'error: Entry 2 was skipped: audit entry 2 does not match its checksum. Run: sealpost store verify.\n';
  expect([listed.code, listed.stderr, actionsOf(listed.stdout)]).toEqual([1, named, ['one', 'three', 'four']]);
  const table = await run('list');
  expect([table.code, table.stderr]).toEqual([1, named]);
  expect(table.stdout).toMatch(/one[\s\S]*three[\s\S]*four/);
  expect((await runCommand(['audit', 'list', '--store', folder], { isUnread: true })).code).toBe(1);
  // What is older than what was asked for is not looked at.
  expect(await run('list', '--json', '--limit', '2')).toMatchObject({ code: 0, stderr: '' });
});

test('audit list: the newest entries are printed, oldest first, also where all of them are damaged', async () => {
  expect(actionsOf((await run('list', '--json', '--limit', '3')).stdout)).toEqual(['two', 'three', 'four']);
  await damage(1, 2, 3, 4);
  const { code, stdout, stderr } = await run('list', '--json');
  expect([code, stdout, stderr.match(/Entry \d/g)]).toEqual([1, '', ['Entry 1', 'Entry 2', 'Entry 3', 'Entry 4']]);
});
