import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseFeedId } from '@sealpost/protocol';
import { openStore } from '@sealpost/server/store/open';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { testStream } from '../../../tests/support/running-ingest.ts';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { changeRecords } from '../admin-change.ts';
import { runCommand } from '../sample-session.fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-admin-'));
const nowMs = 1_763_200_000_000;
const [feedId, other] = [secondStream(1), secondStream(2)];
let store = '';
let count = 0;

beforeEach(() => {
  store = join(root, `store-${++count}`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const run = (...args: string[]) => runCommand([...args, '--store', store], { nowMs });
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);
const file = (name: string, content: unknown): string => {
  const path = join(root, `${count}-${name}`);
  writeFileSync(path, JSON.stringify(content));
  return path;
};
const auditOf = async () =>
  (await run('audit', 'list', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

const required = ['--name', 'BTC/USD', '--base-asset', 'BTC', '--quote-asset', 'USD', '--asset-class', 'Crypto'];
const addArguments = [
  ...required,
  '--feed-type',
  'Crypto',
  '--attribute-type',
  'CexPrice',
  '--network-type',
  'testnet',
];

test('stream: the first one creates the store; it goes from testing to live to decommissioned', async () => {
  expect(await run('stream', 'add', feedId.toUpperCase().replace('0X', '0x'), ...addArguments)).toEqual({
    code: 0,
    stdout: `BTC/USD (${feedId}) added as testing.\n`,
    stderr: '',
  });
  const added = (await json('stream', 'list')).feeds[0];
  expect(added).toMatchObject({ feedId, assetName: 'BTC', marketHours: '24/7', status: 'testing', hidden: false });
  expect(added.createdAt).toBe('2025-11-15T09:46:40.000000Z');

  expect(await json('stream', 'set', 'btc/usd', '--status', 'live', '--hidden', 'true', '--name', 'BTC')).toEqual({
    ...added,
    status: 'live',
    hidden: true,
    name: 'BTC',
  });
  const dated = await json('stream', 'set', feedId, '--expected-decommission-at', '+1d');
  expect(dated.expectedDecommissionAt).toBe('2025-11-16T09:46:40.000000Z');
  expect((await json('stream', 'decommission', 'BTC')).decommissionedAt).toBe('2025-11-15T09:46:40.000000Z');
  expect(await run('stream', 'set', 'BTC', '--status', 'live')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: BTC is decommissioned, which is permanent.\n',
  });
  expect((await run('stream', 'list')).stdout).toMatch(
    /^BTC +0x0003\S+ +testnet +decommissioned +hidden +2025-11-15T/m,
  );
});

test('stream: invalid arguments are rejected, and change nothing', async () => {
  await run('stream', 'add', feedId, ...addArguments);
  const refusal = async (...args: string[]) => {
    const { code, stderr } = await run(...args);
    return [code, stderr];
  };
  expect(await refusal('stream', 'add', feedId, ...addArguments)).toEqual([
    1,
    `error: ${feedId} is already in the catalog as BTC/USD. Change it with: sealpost stream set --store ${store}.\n`,
  ]);
  expect(await refusal('stream', 'add', '0x12', ...addArguments)).toEqual([
    2,
    'error: FEED_ID is "0x12", expected 0x and 64 hex digits.\n',
  ]);
  expect(await refusal('stream', 'set', 'BTC/USD')).toEqual([
    2,
    'error: Nothing to change. See: sealpost stream set --help.\n',
  ]);
  expect(await refusal('stream', 'set', 'BTC/USD', '--hidden', 'yes')).toEqual([
    2,
    'error: --hidden has the value "yes", expected true or false.\n',
  ]);
  expect(await refusal('stream', 'set', 'ETH/USD', '--hidden', 'true')).toEqual([
    2,
    `error: No stream is named "ETH/USD". Similar: BTC/USD. List streams with: sealpost stream list --store ${store}.\n`,
  ]);
  expect(await refusal('stream', 'decommission', 'BTC/USD')).toEqual([
    1,
    'error: status is "decommissioned", expected live, since BTC/USD is testing.\n',
  ]);
  expect((await auditOf()).length).toBe(1);
});

test('stream: a name belongs to one stream in any case, however it is given, until that one is decommissioned', async () => {
  const others = addArguments.slice(2);
  expect((await run('stream', 'add', feedId, ...addArguments)).code).toBe(0);
  const taken = {
    code: 1,
    stdout: '',
    stderr: `error: The name BTC/USD belongs to ${feedId}. Choose another, or rename that stream: sealpost stream set ${feedId} --name NAME --store ${store}.\n`,
  };
  for (const name of ['BTC/USD', 'btc/usd'])
    expect(await run('stream', 'add', other, '--name', name, ...others)).toEqual(taken);
  expect((await run('stream', 'add', other, '--name', 'BTC/EUR', ...others, '--hidden')).code).toBe(0);
  expect(await run('stream', 'set', other, '--name', 'Btc/Usd')).toEqual(taken);
  const twin = { ...testStream(secondStream(3)), name: 'btc/USD' };
  expect(await run('stream', 'import', file('twin.json', [testStream(secondStream(4)), twin]))).toEqual(taken);
  const both = file('both.json', [twin, { ...twin, feedId: secondStream(4), name: 'BTC/usd' }]);
  expect((await run('stream', 'import', both)).code).toBe(1);
  expect((await json('stream', 'list')).feeds.map(({ name }: { name: string }) => name)).toEqual([
    'BTC/EUR',
    'BTC/USD',
  ]);
  // Its own name in another spelling, and two names that are exchanged, are nobody else's.
  expect((await run('stream', 'set', feedId, '--name', 'Btc/Usd', '--status', 'live')).code).toBe(0);
  const [first, second] = (await json('stream', 'list')).feeds;
  const exchanged = file('exchanged.json', [
    { ...first, name: second.name },
    { ...second, name: first.name },
  ]);
  expect(await json('stream', 'import', exchanged)).toEqual({ added: 0, changed: 2, unchanged: 0 });
  expect((await run('stream', 'decommission', feedId)).code).toBe(0);
  expect((await run('stream', 'add', secondStream(5), '--name', 'BTC/EUR', ...others)).code).toBe(0);
});

test('stream: of commands that take the same name at once, one does', async () => {
  await run(
    'stream',
    'import',
    file(
      'catalog.json',
      [6, 7, 8].map((n) => testStream(secondStream(n))),
    ),
  );
  const name = ['--name', 'desk', ...addArguments.slice(2)];
  const results = await Promise.all([
    ...[1, 2, 3].map((n) => run('stream', 'add', secondStream(n), ...name)),
    ...[6, 7, 8].map((n) => run('stream', 'set', secondStream(n), '--name', 'DESK')),
  ]);
  expect(results.map(({ code }) => code).sort()).toEqual([0, 1, 1, 1, 1, 1]);
});

test('stream: streams that had the same name before can be changed, and renamed', async () => {
  await run('stream', 'add', feedId, ...addArguments);
  const opened = await openStore(store, 'read');
  const twins = [feedId, other].map((id) => ({ ...testStream(id), name: 'BTC/USD' }));
  await opened.admin.update('stream', [feedId, other], () => twins, { atMs: 1, actor: 'a', action: 'b', detail: {} });
  await opened.close();
  expect((await run('stream', 'set', feedId, '--hidden', 'true')).code).toBe(0);
  expect((await run('stream', 'set', other, '--name', 'BTC/USD-2')).code).toBe(0);
});

test('stream: import adds and changes in one entry of the log, and a forbidden transition stops all of it', async () => {
  const streams = [testStream(feedId), testStream(other)];
  const catalog = file('catalog.json', { feeds: streams });
  expect((await run('stream', 'import', catalog)).stdout).toBe('2 added, 0 changed, 0 unchanged.\n');
  expect(await json('stream', 'import', catalog)).toEqual({ added: 0, changed: 0, unchanged: 2 });
  const renamed = file('renamed.json', [{ ...streams[0], name: 'NEW' }, streams[1], testStream(secondStream(3))]);
  expect(await json('stream', 'import', renamed)).toEqual({ added: 1, changed: 1, unchanged: 1 });
  const back = file('back.json', [
    { ...streams[0], name: 'NEWER' },
    { ...streams[1], status: 'testing' },
  ]);
  expect((await run('stream', 'import', back)).stderr).toBe(
    'error: status is "testing", expected decommissioned, since TEST0002/USD-Streams-CexPrice is live.\n',
  );
  expect((await json('stream', 'list')).feeds.map(({ name }: { name: string }) => name)).toContain('NEW');
  const log = await auditOf();
  expect(log.map(({ action, actor, atMs }) => [action, actor, atMs])).toEqual([
    ['stream.import', 'cli:tester@bench', nowMs],
    ['stream.import', 'cli:tester@bench', nowMs],
  ]);
  expect(log[1].detail).toEqual({
    file: renamed,
    added: [secondStream(3)],
    changed: { [feedId]: { name: ['TEST0001/USD-Streams-CexPrice', 'NEW'] } },
  });
});

test('stream: one of the other network is rejected with advice, and nothing of its file is imported', async () => {
  const asMainnet = [...addArguments.slice(0, addArguments.indexOf('--network-type')), '--network-type', 'mainnet'];
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    return [code, stdout + stderr];
  };
  expect(await refused('stream', 'add', feedId, ...asMainnet)).toEqual([
    1,
    'error: BTC/USD belongs to mainnet, but this deployment serves testnet. Nothing was changed. Use one store per network: set --store and --network mainnet.\n',
  ]);
  const mixed = file('mixed.json', [
    testStream(feedId),
    testStream(other, { networkType: 'mainnet' }),
    testStream(secondStream(3), { networkType: 'mainnet' }),
  ]);
  expect(await refused('stream', 'import', mixed)).toEqual([
    1,
    expect.stringContaining('TEST0002/USD-Streams-CexPrice and 1 other belong to mainnet'),
  ]);
  expect(existsSync(store)).toBe(false);
  expect((await run('stream', 'add', feedId, ...asMainnet, '--network', 'mainnet')).code).toBe(0);
  expect((await json('stream', 'list')).feeds).toHaveLength(1);
});

test('stream: one with an undefined time resolution is rejected, by add and import', async () => {
  const strange = parseFeedId(`0x2${feedId.slice(3)}`);
  const expected = `begins with 2, which is no time resolution: no report of it could be stored. Nothing was changed. Check the feed ID: its first digit is 0 for seconds or 1 for milliseconds.\n`;
  const catalog = file('strange.json', [testStream(feedId), testStream(strange)]);
  for (const args of [
    ['add', strange, ...addArguments],
    ['import', catalog],
  ]) {
    const { code, stdout, stderr } = await run('stream', ...args);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(expected)]);
  }
  expect(existsSync(store)).toBe(false);
});

test('stream: a file that is not a catalog is rejected with the position', async () => {
  const { code, stderr } = await run('stream', 'import', file('bad.json', [{ feedId: '0x1' }]));
  expect([code, stderr.includes('bad.json[0].feedId is "0x1", expected 0x and 64 hex digits.')]).toEqual([1, true]);
  expect((await run('stream', 'import', join(root, 'missing.json'))).code).toBe(2);
});

const digest = `0x${'09'.repeat(32)}`;
const addresses = [1, 2, 3, 4].map((n) => `0x${`${n}`.repeat(40)}`);

test('signers: a set is registered, listed, updated by import and retired permanently', async () => {
  const added = await run('signers', 'add', digest, '-f', '1', '--address', addresses.join(','));
  expect(added).toEqual({ code: 0, stdout: `Signer set ${digest} registered.\n`, stderr: '' });
  expect((await run('signers', 'add', digest, '-f', '1', '--address', addresses.join(','))).code).toBe(1);
  expect((await run('signers', 'calldata')).stdout).toMatch(new RegExp(`^0x41e3df58${digest.slice(2)}[0-9a-f]+\n$`));
  expect(await run('signers', 'add', digest, '-f', '2', '--address', addresses.join(','))).toMatchObject({ code: 2 });
  const published = file('signers.json', { [digest]: { f: 0, addresses: addresses.slice(0, 2) } });
  expect(await json('signers', 'import', published)).toEqual({ added: 0, changed: 1, unchanged: 0 });
  expect((await run('signers', 'retire', digest)).stdout).toBe(`Signer set ${digest} retired.\n`);
  expect(await run('signers', 'retire', digest)).toMatchObject({ code: 1 });
  expect(await run('signers', 'calldata')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no active signer set'),
  });
  expect(await json('signers', 'import', published)).toEqual({ added: 0, changed: 0, unchanged: 1 });
  expect(await json('signers', 'list')).toEqual({
    [digest]: {
      f: 0,
      addresses: addresses.slice(0, 2),
      addedAt: '2025-11-15T09:46:40.000000Z',
      retiredAt: '2025-11-15T09:46:40.000000Z',
    },
  });
  expect((await run('signers', 'retire', `0x${'00'.repeat(32)}`)).code).toBe(2);
  expect((await run('audit', 'verify')).stdout).toMatch(/^3 entries verified\. .+: 3 with hash [0-9a-f]{64}/);
});

test('admin change: records that another process changed in the meantime are read and planned again', async () => {
  await run('stream', 'add', feedId, ...addArguments);
  const opened = await openStore(store, 'read');
  try {
    let interfered = false;
    const admin = {
      ...opened.admin,
      get: async (...[kind, key]: Parameters<typeof opened.admin.get<'stream'>>) => {
        const record = await opened.admin.get(kind, key);
        if (!interfered) await run('stream', 'set', feedId, '--asset-name', 'Bitcoin');
        interfered = true;
        return record;
      },
    } as typeof opened.admin; // only streams are asked for
    const session = { nowMs: () => nowMs, actor: () => 'cli:other@bench' };
    const summary = await changeRecords(session, admin, {
      kind: 'stream',
      keys: [feedId],
      plan: (current) => current.map((stream) => ({ ...testStream(feedId), ...stream, hidden: true })),
      action: 'stream.set',
    });
    expect(summary).toEqual({ added: 0, changed: 1, unchanged: 0 });
    expect(await opened.admin.get('stream', feedId)).toMatchObject({ assetName: 'Bitcoin', hidden: true });
  } finally {
    await opened.close();
  }
});

test('admin change: without a check, the other records are not read', async () => {
  await run('stream', 'add', feedId, ...addArguments);
  const opened = await openStore(store, 'read');
  try {
    const checks: unknown[] = [];
    const update: typeof opened.admin.update = (kind, keys, alter, act, check) => {
      checks.push(check);
      return opened.admin.update(kind, keys, alter, act, check);
    };
    const session = { nowMs: () => nowMs, actor: () => 'cli:other@bench' };
    const hide = (hidden: boolean) => ({
      kind: 'stream' as const,
      keys: [feedId],
      plan: () => [{ ...testStream(feedId), hidden }],
      action: 'stream.set',
    });
    await changeRecords(session, { ...opened.admin, update }, hide(true));
    await changeRecords(session, { ...opened.admin, update }, { ...hide(false), check: () => {} });
    expect(checks).toEqual([undefined, expect.any(Function)]);
  } finally {
    await opened.close();
  }
});
