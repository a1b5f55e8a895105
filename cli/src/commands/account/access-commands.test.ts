import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { limitedRoutes } from '@sealpost/server/access/account-arguments';
import { openKeyFile } from '@sealpost/server/access/key';
import { announceKeys } from '@sealpost/server/access/key-announcement';
import { openStore } from '@sealpost/server/store/open';
import type { Account } from '@sealpost/server/store/store';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { secondStream } from '../../../../tests/support/signed-reports.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-access-'));
const nowMs = 1_763_200_000_000;
const now = '2025-11-15T09:46:40.000000Z';
const [open, hidden] = [secondStream(1), secondStream(2)];
const userId = '123e4567-e89b-42d3-a456-426614174000';
let [store, keyFile, count] = ['', '', 0];

beforeEach(() => {
  store = join(root, `store-${++count}`);
  keyFile = join(root, `${count}.key`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const env = () => ({ SEALPOST_STORE: store, SEALPOST_KEY_FILE: keyFile });
const run = (...args: string[]) => runCommand(args, { nowMs, env: env() });
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);
const refusal = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(...args);
  return stdout === '' ? [code, stderr] : ['printed', stdout];
};
const auditOf = async (): Promise<readonly { action: string; detail: unknown }[]> =>
  (await run('audit', 'list', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const importStreams = () => {
  const catalog = join(root, `${count}-catalog.json`);
  writeFileSync(catalog, JSON.stringify([testStream(open), testStream(hidden, { hidden: true })]));
  return run('stream', 'import', catalog);
};
const stored = async (user: string): Promise<Account | undefined> => {
  const opened = await openStore(store, 'read');
  try {
    return await opened.admin.get('account', user);
  } finally {
    await opened.close();
  }
};
/** The secrets of an account, opened with the key of a file. */
const openSecrets = async (user: string, path: string): Promise<readonly string[]> => {
  const active = (await stored(user))?.secrets.filter(({ revokedAt }) => revokedAt === null) ?? [];
  return active.map(({ sealed }) => openKeyFile(path).open(user, sealed));
};

test('init: store and key are created once, the key with mode 0600, and a second run changes neither', async () => {
  const first = await run('init');
  const { keyId } = openKeyFile(keyFile);
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(first.stdout).toContain(`Store ${store} created.\nKey ${keyId} created in ${keyFile}.\n`);
  expect(first.stdout).toContain('\n  sealpost stream import catalog.json\n');
  const key = readFileSync(keyFile, 'utf8');
  expect([statSync(keyFile).mode & 0o777, first.stdout.includes(key.trim())]).toEqual([0o600, false]);

  const second = await run('init');
  expect(second.stdout).toContain(
    `Store ${store} already exists; unchanged.\nKey ${keyId} already exists in ${keyFile}; unchanged.\n`,
  );
  expect(readFileSync(keyFile, 'utf8')).toBe(key);
  expect(await json('init')).toEqual({ store, storeCreated: false, keyFile, keyCreated: false, keyId });
  const made = { storeCreated: true, keyFile, keyCreated: true, keyId };
  expect((await auditOf()).map(({ action, detail }) => [action, detail])).toEqual([['init', made]]);
});

test('init: the key may be in the folder of the store, or a setting without a file', async () => {
  const inside = join(store, 'sealpost.key');
  const first = await runCommand(['init', '--store', store, '--key-file', inside], { nowMs });
  expect([first.code, existsSync(inside)]).toEqual([0, true]);
  const key = 'ab'.repeat(32);
  const { code, stdout } = await runCommand(['init'], { nowMs, env: { ...env(), SEALPOST_KEY: key } });
  expect([code, stdout.includes('is set by SEALPOST_KEY'), stdout.includes(key)]).toEqual([0, true, false]);
  expect(existsSync(keyFile)).toBe(false);
});

test('init: a lost key is not replaced until every secret that it sealed is revoked', async () => {
  await run('init');
  const { secretId } = await json('account', 'create', '--name', 'acme');
  rmSync(keyFile);
  expect(await refusal('init')).toEqual([
    2,
    `error: ${keyFile} does not exist, but the secrets of acme are sealed with a key. Restore that key file, or set --key-file.\n`,
  ]);
  expect(existsSync(keyFile)).toBe(false);
  await run('secret', 'revoke', 'acme', secretId);
  expect((await json('init')).keyCreated).toBe(true);
  expect((await run('secret', 'add', 'acme')).code).toBe(0);
});

test('account: create prints user ID and secret, once and with a notice, and list and show have the account', async () => {
  await run('init');
  await importStreams();
  const { code, stdout, stderr } = await run('account', 'create', '--name', 'acme', '--entitle', 'public');
  const [, user = '', secretId = '', secret = ''] =
    /^Account acme created\.\nuser ID +(\S+)\nsecret ID +(\S+)\nsecret +(\S+)\n/.exec(stdout) ?? [];
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('Save the secret now: it is not shown again.\n');
  expect(await openSecrets(user, keyFile)).toEqual([secret]);
  const shown = {
    userId: user,
    name: 'acme',
    createdAt: now,
    disabledAt: null,
    secrets: [{ id: secretId, createdAt: now, revokedAt: null }],
    entitlements: ['public'],
    rateLimits: {},
  };
  expect(await json('account', 'list')).toEqual({ accounts: [shown] });
  const unused = { id: secretId, createdAt: now, revokedAt: null, lastUsedAt: null };
  expect(await json('account', 'show', 'ACME')).toEqual({ ...shown, secrets: [unused], readableStreams: 1 });
  expect((await run('account', 'list')).stdout).toMatch(/^acme +\S+ +enabled +1 +public\n1 account\.$/m);
  const text = (await run('account', 'show', user.toUpperCase())).stdout;
  expect(text).toContain(`secret ${secretId}  created ${now}, active, no use recorded\n`);
  expect(text).toMatch(/^may read now +1 stream$/m);
});

test('account: without entitlements it may read nothing; user ID, limits and hidden streams are as given', async () => {
  await run('init');
  await importStreams();
  expect((await json('account', 'create', '--name', 'bare')).entitlements).toEqual([]);
  expect((await json('account', 'show', 'bare')).readableStreams).toBe(0);
  const flags = [
    '--user-id',
    userId.toUpperCase(),
    '--entitle',
    `feed:${hidden}`,
    '--limit',
    'reportPage=50',
    '--limit',
    '*=0',
  ];
  const created = await json('account', 'create', '--name', 'desk', ...flags);
  expect(created).toMatchObject({ userId, rateLimits: { reportPage: 50, '*': 0 }, entitlements: [`feed:${hidden}`] });
  expect(created.secret).toMatch(/^[\w-]{43}$/);
  expect((await json('account', 'show', userId)).readableStreams).toBe(1);
  expect((await run('account', 'show', 'desk')).stdout).toMatch(/^limit reportPage +50 per second\nlimit \* +none$/m);
});

test('account: invalid arguments are rejected, and nothing is stored', async () => {
  expect(await refusal('account', 'create', '--name', 'acme')).toEqual([
    2,
    `error: No key-encryption key in ${keyFile}. Create one with: sealpost init.\n`,
  ]);
  expect(existsSync(store)).toBe(false);
  await run('init');
  await run('account', 'create', '--name', 'acme', '--user-id', userId);
  const create = (...args: string[]) => refusal('account', 'create', ...args);
  expect(await create('--name', 'Acme')).toEqual([1, `error: The name acme is taken by ${userId}. Choose another.\n`]);
  expect(await create('--name', 'b', '--user-id', userId)).toEqual([
    1,
    `error: User ID ${userId} belongs to acme. Choose another.\n`,
  ]);
  expect((await create('--name', 'b', '--user-id', '12'))[1]).toMatch(/^error: user ID is "12", expected a UUID/);
  expect((await create('--name', 'b', '--limit', 'nothing=1'))[0]).toBe(2);
  expect((await create('--name', 'b', '--entitle', 'all'))[1]).toBe(
    'error: entitlement is "all", expected public, feed:FEED_ID or filter:QUERY such as filter:asset_class=Crypto.\n',
  );
  expect((await create('--name', ' '))[0]).toBe(2);
  expect(await refusal('account', 'show', 'nobody')).toEqual([
    2,
    'error: No account has the user ID or name "nobody". List accounts with: sealpost account list.\n',
  ]);
  expect((await json('account', 'list')).accounts.length).toBe(1);
  expect((await auditOf()).map(({ action }) => action)).toEqual(['init', 'account.create']);
});

test('account: a key file that other users can read, and a key that is not the store’s, seal nothing', async () => {
  await run('init');
  await run('account', 'create', '--name', 'acme');
  chmodSync(keyFile, 0o644);
  expect(await refusal('secret', 'add', 'acme')).toEqual([
    2,
    `error: The key file ${keyFile} is accessible to other users (mode 644). Run: chmod 600 ${keyFile}.\n`,
  ]);
  chmodSync(keyFile, 0o600);
  const other = { nowMs, env: { ...env(), SEALPOST_KEY: 'cd'.repeat(32) } };
  for (const args of [['account', 'create', '--name', 'b'], ['secret', 'add', 'acme'], ['init']]) {
    const { code, stdout, stderr } = await runCommand(args, other);
    expect([code, stdout], args.join(' ')).toEqual([2, '']);
    expect(stderr).toMatch(/^error: The secrets of acme are sealed with another key than this one \([0-9a-f]{16}\)\./);
  }
});

test('account: limits are set, kept and reset, with old and new in the log', async () => {
  await run('init');
  await run('account', 'create', '--name', 'acme', '--user-id', userId, '--limit', 'feeds=5');
  expect((await run('account', 'limit', 'acme', '--limit', 'reportPage=50', '--limit', '*=0')).stdout).toBe(
    'acme: limit feeds: 5 per second, limit reportPage: 50 per second, limit *: none.\n',
  );
  const back = await json('account', 'limit', userId, '--limit', 'feeds=default', '--limit', '*=default');
  expect(back.rateLimits).toEqual({ reportPage: 50 });
  expect((await auditOf()).at(-1)).toMatchObject({ action: 'account.limit', detail: { name: 'acme' } });
  expect((await run('account', 'limit', 'acme', '--limit', 'reportPage=default')).stdout).toBe(
    'acme: the server’s default limits.\n',
  );
  for (const limits of [[], ['feeds'], ['nothing=1'], ['nothing=default'], ['feeds=1', 'feeds=default']])
    expect((await refusal('account', 'limit', 'acme', ...limits.flatMap((one) => ['--limit', one])))[0]).toBe(2);
});

test('account: disable and enable are one entry each; a repetition is none', async () => {
  await run('init');
  await run('account', 'create', '--name', 'acme', '--user-id', userId);
  expect((await run('account', 'disable', 'acme')).stdout).toBe('acme is disabled.\n');
  expect((await run('account', 'disable', 'acme')).stdout).toBe('acme is disabled.\n');
  expect((await json('account', 'show', 'acme')).disabledAt).toBe(now);
  expect((await run('account', 'list')).stdout).toMatch(/^acme +\S+ +disabled +1 +none$/m);
  expect((await json('account', 'enable', userId)).disabledAt).toBeNull();
  expect((await auditOf()).slice(2).map(({ action, detail }) => [action, detail])).toEqual([
    ['account.disable', { name: 'acme', changed: { [userId]: { disabledAt: [null, now] } } }],
    ['account.enable', { name: 'acme', changed: { [userId]: { disabledAt: [now, null] } } }],
  ]);
});

test('secret: a second one is added, a third rejected, and revoking one allows another', async () => {
  await run('init');
  const first = await json('account', 'create', '--name', 'acme', '--user-id', userId);
  const second = await json('secret', 'add', 'acme');
  expect(Object.keys(second)).toEqual(['userId', 'name', 'secretId', 'secret']);
  expect(await openSecrets(userId, keyFile)).toEqual([first.secret, second.secret]);
  expect(await refusal('secret', 'add', 'acme')).toEqual([
    1,
    `error: acme has 2 active secrets, ${first.secretId} and ${second.secretId}. First revoke one with: sealpost secret revoke ${userId} SECRET_ID.\n`,
  ]);
  expect((await run('secret', 'revoke', 'acme', first.secretId)).stdout).toBe(
    `Secret ${first.secretId} of acme revoked.\n`,
  );
  expect((await refusal('secret', 'revoke', 'acme', first.secretId))[1]).toContain(`was revoked at ${now}`);
  expect((await refusal('secret', 'revoke', 'acme', 'x'))[1]).toContain('x is not a secret of acme.');
  const third = await run('secret', 'add', userId);
  expect(third.stdout).toMatch(
    /^Secret of acme added\.\nuser ID +\S+\nsecret ID +\S+\nsecret +\S+\nSave the secret now/,
  );
  expect(
    (await json('account', 'show', 'acme')).secrets.map(({ revokedAt }: Account['secrets'][0]) => revokedAt),
  ).toEqual([now, null, null]);
  expect((await auditOf()).slice(2, 4).map(({ action, detail }) => [action, detail])).toEqual([
    ['secret.add', { userId, name: 'acme', secretId: second.secretId }],
    ['secret.revoke', { userId, name: 'acme', secretId: first.secretId }],
  ]);
});

test('init: the key is created in the folder of the store, and accounts of another store do not depend on it', async () => {
  const [ours, other] = [join(root, `${count}-ours`), join(root, `${count}-other`)];
  const at = (folder: string, ...args: string[]) => runCommand([...args, '--store', folder], { nowMs });
  for (const folder of [ours, other]) {
    expect((await at(folder, 'init')).stdout).toContain(`created in ${folder}/sealpost.key.`);
    expect((await at(folder, 'account', 'create', '--name', 'acme', '--entitle', 'public')).code).toBe(0);
  }
  rmSync(other, { recursive: true });
  expect(await at(ours, 'secret', 'add', 'acme')).toMatchObject({ code: 0 });
  rmSync(join(ours, 'sealpost.key'));
  const lost = await at(ours, 'account', 'create', '--name', 'beta', '--entitle', 'public');
  expect([lost.code, lost.stderr]).toEqual([
    2,
    expect.stringContaining(`No key-encryption key in ${ours}/sealpost.key.`),
  ]);
});

test('secret: rewrap moves every account to a new key at once, and a second run finds nothing to do', async () => {
  await run('init');
  const one = await json('account', 'create', '--name', 'one');
  const two = await json('account', 'create', '--name', 'two');
  await run('account', 'disable', 'two');
  const newFile = join(root, `${count}-new.key`);
  const { code, stdout, stderr } = await run('secret', 'rewrap', '--new-key-file', newFile);
  const [from, to] = [openKeyFile(keyFile).keyId, openKeyFile(newFile).keyId];
  expect([code, stderr]).toEqual([0, `${newFile} created.\n`]);
  expect(stdout).toBe(
    `Secrets of 2 accounts rewrapped with key ${to}. No node is running. Next: keep a copy of the old key for old backups, then mv ${newFile} ${keyFile}.\n`,
  );
  expect([await openSecrets(one.userId, newFile), await openSecrets(two.userId, newFile)]).toEqual([
    [one.secret],
    [two.secret],
  ]);
  expect((await auditOf()).at(-1)).toMatchObject({ action: 'secret.rewrap', detail: { from, to, accounts: 2 } });
  expect(await json('secret', 'rewrap', '--new-key-file', newFile)).toEqual({
    from,
    to,
    accounts: 0,
    restart: false,
  });
  expect((await refusal('secret', 'add', 'one'))[0]).toBe(2);
  expect((await run('secret', 'add', 'one', '--key-file', newFile)).code).toBe(0);
});

test('secret: rewrap changes nothing while a running node lacks the new key, unless it is forced', async () => {
  await run('init');
  await run('account', 'create', '--name', 'acme', '--entitle', 'public');
  const newFile = join(root, `${count}-new.key`);
  const node = await openStore(store, 'read');
  const announce = () => node.keyHolders.announce({ node: 'host, process 1', keyIds: ['old'] });
  const elsewhere = setInterval(announce, 500);
  try {
    await announce();
    const before = (await node.admin.list('account'))[0]?.secrets;
    const refused = await run('secret', 'rewrap', '--new-key-file', newFile);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain('the new key is missing on 1 running node (host, process 1). Append the line in');
    expect((await node.admin.list('account'))[0]?.secrets).toEqual(before);
    clearInterval(elsewhere);
    // A node that reads the same key file finds the key there.
    const stop = announceKeys(node.keyHolders, openKeyFile(keyFile), () => {});
    const done = await run('secret', 'rewrap', '--new-key-file', newFile);
    await stop();
    expect([done.code, done.stdout]).toEqual([
      0,
      expect.stringContaining('1 running node can open them. Next: keep a copy'),
    ]);
  } finally {
    clearInterval(elsewhere);
    await node.close();
  }
});

test('secret: rewrap with the wrong old key, or to the same key, changes nothing', async () => {
  await run('init');
  const { userId: user } = await json('account', 'create', '--name', 'acme');
  const before = await stored(user);
  expect(await refusal('secret', 'rewrap', '--new-key-file', keyFile)).toEqual([
    2,
    'error: The new key is already in use. Use a different key file.\n',
  ]);
  const other = { nowMs, env: { ...env(), SEALPOST_KEY: 'cd'.repeat(32) } };
  const wrong = await runCommand(['secret', 'rewrap', '--new-key-file', join(root, `${count}-new.key`)], other);
  expect([wrong.code, wrong.stdout]).toEqual([2, '']);
  expect(wrong.stderr).toContain(`error: A secret was sealed with key ${openKeyFile(keyFile).keyId}, but this key is`);
  expect(await stored(user)).toEqual(before);
});

test('account entitle: entitlements are added, removed and replaced, with old and new in the log', async () => {
  await run('init');
  await importStreams();
  await run('account', 'create', '--name', 'acme', '--user-id', userId);
  const upper = `feed:0x${hidden.slice(2).toUpperCase()}`;
  expect((await run('account', 'entitle', 'acme', '--add', 'public', '--add', upper)).stdout).toBe(
    'acme may read 2 streams now.\n',
  );
  const filter = 'filter:asset_class=Crypto,Forex';
  expect(await json('account', 'entitle', 'acme', '--remove', upper, '--add', filter)).toMatchObject({
    entitlements: ['public', filter],
    readableStreams: 1,
  });
  expect((await json('account', 'entitle', userId, '--set', `feed:${hidden}`)).entitlements).toEqual([
    `feed:${hidden}`,
  ]);
  expect((await run('account', 'entitle', 'acme', '--set', 'none')).stdout).toBe('acme may read 0 streams now.\n');
  const changes = (await auditOf()).filter(({ action }) => action === 'account.entitle');
  expect(changes.length).toBe(4);
  expect(changes.at(-1)?.detail).toEqual({
    name: 'acme',
    changed: { [userId]: { entitlements: [[`feed:${hidden}`], []] } },
  });
});

test('account entitle: a stream is named by its pair, in account create too; a name that matches several or none is rejected', async () => {
  await run('init');
  await importStreams();
  const named = `feed:${(await json('stream', 'list')).feeds[0].name.toLowerCase().split('-')[0]}`;
  const { feedId } = (await json('stream', 'list')).feeds[0];
  expect((await json('account', 'create', '--name', 'acme', '--entitle', named)).entitlements).toEqual([
    `feed:${feedId}`,
  ]);
  expect((await json('account', 'entitle', 'acme', '--remove', named)).entitlements).toEqual([]);
  expect((await json('account', 'entitle', 'acme', '--add', named)).entitlements).toEqual([`feed:${feedId}`]);
  expect(await refusal('account', 'entitle', 'acme', '--set', 'feed:XYZ/ABC')).toEqual([
    2,
    'error: No stream is named "XYZ/ABC". List streams with: sealpost stream list.\n',
  ]);
});

test('account entitle: an unknown stream causes a warning, an invalid entitlement is rejected', async () => {
  await run('init');
  await importStreams();
  await run('account', 'create', '--name', 'acme');
  const unknown = secondStream(9);
  expect(await run('account', 'entitle', 'acme', '--add', `feed:${unknown}`)).toEqual({
    code: 0,
    stdout: 'acme may read 0 streams now.\n',
    stderr: `warning: feed:${unknown} is not in the catalog. It takes effect once the stream is added.\n`,
  });
  const entitle = (...args: string[]) => refusal('account', 'entitle', 'acme', ...args);
  expect(await entitle()).toEqual([2, 'error: Nothing to change. Use --add, --remove or --set.\n']);
  expect((await entitle('--set', 'public', '--add', 'public'))[0]).toBe(2);
  expect((await entitle('--add', 'filter:asset_clas=Crypto'))[1]).toMatch(/^error: entitlement is "filter:asset_clas=/);
  expect((await entitle('--add', 'feed:0x12'))[0]).toBe(2);
  expect((await entitle('--remove', 'public'))[0]).toBe(1);
  expect((await json('account', 'show', 'acme')).entitlements).toEqual([`feed:${unknown}`]);
});

test('usage: nothing at first, then what the store has counted in the days asked for, by day and route', async () => {
  await run('init');
  await run('account', 'create', '--name', 'acme', '--user-id', userId);
  expect((await run('account', 'usage', 'acme')).stdout).toBe('acme: no usage recorded yet.\n');
  expect(await json('account', 'usage', 'acme', '--days', '30')).toEqual({ usage: [] });
  expect((await refusal('account', 'usage', 'acme', '--days', '0'))[0]).toBe(2);
  const opened = await openStore(store, 'read');
  await opened.usage.add(
    [
      { userId, day: '2025-11-08', route: 'feeds', requests: 5 },
      { userId, day: '2025-11-09', route: 'feeds', requests: 1_234 },
      { userId: randomUUID(), day: '2025-11-09', route: 'feeds', requests: 7 },
    ],
    [],
    Date.parse('2025-11-09'),
  );
  await opened.close();
  expect((await run('account', 'usage', 'acme')).stdout).toBe(
    'day         route  requests\n2025-11-09  feeds     1,234\n',
  );
  expect(await json('account', 'usage', 'acme', '--days', '8')).toEqual({
    usage: [
      { userId, day: '2025-11-08', route: 'feeds', requests: 5 },
      { userId, day: '2025-11-09', route: 'feeds', requests: 1_234 },
    ],
  });
});

test('docs: access.md names exactly the routes that have limits', () => {
  const document = readFileSync(new URL('../../../../docs/access.md', import.meta.url), 'utf8').split(
    '## Rate limits',
  )[1];
  const [, list = ''] = /`ROUTE`\s+is a route's name \(([^)]+)\)/.exec(document ?? '') ?? [];
  expect(['*', ...[...list.matchAll(/`(\w+)`/g)].map(([, name]) => name)]).toEqual(limitedRoutes);
});

/** Everything on the disk below a folder, as bytes. */
const filesBelow = (folder: string): readonly Buffer[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));

test('canary: no secret is on the disk, in the audit log, or in what any other command prints', async () => {
  await run('init');
  const first = await json('account', 'create', '--name', 'canary-account', '--entitle', 'public');
  const { secret: second } = await json('secret', 'add', 'canary-account');
  const sealedBefore = (await stored(first.userId))?.secrets.map(({ sealed }) => sealed) ?? [];
  const newFile = join(root, `${count}-new.key`);
  const printed: string[] = [];
  const look = async (...args: string[]) => {
    const { stdout, stderr } = await runCommand(args, { nowMs, env: { ...env(), SEALPOST_KEY_FILE: newFile } });
    printed.push(stdout, stderr);
  };
  const rewrapped = await run('secret', 'rewrap', '--new-key-file', newFile, '--json');
  printed.push(rewrapped.stdout, rewrapped.stderr);
  const sealedAfter = (await stored(first.userId))?.secrets.map(({ sealed }) => sealed) ?? [];
  await look('secret', 'add', 'canary-account');
  await look('secret', 'revoke', 'canary-account', first.secretId, '--json');
  await look('account', 'entitle', 'canary-account', '--add', 'filter:status=live', '--json');
  await look('account', 'disable', 'canary-account', '--json');
  for (const words of [
    ['account', 'list'],
    ['account', 'show', 'canary-account'],
    ['audit', 'list'],
    ['config'],
    ['init'],
  ]) {
    await look(...words);
    await look(...words, '--json');
  }
  const keys = [keyFile, newFile].flatMap((path) => readFileSync(path, 'utf8').trim().split('\n'));
  const sealed = [...sealedBefore, ...sealedAfter];
  expect([sealed.length, printed.join('').includes('canary-account')]).toEqual([4, true]);
  for (const text of [first.secret, second, ...keys, ...sealed]) expect(printed.join('\n').includes(text)).toBe(false);
  const files = filesBelow(store);
  expect(files.some((bytes) => bytes.includes('canary-account'))).toBe(true);
  for (const secret of [first.secret, second, ...keys]) {
    const raw = Buffer.from(secret, keys.includes(secret) ? 'hex' : 'base64url');
    for (const form of [
      Buffer.from(secret),
      raw,
      Buffer.from(raw.toString('hex')),
      Buffer.from(raw.toString('base64')),
    ])
      expect(files.some((bytes) => bytes.includes(form))).toBe(false);
  }
});
