// Writing to a database that rejects reports: it counts as stopped once nothing has worked for a while, and as resumed when something does.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from 'vitest';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import type { Store, StoredReport } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(server.stop);

const t0 = 1_763_200_000;
const one = (n: number): StoredReport[] => [report(secondStream(1), t0 + n, t0 + n)];
const leafOf = (schema: string): string => `${schema}.reports_p20251115`;

const stores: Store[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

/** Has inserts into the partition fail as on a full disk, or the commits after them; returns the way to end that. */
const fillUp = async (schema: string, failing: 'insert' | 'commit' = 'insert'): Promise<() => Promise<unknown>> => {
  const [name, leaf] = [`"${schema}".full_disk`, leafOf(`"${schema}"`)];
  await database.unsafe(`
    CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
    CREATE ${failing === 'insert' ? 'TRIGGER full_disk BEFORE' : 'CONSTRAINT TRIGGER full_disk AFTER'} INSERT ON ${leaf}
      ${failing === 'insert' ? '' : 'DEFERRABLE INITIALLY DEFERRED'} FOR EACH ROW EXECUTE FUNCTION ${name}()`);
  return async () => database.unsafe(`DROP TRIGGER full_disk ON ${leaf}`);
};

const open = async (schema: string, stallMs: number) => {
  const events: StoreEvent[] = [];
  const store = await openStore(server.url(schema, 'write_ms=2000'), 'write', {
    tell: (event) => void (event.kind.startsWith('writing') && events.push(event)),
    writing: { stallMs, probeEveryMs: 50 },
  });
  stores.push(store);
  await store.reports.append(one(0));
  return { store, events };
};

/** Holds a lock of another session on the partition of the reports until it is released. */
const lockOut = async (schema: string): Promise<() => Promise<void>> => {
  const session = await database.reserve();
  await session`BEGIN`;
  await session.unsafe(`LOCK TABLE ${leafOf(schema)} IN SHARE MODE`);
  return async () => {
    await session`ROLLBACK`;
    session.release();
  };
};

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await sleep(20);
};

const unavailable = { code: 'store_unavailable' };

test('postgres writing: a lock of somebody else on a partition stops it, and its release resumes it though nobody appends', async () => {
  const { store, events } = await open('locked_out', 300);
  const release = await lockOut('locked_out');
  await expect(store.reports.append(one(1))).rejects.toMatchObject(unavailable);
  await until(() => store.stops().length > 0);
  expect(store.stops()).toMatchObject([{ part: 'reports', ...unavailable }]);
  expect(await store.reports.at([secondStream(1)], t0)).toHaveLength(1);
  await release();
  await until(() => store.stops().length === 0);
  expect(events.map(({ kind }) => kind)).toEqual(['writingStopped', 'writingResumed']);
  expect(await store.reports.append(one(1))).toEqual(['stored']);
});

test('postgres writing: while batches fail it stays stopped, even though all but the commit works, until one is stored', async () => {
  const { store, events } = await open('full', 300);
  const makeRoom = await fillUp('full', 'commit');
  const unknown = { code: 'store_outcome_unknown' };
  const began = performance.now();
  while (performance.now() - began < 1_000) await expect(store.reports.append(one(1))).rejects.toMatchObject(unknown);
  expect(store.stops()).toMatchObject([{ part: 'reports', ...unknown }]);
  expect(events.map(({ kind }) => kind)).toEqual(['writingStopped']);
  await makeRoom();
  expect(await store.reports.append(one(1))).toEqual(['stored']);
  expect(store.stops()).toEqual([]);
});

test('postgres writing: a batch that is sent once and fails stops it until the database would take that batch; the tries store nothing', async () => {
  const { store, events } = await open('seldom', 300);
  const makeRoom = await fillUp('seldom');
  await expect(store.reports.append(one(1))).rejects.toMatchObject({ code: 'store_disk_full' });
  await expect.poll(store.stops, { timeout: 20_000 }).toMatchObject([{ part: 'reports', code: 'store_disk_full' }]);
  const began = performance.now();
  while (performance.now() - began < 1_000) {
    expect(store.stops()).toHaveLength(1);
    await sleep(20);
  }
  await makeRoom();
  await expect.poll(store.stops, { timeout: 20_000 }).toEqual([]);
  expect(events.map(({ kind }) => kind)).toEqual(['writingStopped', 'writingResumed']);
  expect([await store.reports.position(), store.reports.newestMs(secondStream(1))]).toEqual([1, t0 * 1_000]);
  expect(await store.reports.append(one(1))).toEqual(['stored']);
});

test('postgres writing: duplicates, which are not written, end no stop', async () => {
  const { store, events } = await open('duplicates', 300);
  const makeRoom = await fillUp('duplicates');
  await expect(store.reports.append(one(1))).rejects.toMatchObject({ code: 'store_disk_full' });
  const began = performance.now();
  while (performance.now() - began < 1_500) expect(await store.reports.append(one(0))).toEqual(['duplicate']);
  expect(store.stops()).toMatchObject([{ part: 'reports', code: 'store_disk_full' }]);
  expect(events.map(({ kind }) => kind)).toEqual(['writingStopped']);
  await makeRoom();
  expect(await store.reports.append(one(1))).toEqual(['stored']);
  expect(store.stops()).toEqual([]);
});

test('postgres writing: a failure that is over soon is no stop', async () => {
  const { store, events } = await open('brief', 60_000);
  const release = await lockOut('brief');
  await expect(store.reports.append(one(1))).rejects.toMatchObject(unavailable);
  await release();
  expect(store.stops()).toEqual([]);
  expect(await store.reports.append(one(1))).toEqual(['stored']);
  expect(events).toEqual([]);
});
