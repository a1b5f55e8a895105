// The tables of a store in PostgreSQL, however it is called and however many make it at once.
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import { migratePostgres } from './schema.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
afterAll(() => server.stop());

test('postgres schema: an SQL keyword can be a schema’s name', async () => {
  const store = await openStore(server.url('order'), 'write');
  try {
    const one = report(secondStream(1), 1_763_200_000, 1_763_200_000);
    expect(await store.reports.append([one])).toEqual(['stored']);
    expect((await store.reports.page(secondStream(1), 1_763_200_000, 1)).reports).toEqual([one]);
    expect((await store.reports.stats()).usedBytes).toBeGreaterThan(0);
  } finally {
    await store.close();
  }
});

test('postgres schema: several that migrate or open a new store at once make it once', async () => {
  const url = server.url('crowd');
  const migrated = await Promise.all(Array.from({ length: 4 }, () => migratePostgres(url)));
  expect(migrated.map(({ from }) => from).sort()).toEqual([0, 5, 5, 5]);
  const opened = await Promise.all(Array.from({ length: 3 }, () => openStore(server.url('opened'), 'write')));
  for (const store of opened) await store.close();
});
