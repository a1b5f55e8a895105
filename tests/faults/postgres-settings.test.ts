// A PostgreSQL whose database or role is set to what changes the meaning of statements and the form of results: a store is made, every part of it is
// written, and everything must be as it was written.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createEventIds } from '../../server/src/live/event-id.ts';
import { openStore } from '../../server/src/store/open.ts';
import { migratePostgres } from '../../server/src/store/postgres/schema.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { type RunningPostgres, startPostgres } from '../support/running-postgres.ts';
import { partsOf } from './store-parts.ts';

const settings = {
  standard_conforming_strings: 'off',
  bytea_output: 'escape',
  array_nulls: 'off',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  extra_float_digits: '-15',
  datestyle: 'SQL, DMY',
  intervalstyle: 'sql_standard',
  timezone: 'Asia/Kathmandu',
  search_path: 'nowhere',
  default_transaction_isolation: 'serializable',
};
const places = ['DATABASE', 'ROLE'] as const;
let server: RunningPostgres;

const run = async (...statements: readonly string[]): Promise<readonly Record<string, Buffer>[]> => {
  const database = server.connect();
  let rows: readonly Record<string, Buffer>[] = [];
  for (const statement of statements) rows = await database.unsafe(statement);
  await database.end();
  return rows;
};

beforeAll(async () => {
  server = await startPostgres();
});
beforeEach(() => run(...places.map((place) => `ALTER ${place} postgres RESET ALL`)));
afterAll(() => server?.stop());

/** What is not as it was written, in a store made and written at a server that is set up so. */
const alteredIn = async (url: string): Promise<readonly string[]> => {
  await migratePostgres(url);
  const parts = Object.entries(partsOf(1));
  const store = await openStore(url, 'write');
  for (const [, { write }] of parts) await write(store);
  await store.close();
  const again = await openStore(url, 'write');
  const altered: string[] = [];
  for (const [name, { isThere }] of parts) if (!(await isThere(again))) altered.push(name);
  const eventIds = createEventIds(await again.reports.lineage());
  if (eventIds.parse(eventIds.encode(7)) !== 7) altered.push('lineage');
  altered.push(...(await again.findDamage()).map(({ table, reason }) => `${table}: ${reason}`));
  await again.close();
  return altered;
};

test('settings: whatever changes the meaning of statements or the form of results, a store is written and read as ever', {
  timeout: 3_600_000,
}, async () => {
  for (let done = 0; done < countOf(4, 100); done += 1) {
    const place = places[done % places.length];
    await run(...Object.entries(settings).map(([name, value]) => `ALTER ${place} postgres SET ${name} = '${value}'`));
    const altered = await alteredIn(server.url(`set_${done}`));
    tally({ stores: 1, altered: altered.length });
    expect(altered).toEqual([]);
  }
});

test('settings: bytes as a text of SQL are altered (control)', async () => {
  await run(
    'ALTER DATABASE postgres SET standard_conforming_strings = off',
    'ALTER DATABASE postgres SET bytea_output = hex',
  );
  const [row] = await run(`SELECT '\\x41424344'::bytea AS value`);
  const altered = row?.value?.toString() === 'ABCD' ? 0 : 1;
  tallyControl({ altered });
  expect(altered).toBe(1);
});
