import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { expect, test } from 'vitest';
import { resolveSettings, type SettingInputs, settingNames, settingsTable } from './config.ts';
import { showSettings } from './shown.ts';

const resolve = (inputs: Partial<SettingInputs>) => resolveSettings({ flags: {}, env: {}, file: undefined, ...inputs });
const file = (content: unknown) => ({ name: 'sealpost.json', content });

test('config: without any source every setting has its default', () => {
  const { values, sources } = resolve({});
  expect(values).toEqual({
    store: 'lmdb:./data',
    readStore: undefined,
    network: 'testnet',
    key: undefined,
    keyFile: './data/sealpost.key',
    listen: { host: '127.0.0.1', port: 7_401 },
    workers: 0,
    tlsCert: undefined,
    tlsKey: undefined,
    requestsPerSecond: 10,
    anonymousRequestsPerSecond: 10,
    failuresPerSecond: 10,
    feedIdsMax: 100,
    socketsPerAccount: 20,
    liveBufferBytesMax: 1_048_576,
    publicRequestsPerSecond: 200,
    connectionsMax: 16_384,
    connectionsPerAddress: 4_096,
    unreadBytesMax: 268_435_456,
    unreadBytesPerAccount: 67_108_864,
    skewMaxMs: 5_000,
    origins: undefined,
    trustedProxies: undefined,
    eventLoopLagMaxMs: 250,
    explorer: true,
    drainMs: 8_000,
    logLevel: 'info',
    retentionDays: 30,
    retentionBytes: Number.POSITIVE_INFINITY,
    aheadMaxMs: 5_000,
    verifierThreads: availableParallelism(),
    linesInFlightMax: 4_096,
    opsListen: { host: '127.0.0.1', port: 7_402 },
    opsHosts: undefined,
    ingestToken: undefined,
    ingestTokenFile: undefined,
  });
  expect(new Set(Object.values(sources))).toEqual(new Set(['default']));
});

test('config: the key is in the folder of its own store, unless a setting says otherwise', () => {
  const keyFileOf = (store: string, env = {}) => resolve({ flags: { store }, env }).values.keyFile;
  expect(
    ['lmdb:./data', './here', '/srv/store/', 'lmdb:/srv/store', 'lmdb:store', 'lmdb: spaced', 'lmdb:', '/'].map(
      (store) => keyFileOf(store),
    ),
  ).toEqual([
    './data/sealpost.key',
    './here/sealpost.key',
    '/srv/store/sealpost.key',
    '/srv/store/sealpost.key',
    'store/sealpost.key',
    'spaced/sealpost.key',
    './sealpost.key',
    '/sealpost.key',
  ]);
  expect(keyFileOf('postgres://me:a:b/c@h/db')).toBe('./data/sealpost.key');
  expect(keyFileOf('/srv/store', { SEALPOST_KEY_FILE: './data/sealpost.key' })).toBe('./data/sealpost.key');
});

test('config: a flag overrides the environment, the environment the file, the file the default', () => {
  const inputs = {
    flags: { retentionDays: '1' },
    env: { SEALPOST_RETENTION_DAYS: '2', SEALPOST_AHEAD_MAX_MS: '20' },
    file: file({ retentionDays: 3, aheadMaxMs: 30, linesInFlightMax: 300 }),
  };
  const { values, sources } = resolve(inputs);
  expect([values.retentionDays, values.aheadMaxMs, values.linesInFlightMax, values.store]).toEqual([
    1,
    20,
    300,
    'lmdb:./data',
  ]);
  expect([sources.retentionDays, sources.aheadMaxMs, sources.linesInFlightMax, sources.store]).toEqual([
    'flag',
    'environment',
    'file',
    'default',
  ]);
});

test('config: an empty environment variable counts as absent', () => {
  expect(resolve({ env: { SEALPOST_STORE: '' } }).sources.store).toBe('default');
});

test('config: a bad value is rejected with the setting, the source and what is expected', () => {
  expect(() => resolve({ flags: { retentionDays: '0' } })).toThrow(
    'The setting retentionDays is "0" in --retention-days, expected a whole number of days from 1 to 36500.',
  );
  expect(() => resolve({ env: { SEALPOST_VERIFIER_THREADS: 'many' } })).toThrow(
    'The setting verifierThreads is "many" in SEALPOST_VERIFIER_THREADS, expected auto, which is one per processor, or a whole number from 0, which means none, to 64.',
  );
  expect(() => resolve({ file: file({ opsListen: '7402' }) })).toThrow(
    'The setting opsListen is "7402" in sealpost.json, expected HOST:PORT, such as 127.0.0.1:7402 or [::1]:7402.',
  );
  expect(() => resolve({ file: file({ store: true }) })).toThrow(
    'The setting store is neither a string nor a number in sealpost.json.',
  );
  expect(() => resolve({ file: file({ store: 5 }) })).toThrow(
    'The setting store is a number in sealpost.json, expected a string: the address of a store, lmdb:FOLDER or postgres://USER@HOST/DATABASE.',
  );
});

test('config: a file with an unknown key, or that is not an object, is rejected', () => {
  expect(() => resolve({ file: file({ retentonDays: 3 }) })).toThrow(
    'sealpost.json sets retentonDays, which is not a setting. Settings are: store, readStore, network,',
  );
  expect(() => resolve({ file: file([]) })).toThrow('sealpost.json must contain a JSON object of setting → value.');
});

test('config: sizes are bytes or have a unit, and 0 is rejected', () => {
  const bytes = (text: string) => resolve({ flags: { retentionBytes: text } }).values.retentionBytes;
  expect(['1000000', '50GB', '2 GiB', 'unlimited'].map(bytes)).toEqual([1e6, 5e10, 2 ** 31, Number.POSITIVE_INFINITY]);
  for (const text of ['0', '1', '-1', '5KB', '1.5GB', 'iB', '9999999TB']) expect(() => bytes(text), text).toThrow();
});

test('config: an IPv6 address is in brackets', () => {
  expect(resolve({ flags: { opsListen: '[::1]:0' } }).values.opsListen).toEqual({ host: '::1', port: 0 });
  expect(() => resolve({ flags: { opsListen: '::1:80' } })).toThrow();
});

test('config: trusted proxies are addresses and prefixes of either family, and nothing else', () => {
  const trustedProxies = '127.0.0.1, fd00:1:2:3::10, 10.0.0.0/8,fd00:1::/64';
  expect(resolve({ flags: { trustedProxies } }).values.trustedProxies).toEqual([
    '127.0.0.1',
    'fd00:1:2:3::10',
    '10.0.0.0/8',
    'fd00:1::/64',
  ]);
  for (const bad of ['fd00:1:2:3', 'proxy.internal', '10.0.0.0/33', '127.0.0.1,'])
    expect(() => resolve({ flags: { trustedProxies: bad } }), bad).toThrow('expected IP addresses or prefixes');
});

test('config: names of the private listener have no port, which would match no request', () => {
  const opsHosts = 'node1.example.com, LB.example.com';
  expect(resolve({ flags: { opsHosts } }).values.opsHosts).toEqual(['node1.example.com', 'LB.example.com']);
  for (const bad of ['node1.example.com:7402', 'http://node1.example.com', 'node1.example.com,', '[::1]'])
    expect(() => resolve({ flags: { opsHosts: bad } }), bad).toThrow('expected host names without port');
});

test('config: a secret is never shown, valid or not', () => {
  const secret = 'correct-horse-battery-staple';
  const shown = showSettings(resolve({ env: { SEALPOST_INGEST_TOKEN: secret } }));
  expect(shown.find(({ name }) => name === 'ingestToken')).toEqual({
    name: 'ingestToken',
    value: '(set)',
    source: 'environment',
    default: null,
    env: 'SEALPOST_INGEST_TOKEN',
    flag: null,
  });
  expect(JSON.stringify(shown)).not.toContain(secret);
  expect(() => resolve({ env: { SEALPOST_INGEST_TOKEN: 'too short' } })).toThrow(
    'The setting ingestToken is a value that is not shown in SEALPOST_INGEST_TOKEN, expected a text of 16 to 512',
  );
});

test('config: shown values can be parsed again', () => {
  const flags = { retentionBytes: '50GB', opsListen: '[::1]:1', verifierThreads: '3' };
  const first = resolve({ flags });
  const shown = showSettings(first).filter(({ value }) => value !== null);
  const again = resolve({ file: file(Object.fromEntries(shown.map(({ name, value }) => [name, value]))) });
  expect(again.values).toEqual(first.values);
});

test('config: docs/configuration.md lists exactly the settings of the table, with variable, flag and default', () => {
  const document = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  const rows = [...document.matchAll(/^\| `(\w+)` +\| `(\w+)` +\| (?:`(--[\w-]+)`|–) +\| (?:`(.+?)`|–) +\|/gm)];
  const documented = rows.map(([, name, env, flag, fallback]) => [name, { env, flag, default: fallback }]);
  const known = settingNames.map((name) => {
    const { env, flag, defaultText } = settingsTable[name];
    return [name, { env, flag: flag?.split(' ')[0], default: defaultText }];
  });
  expect(documented).toEqual(known);
});
