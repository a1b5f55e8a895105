// A store copied to the other engine and back is the same store.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../tests/support/running-postgres.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { copyStore } from './copy.ts';
import { openStore } from './open.ts';
import type { Account, Store, StoredReport } from './store.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const root = mkdtempSync(join(tmpdir(), 'sealpost-copy-'));
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

const t0 = 1_763_200_000;
const streams = [secondStream(1), secondStream(2), millisecondStream(3)];
const account: Account = {
  userId: 'a',
  name: 'A',
  createdAt: '2026-01-01T00:00:00.000000Z',
  disabledAt: null,
  secrets: [],
  entitlements: [],
  rateLimits: {},
};
const act = (action: string) => ({ atMs: 1, actor: 'test', action, detail: {} });

const fill = async ({ reports, admin, usage, quarantine }: Store): Promise<void> => {
  const seconds = (n: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...report(secondStream(n), t0 + i, t0 + i, 5n), price: 5n }));
  const fine = Array.from({ length: 2_500 }, (_, i) => report(millisecondStream(3), t0 * 1_000 + i, t0 * 1_000 + i));
  await reports.append([...seconds(1, 700), ...seconds(2, 10), ...fine]);
  await admin.update('account', ['a'], () => [account], act('create'));
  await admin.log(act('look'));
  await usage.add(
    [{ userId: 'a', day: '2026-01-01', route: 'feeds', requests: 3 }],
    [{ userId: 'a', secretId: 's1', usedAtMs: 60_000 }],
    Date.parse('2026-01-01'),
  );
  await quarantine.add(
    [1, 2].map((n) => ({ atMs: n, code: 'c', message: 'm', feedId: null, observationsMs: null, line: 'x' })),
  );
};

const contents = async ({ reports, admin, usage, quarantine }: Store) => {
  const all: StoredReport[] = [];
  for (const stream of streams) all.push(...(await reports.page(stream, t0 - 10, 10_000)).reports);
  return {
    reports: all.map(({ feedId, validFromMs, observationsMs, fullReport }) => [
      feedId,
      validFromMs,
      observationsMs,
      Buffer.from(fullReport).toString('hex'),
    ]),
    latest: streams.map((stream) => reports.latest(stream)),
    candles: await reports.candles(secondStream(1), { from: t0 - 60, to: t0 + 700, resolution: 60 }),
    accounts: await admin.list('account'),
    audit: await admin.auditAfter(0, 10),
    usage: await usage.list('a', '2025-01-01'),
    secretUses: await usage.lastUses('a'),
    refused: await quarantine.list(10),
  };
};

test('copy: to the other engine and back nothing is lost, and a second run changes nothing', async () => {
  const first = await openStore(join(root, 'first'), 'write');
  const database = await openStore(server.url('copied'), 'write');
  const last = await openStore(join(root, 'last'), 'write');
  try {
    await fill(first);
    const expected = await contents(first);
    expect(expected.reports).toHaveLength(3_210);
    expect(await copyStore(first, database)).toEqual({
      reports: 3_210,
      duplicates: 0,
      damaged: [],
      damagedCount: 0,
      auditEntries: 2,
    });
    expect(await copyStore(first, database)).toMatchObject({ reports: 3_210, duplicates: 3_210 });
    expect(await contents(database)).toEqual(expected);
    await copyStore(database, last);
    expect(await contents(last)).toEqual(await contents(database));
  } finally {
    for (const store of [first, database, last]) await store.close();
  }
});

test('copy: an interrupted copy resumes, and a target with other records is rejected', async () => {
  const from = await openStore(server.url('cut'), 'write');
  const to = await openStore(join(root, 'cut'), 'write');
  try {
    await fill(from);
    const stop = new AbortController();
    const cut = copyStore(from, to, { signal: stop.signal, onProgress: () => stop.abort() });
    await expect(cut).rejects.toMatchObject({ name: 'AbortError' });
    const { duplicates, reports } = await copyStore(from, to);
    expect([duplicates > 0, duplicates < reports, reports]).toEqual([true, true, 3_210]);
    await to.reports.append([report(secondStream(1), t0 + 5_000, t0 + 5_000, 1n)]);
    await from.reports.append([report(secondStream(1), t0 + 5_000, t0 + 5_000, 2n)]);
    await expect(copyStore(from, to)).rejects.toMatchObject({ code: 'store_write_failed' });
    await to.admin.log(act('by itself'));
    await expect(copyStore(from, to)).rejects.toThrow('The audit log of the target');
  } finally {
    await from.close();
    await to.close();
  }
});

test('copy: a quarantine full of long lines fits into the bounds of a database, both ways, and an interrupted copy resumes', async () => {
  const refused = (n: number) => ({
    atMs: n,
    code: 'c',
    message: 'm',
    feedId: null,
    observationsMs: null,
    line: String(n).padEnd(8_000, 'x'),
  });
  const from = await openStore(join(root, 'full'), 'write');
  const database = await openStore(server.url('full', 'read_ms=1000&write_ms=5000'), 'write');
  const last = await openStore(join(root, 'full-back'), 'write');
  try {
    const lines = Array.from({ length: 10_000 }, (_, n) => refused(n));
    for (let i = 0; i < lines.length; i += 1_000) await from.quarantine.add(lines.slice(i, i + 1_000));
    const kept = await from.quarantine.list(10_000);
    expect(kept.length).toBeGreaterThan(1_000);
    expect(kept).toEqual(lines.slice(-kept.length).reverse());
    await database.quarantine.add(kept.toReversed().slice(0, 100));
    await copyStore(from, database);
    await copyStore(database, last);
    for (const { quarantine } of [database, last]) expect(await quarantine.list(10_000)).toEqual(kept);
  } finally {
    for (const store of [from, database, last]) await store.close();
  }
});
