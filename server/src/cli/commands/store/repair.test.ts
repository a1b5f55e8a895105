// The command `store repair`, with another deployment to fetch from.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openService, type Service } from '../../../../../tests/support/running-api.ts';
import { act, registerSigners, testStream } from '../../../../../tests/support/running-ingest.ts';
import { startPostgres } from '../../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../../tests/support/signed-reports.ts';
import { withPrice } from '../../../store/format/report-contents.ts';
import { openEnvironment, openTable } from '../../../store/lmdb/environment.ts';
import { openStore } from '../../../store/open.ts';
import type { NewReport } from '../../../store/store.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const { report, signerSets } = await createSignedReports();
const stranger = await createSignedReports('stranger');
const feedId = secondStream(1);
const start = Math.floor(Date.now() / 1_000) - 2_000;
/** Two blocks of 92, which fill two pages each, and a tail of 16. */
const reports = Array.from({ length: 200 }, (_, i) => report(feedId, start + i, start + i));
const folder = mkdtempSync(join(tmpdir(), 'sealpost-repair-cli-'));
let source: Service;
let env: NodeJS.ProcessEnv;

/** A store with all reports, and what it needs to verify them. */
const fill = async (url: string, filled: readonly NewReport[] = reports): Promise<void> => {
  const store = await openStore(url, 'write');
  await store.reports.append(filled);
  await store.admin.update('stream', [feedId], () => [testStream(feedId)], act);
  await registerSigners(store, signerSets, { retiredAt: '2025-01-01T00:00:00.000Z' });
  await store.close();
};

beforeAll(async () => {
  source = await openService([testStream(feedId)], signerSets, Date.now);
  // In the second run, the other deployment has one report without a registered signer.
  await source.append(reports.map((one, i) => (i === 100 ? stranger.report(feedId, start + i, start + i) : one)));
  const { userId, secret } = await source.addAccount(['public']);
  await fill(folder);
  env = { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret, SEALPOST_STORE: folder };
});
afterAll(async () => {
  await source.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Destroys the index of a block. */
const destroy = async (nth: number, at = folder): Promise<void> => {
  const environment = openEnvironment(join(at, 'reports'), false);
  const blocks = openTable(environment, 'blocks');
  const { key, value } = [...blocks.getRange()][nth] as { key: Buffer; value: Buffer }; // there are two
  environment.root.transactionSync(() => blocks.put(key, Buffer.from(value).fill(0, 0, 40)));
  await environment.root.close();
};

test('store repair: what is lost is listed, then fetched from another deployment and verified against the signer sets of this store', async () => {
  expect((await runCommand(['store', 'repair'], { env })).stdout).toBe('No damage found.\n');
  await destroy(0);
  const planned = await runCommand(['store', 'repair', '--dry-run'], { env });
  expect([planned.code, planned.stdout.split('\n')[0]]).toEqual([1, '1 damaged record would be set aside.']);
  const { code, stdout } = await runCommand(['store', 'repair'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^1 damaged record set aside: .*set-aside-\w+\.ndjson\.\n.*Lost:\n {2}0x0003\w+: 92 reports from .* to .*; the index of the run is damaged\nFetch lost reports/s,
  );
  expect((await runCommand(['store', 'verify'], { env })).code).toBe(0);
  const wrong = await runCommand(['store', 'repair', '--from', source.url], {
    env: { ...env, SEALPOST_SECRET: 'wrong' },
  });
  expect([wrong.code, wrong.stdout]).toEqual([1, '']);
  const filled = await runCommand(['store', 'repair', '--from', source.url], { env });
  expect([filled.code, filled.stdout]).toEqual([
    0,
    '0 damaged records set aside.\n92 reports fetched and stored.\nNothing is lost.\n',
  ]);
  expect((await runCommand(['store', 'verify', '--signatures'], { env })).stdout).toContain('No problems found.');
});

test('store repair: what is fetched counts once in the candles of its minute, hour and day', async () => {
  const priced = join(folder, 'priced');
  await fill(priced, reports.map(withPrice));
  const candles = async () => {
    const store = await openStore(priced, 'read');
    const read = async (resolution: number) =>
      (await store.reports.candles(feedId, { from: start - 86_400, to: start + 86_400, resolution })).candles;
    const all = [await read(60), await read(3_600), await read(86_400)];
    await store.close();
    return all;
  };
  const before = await candles();
  await destroy(0, priced);
  const there = { ...env, SEALPOST_STORE: priced };
  const { code, stdout } = await runCommand(['store', 'repair', '--json', '--from', source.url], { env: there });
  expect([code, JSON.parse(stdout).fetched]).toEqual([0, { stored: 92, rejected: 0 }]);
  expect(await candles()).toEqual(before);
  rmSync(priced, { recursive: true });
});

test('store repair: a report that does not verify is not stored, and stays lost', async () => {
  await destroy(1);
  const { code, stdout } = await runCommand(['store', 'repair', '--json', '--from', source.url], { env });
  const result = JSON.parse(stdout);
  expect([code, result.fetched]).toEqual([1, { stored: 91, rejected: 1 }]);
  expect(result.lost).toMatchObject([
    { feedId, table: 'blocks', reports: 1, fromMs: (start + 100) * 1_000, toMs: (start + 100) * 1_000 },
  ]);
  expect(readdirSync(folder).filter((name) => name.startsWith('set-aside-'))).toHaveLength(2);
});

test('store repair: a damaged entry of the audit log is kept, with and without --dry-run', async () => {
  const environment = openEnvironment(join(folder, 'admin'), false);
  const audit = openTable(environment, 'audit');
  const [first] = [...audit.getRange({ limit: 1 })];
  if (first === undefined) throw new Error('The audit log is empty.');
  environment.root.transactionSync(() => audit.put(Buffer.from(first.key), Buffer.from(first.value).fill(0, 0, 4)));
  await environment.root.close();
  for (const options of [['--dry-run'], []]) {
    const { code, stdout } = await runCommand(['store', 'repair', ...options], { env });
    expect(code).toBe(1);
    expect(stdout).toContain('\naudit 0000000000000001 is kept: entries of the audit log are never removed;');
  }
});

test('store repair: a store in PostgreSQL is repaired next to its nodes; what is lost is fetched and verified', async () => {
  const server = await startPostgres();
  const database = server.connect();
  const there = { ...env, SEALPOST_STORE: server.url('repaired') };
  try {
    await fill(server.url('repaired'));
    await database`UPDATE repaired.reports SET record = '\\xabcd'::bytea
      WHERE observations >= ${(start + 99) * 1_000} AND observations <= ${(start + 101) * 1_000}`;
    const found = await runCommand(['store', 'verify'], { env: there });
    expect([found.code, found.stdout.split('\n')[0]]).toEqual([
      1,
      '200 reports of 1 stream checked. 3 problems. To repair it, see: sealpost store repair --help.',
    ]);
    const planned = await runCommand(['store', 'repair', '--dry-run'], { env: there });
    expect([planned.code, planned.stdout]).toEqual([1, expect.stringContaining('Nothing was changed.')]);
    const { code, stdout } = await runCommand(['store', 'repair', '--json', '--from', source.url], { env: there });
    const { file, lost, fetched, store } = JSON.parse(stdout);
    rmSync(file);
    expect([code, fetched, store]).toEqual([1, { stored: 2, rejected: 1 }, server.url('repaired')]);
    expect(lost).toMatchObject([{ feedId, reports: 1, fromMs: (start + 100) * 1_000, toMs: (start + 100) * 1_000 }]);
    expect((await runCommand(['store', 'verify', '--signatures'], { env: there })).stdout).toContain(
      'No problems found.',
    );
  } finally {
    await database.end();
    await server.stop();
  }
});
