// A PostgreSQL that is configured to commit asynchronously, which would lose what was acknowledged with its processes: every part of a store is written,
// all processes of the server are killed, and everything must be there.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { type RunningPostgres, startPostgres } from '../support/running-postgres.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { partsOf } from './store-parts.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;
let server: RunningPostgres;
let runs = 0;

const run = async (...statements: readonly string[]): Promise<void> => {
  const database = server.connect();
  for (const statement of statements) await database.unsafe(statement);
  await database.end();
};

beforeAll(async () => {
  server = await startPostgres();
  // What is not flushed by a commit stays in the memory of the server for long enough.
  await run(`ALTER SYSTEM SET wal_writer_delay = '10s'`, 'SELECT pg_reload_conf()');
});
beforeEach(() =>
  run('ALTER DATABASE postgres RESET synchronous_commit', 'ALTER ROLE postgres RESET synchronous_commit'),
);
afterAll(() => server?.stop());

/** Writes each part, a given one last, since its commit flushes those before; then kills the server and returns what is lost. */
const killAfterWrites = async (
  last: number,
): Promise<{ readonly acknowledged: number; readonly lost: readonly string[] }> => {
  const url = server.url('asynchronous');
  runs += 1;
  const all = Object.entries(partsOf(runs));
  const first = (last + 1) % all.length;
  const parts = [...all.slice(first), ...all.slice(0, first)];
  const store = await openStore(url, 'write');
  for (const [, { write }] of parts) await write(store);
  await server.kill();
  await store.close();
  await server.start();
  const again = await openStore(url, 'read');
  const lost: string[] = [];
  for (const [name, { isThere }] of parts) if (!(await isThere(again))) lost.push(name);
  await again.close();
  return { acknowledged: parts.length, lost };
};

const count = countOf(5, 60);

test('asynchronous commits: whatever the database or the role is set to, nothing acknowledged is lost with the server', {
  timeout: 3_600_000,
}, async () => {
  const places = ['DATABASE', 'ROLE'] as const;
  for (let done = 0; done < count; done += 1) {
    await run(`ALTER ${places[done % places.length]} postgres SET synchronous_commit = off`);
    const { acknowledged, lost } = await killAfterWrites(done);
    tally({ acknowledged, lost: lost.length });
    expect(lost).toEqual([]);
  }
});

test('asynchronous commits: a client that commits as the database is set to loses what it wrote (control)', async () => {
  await run('CREATE TABLE lost (n int)', 'CHECKPOINT', 'ALTER DATABASE postgres SET synchronous_commit = off');
  const client = server.connect();
  for (let n = 0; n < 10; n += 1) await client`INSERT INTO lost VALUES (${n})`;
  await server.kill();
  await client.end({ timeout: 0 });
  await server.start();
  const after = server.connect();
  const lost = 10 - (await after`SELECT * FROM lost`).length;
  await after.end();
  tallyControl({ lost });
  expect(lost).toBeGreaterThan(0);
});

test.each([
  ['off', 'on'],
  ['local', 'local'],
  ['remote_write', 'remote_write'],
  ['on', 'on'],
  ['remote_apply', 'remote_apply'],
])('asynchronous commits: where a database is set to %s, a report is committed with %s', async (set, used) => {
  const store = await openStore(server.url(`set_${set}`), 'write');
  await store.close();
  const schema = `set_${set}`;
  await run(
    `CREATE TABLE ${schema}.used (value text)`,
    `CREATE FUNCTION ${schema}.note() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN INSERT INTO ${schema}.used VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$`,
    `CREATE TRIGGER note AFTER INSERT OR UPDATE ON ${schema}.counters FOR EACH ROW EXECUTE FUNCTION ${schema}.note()`,
    `ALTER DATABASE postgres SET synchronous_commit = ${set}`,
  );
  const again = await openStore(server.url(schema), 'write');
  await again.reports.append([report(stream, t0, t0)]);
  await again.reports.confirm();
  await again.close();
  const database = server.connect();
  const rows = await database.unsafe(`SELECT value FROM ${schema}.used`);
  await database.end();
  expect(rows.map(({ value }) => value)).toEqual([used, used]);
});
