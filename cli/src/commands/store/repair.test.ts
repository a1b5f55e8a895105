// The command `store repair` on every engine: a new store with everything intact, and what another deployment has of the rest.
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@sealpost/client';
import type { FeedId } from '@sealpost/protocol';
import { openNode } from '@sealpost/server/node/node';
import { withPrice } from '@sealpost/server/store/format/report-contents';
import { openEnvironment, openTable, type Table } from '@sealpost/server/store/lmdb/environment';
import { pagesFile } from '@sealpost/server/store/lmdb/pages-file';
import { openStore } from '@sealpost/server/store/open';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeSettings } from '../../../../tests/faults/node-settings.ts';
import { openService, type Service } from '../../../../tests/support/running-api.ts';
import { act, registerSigners, testStream } from '../../../../tests/support/running-ingest.ts';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const { report, signerSets } = await createSignedReports();
const strangers = await createSignedReports('strangers');
const [feedId, other] = [secondStream(1), secondStream(2)];
const start = Math.floor(Date.now() / 1_000) - 2_000;
/** The other deployment has one of them without a registered signer. */
const strange = 3;
const reports = Array.from({ length: 200 }, (_, i) => report(feedId, start + i, start + i));
const others = Array.from({ length: 10 }, (_, i) => report(other, start + i, start + i));
const root = mkdtempSync(join(tmpdir(), 'sealpost-repair-'));
const keyFile = join(root, 'key');
const database = await startPostgres();
const sql = database.connect();
let source: Service;
let fetching: NodeJS.ProcessEnv;

beforeAll(async () => {
  source = await openService([testStream(feedId)], signerSets, Date.now);
  await source.append(reports.map((one, i) => (i === strange ? strangers.report(feedId, start + i, start + i) : one)));
  const { userId, secret } = await source.addAccount(['public']);
  fetching = { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
});
afterAll(async () => {
  await source.close();
  await sql.end();
  await database.stop();
  rmSync(root, { recursive: true, force: true });
});

const hashOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** Flips a bit of the records of a table that are meant. */
const flip = async (folder: string, table: string, isMeant: (key: Buffer, nth: number) => boolean): Promise<void> => {
  const environment = openEnvironment(folder, false);
  const opened: Table = openTable(environment, table, table === 'runs');
  const entries = [...opened.getRange()].map(({ key, value }) => ({
    key: Buffer.from(key),
    value: Buffer.from(value),
  }));
  environment.root.transactionSync(() => {
    for (const [nth, { key, value }] of entries.entries()) {
      if (!isMeant(key, nth)) continue;
      value[20] = (value[20] as number) ^ 1; // all are longer
      opened.put(key, value);
    }
  });
  await environment.root.close();
};

type Engine = {
  readonly engine: string;
  readonly url: (name: string) => string;
  readonly damage: (name: string, account: string) => Promise<void>;
  readonly fingerprint: (name: string) => Promise<unknown>;
};

const engines: readonly Engine[] = [
  {
    engine: 'lmdb',
    url: (name) => join(root, name),
    damage: async (name, account) => {
      await flip(join(root, name, 'reports'), 'runs', (_, nth) => nth === 0);
      await flip(join(root, name, 'admin'), 'records', (key) =>
        [`account/${account}`, `stream/${other}`].includes(String(key)),
      );
    },
    fingerprint: async (name) => ['reports', 'admin'].map((part) => hashOf(pagesFile(join(root, name, part)))),
  },
  {
    engine: 'postgres',
    url: (name) => database.url(name),
    damage: async (name, account) => {
      const flipped = sql`set_byte(record, 20, 255 - get_byte(record, 20))`;
      await sql`UPDATE ${sql(name)}.reports SET record = ${flipped}
        WHERE observations >= ${(start + 2) * 1_000} AND observations < ${(start + 60) * 1_000} AND feed_id =
          (SELECT feed_id FROM ${sql(name)}.reports GROUP BY feed_id ORDER BY count(*) DESC LIMIT 1)`;
      await sql`UPDATE ${sql(name)}.records SET record = ${flipped} WHERE key IN (${account}, ${other})`;
    },
    fingerprint: async (name) => {
      const all: unknown[] = [];
      for (const table of ['reports', 'records', 'audit', 'candles', 'appended', 'counters', 'usage', 'heads'])
        all.push([
          ...(await sql`SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM ${sql(name)}.${sql(table)} t`),
        ]);
      return all;
    },
  },
];

const contentsOf = async (url: string, of: FeedId = feedId): Promise<readonly string[]> => {
  const store = await openStore(url, 'read');
  const page = await store.reports.page(of, start, 1_000);
  await store.close();
  return page.reports.map(
    ({ observationsMs, fullReport }) => `${observationsMs} ${Buffer.from(fullReport).toString('hex')}`,
  );
};
const written = (all: readonly { readonly observationsMs: number; readonly fullReport: Uint8Array }[]) =>
  all.map(({ observationsMs, fullReport }) => `${observationsMs} ${Buffer.from(fullReport).toString('hex')}`);

describe.each(engines)('store repair on $engine', ({ engine, url, damage, fingerprint }) => {
  const [damagedName, newName] = [`${engine}_damaged`, `${engine}_new`];
  const env = { SEALPOST_STORE: url(damagedName), SEALPOST_KEY_FILE: keyFile };
  const accounts: { readonly userId: string; readonly secret: string }[] = [];
  let before: unknown;

  beforeAll(async () => {
    const store = await openStore(url(damagedName), 'write');
    await store.reports.append([...reports, ...others].map(withPrice));
    await store.admin.update('stream', [feedId, other], () => [testStream(feedId), testStream(other)], act);
    await registerSigners(store, signerSets);
    await store.close();
    expect((await runCommand(['init'], { env })).stderr).toBe('');
    for (const name of ['one', 'two']) {
      const args = ['account', 'create', '--name', name, '--entitle', 'public', '--json'];
      const { userId, secret } = JSON.parse((await runCommand(args, { env })).stdout);
      accounts.push({ userId, secret });
    }
    await damage(damagedName, accounts[0]?.userId ?? '');
    before = await fingerprint(damagedName);
  });

  test('verify names what is damaged and the command; what is intact is copied byte for byte, the rest is listed', async () => {
    const found = await runCommand(['store', 'verify'], { env });
    expect([found.code, found.stdout]).toEqual([1, expect.stringContaining('run: sealpost store repair --to NEW.')]);
    for (const name of [`records account/${accounts[0]?.userId}`, `records stream/${other}`])
      expect(found.stdout).toContain(name);
    const { code, stdout } = await runCommand(['store', 'repair', '--to', url(newName), '--json'], { env });
    const result = JSON.parse(stdout);
    expect([code, result.fetched]).toEqual([1, null]);
    expect(result.lost.filter(({ table }: { table: string }) => table === 'records')).toHaveLength(2);
    const intact = await contentsOf(url(newName));
    const [gap] = result.lost.filter((loss: { feedId: string | null }) => loss.feedId === feedId);
    expect(intact).toEqual(
      written(reports.filter(({ observationsMs: ms }) => ms < (gap.fromMs ?? 0) || ms > gap.toMs)),
    );
    expect([intact.length > 100, intact.length < 200, result.reports]).toEqual([true, true, intact.length + 10]);
    expect(await contentsOf(url(newName), other)).toEqual(written(others));
    expect((await runCommand(['store', 'verify', '--signatures', '--store', url(newName)])).code).toBe(0);
    expect(await fingerprint(damagedName)).toEqual(before);
  });

  test('the new store serves', async () => {
    const node = await openNode({
      settings: nodeSettings(url(newName), keyFile),
      version: '0.0.0',
      ingestToken: undefined,
      logTo: { write: () => {} },
    });
    try {
      const [lost, kept] = accounts.map((account) => createClient({ baseUrl: node.url, ...account }));
      expect((await kept?.latest(feedId))?.report.observationsTimestamp).toBe(start + 199);
      await expect(lost?.latest(feedId)).rejects.toMatchObject({ status: 401 });
    } finally {
      await node.stop('test');
    }
  });

  test('with --from, missing reports are fetched and verified; one that does not verify stays lost', async () => {
    const target = url(`${newName}_fetched`);
    const from = ['store', 'repair', '--to', target, '--from', source.url];
    const wrong = await runCommand(from, { env: { ...env, ...fetching, SEALPOST_SECRET: 'wrong' } });
    expect([wrong.code, wrong.stdout]).toEqual([1, '']);
    const { code, stdout } = await runCommand([...from, '--json'], { env: { ...env, ...fetching } });
    const { fetched, lost } = JSON.parse(stdout);
    expect([code, fetched.rejected]).toEqual([1, 1]);
    const moment = (start + strange) * 1_000;
    expect(lost).toContainEqual(expect.objectContaining({ feedId, fromMs: moment, toMs: moment }));
    expect(await contentsOf(target)).toEqual(written(reports.toSpliced(strange, 1)));
    expect((await runCommand(['store', 'verify', '--signatures', '--store', target])).code).toBe(0);
    expect(await fingerprint(damagedName)).toEqual(before);
  });

  test('a new store that is not empty, or is the damaged one, is refused', async () => {
    const full = await runCommand(['store', 'repair', '--to', url(newName)], { env });
    expect([full.code, full.stderr]).toEqual([1, `error: ${url(newName)} is not empty. Set --to to a new store.\n`]);
    const same = await runCommand(['store', 'repair', '--to', url(damagedName)], { env });
    expect([same.code, same.stderr]).toEqual([2, 'error: --to is the damaged store itself. Set it to a new store.\n']);
  });
});

test('store repair: the audit log is copied up to a damaged entry; derived records are derived again', async () => {
  const folder = join(root, 'log');
  cpSync(join(root, 'lmdb_damaged'), folder, { recursive: true });
  await flip(join(folder, 'admin'), 'audit', (_, nth) => nth === 2);
  await flip(join(folder, 'reports'), 'candles', () => true);
  const env = { SEALPOST_STORE: folder };
  const { code, stdout } = await runCommand(['store', 'repair', '--to', join(root, 'log-new')], { env });
  expect(code).toBe(1);
  expect(stdout).toContain(' and the audit log up to entry 2 copied to ');
  expect(stdout).toMatch(/\nDamaged records derived again: [1-9]\d* of candles\.\n/);
  expect(stdout).toContain(
    '  audit 3: entry 3 is damaged or missing, so it and the entries after it are not copied. Affects the proof that the audit log is complete.\n',
  );
  expect(stdout).toContain(`\nTo fetch missing reports from another server, delete ${join(root, 'log-new')} and run`);
  expect(stdout).toContain(
    `\nNext: cp ${folder}/sealpost.key ${join(root, 'log-new')}/ && sealpost serve --store ${join(root, 'log-new')}\n`,
  );
  const log = await runCommand(['audit', 'list', '--store', join(root, 'log-new')]);
  expect(log.stdout).toContain('store.repair');
  expect((await runCommand(['audit', 'verify', '--store', join(root, 'log-new')])).code).toBe(0);
});

test('store repair: an intact store is copied whole', async () => {
  const folder = join(root, 'intact');
  const store = await openStore(folder, 'write');
  await store.reports.append(reports);
  await store.close();
  const { code, stdout } = await runCommand(['store', 'repair', '--store', folder, '--to', join(root, 'intact-new')]);
  expect([code, stdout.split('\n').slice(0, 2)]).toEqual([
    0,
    [
      `200 reports and the audit log up to entry 0 copied to ${join(root, 'intact-new')}; all verified.`,
      'Nothing is lost.',
    ],
  ]);
  expect(await contentsOf(join(root, 'intact-new'))).toEqual(written(reports));
});
