import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '@sealpost/server/store/open';
import type { Account } from '@sealpost/server/store/store';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../sample-session.fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-new-accounts-'));
const nowMs = 1_763_200_000_000;
const userId = '123e4567-e89b-42d3-a456-426614174000';
let [store, count] = ['', 0];

beforeEach(() => {
  store = join(root, `store-${++count}`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const env = () => ({ SEALPOST_STORE: store, SEALPOST_KEY_FILE: `${store}.key` });
const run = (...args: string[]) => runCommand(args, { nowMs, env: env() });
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);
const stored = async (user: string): Promise<Account | undefined> => {
  const opened = await openStore(store, 'read');
  try {
    return await opened.admin.get('account', user);
  } finally {
    await opened.close();
  }
};

test('account, secret: a secret that cannot be printed is an error that says how to replace it', async () => {
  await run('init');
  const create = ['account', 'create', '--name', 'acme', '--user-id', userId];
  const full = await runCommand([...create, '--json'], { nowMs, env: env(), isFull: true });
  const [first] = (await stored(userId))?.secrets ?? [];
  expect(full).toEqual({
    code: 3,
    stdout: '',
    stderr: `error: Account acme created. But its secret ${first?.id} could not be printed: no space left on its disk. Replace it. Run: sealpost secret revoke ${userId} ${first?.id}, then sealpost secret add ${userId}.\n`,
  });
  const unread = await runCommand(['secret', 'add', 'acme'], { nowMs, env: env(), isUnread: true });
  const [, second] = (await stored(userId))?.secrets ?? [];
  expect([unread.code, unread.stderr]).toEqual([
    3,
    `error: Secret of acme added. But its secret ${second?.id} could not be printed: its reader has closed the pipe. Replace it. Run: sealpost secret revoke ${userId} ${second?.id}, then sealpost secret add ${userId}.\n`,
  ]);
  expect((await run('secret', 'revoke', userId, first?.id ?? '')).code).toBe(0);
  expect((await run('secret', 'add', userId)).code).toBe(0);
});

test('account: of commands that create the same name at once, one does', async () => {
  await run('init');
  const names = ['acme', 'Acme', 'ACME', 'acme', 'aCME'];
  const codes = (await Promise.all(names.map((name) => run('account', 'create', '--name', name)))).map(
    ({ code }) => code,
  );
  expect(codes.sort()).toEqual([0, 1, 1, 1, 1]);
  expect((await json('account', 'list')).accounts).toHaveLength(1);
});
