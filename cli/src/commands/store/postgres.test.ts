// The commands of a store in PostgreSQL: its tables made, a store moved there and back, and its password never shown.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '@sealpost/server/store/open';
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const server = await startPostgres();
const root = mkdtempSync(join(tmpdir(), 'sealpost-moving-'));
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

// The server trusts everybody on this machine, so that any password is the right one.
const address = (schema: string) => server.url(schema).replace('postgres@', 'postgres:hush@');
const shown = (schema: string) => hidden(address(schema));
const hidden = (url: string) => url.replace(':hush@', ':***@');

/** The schema of this release. */
const schema = 5;

test('serve: a database without the tables is refused, and stays without them', async () => {
  const store = server.url('absent');
  const key = join(mkdtempSync(join(tmpdir(), 'sealpost-absent-')), 'key');
  const listen = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const { code, stderr } = await runCommand(['serve', '--store', store, '--key-file', key, ...listen]);
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(
      /^error: No store in postgres:.* Create one with: sealpost store migrate.* add --create\.\n$/,
    ),
  ]);
  expect((await runCommand(['store', 'stats', '--store', store])).stderr).toContain('No store in');
});

test('store migrate: creates the tables once, and reports it', async () => {
  const store = address('made');
  expect(await runCommand(['store', 'stats', '--store', store])).toMatchObject({
    code: 3,
    stderr: `error: No store in ${hidden(store).split('?')[0]}. Create one with: sealpost store migrate --store '${hidden(store)}'.\n`,
  });
  const both = await Promise.all([1, 2].map(() => runCommand(['store', 'migrate', '--store', store, '--json'])));
  expect(both.map(({ stdout }) => JSON.parse(stdout)).sort((a, b) => a.from - b.from)).toEqual([
    { store: shown('made'), from: 0, to: schema },
    { store: shown('made'), from: schema, to: schema },
  ]);
  expect(await runCommand(['store', 'migrate', '--store', store])).toMatchObject({
    code: 0,
    stdout: `${shown('made')} is up to date: schema ${schema}.\n`,
  });
  const config = await runCommand(['config', '--store', store, '--json']);
  expect(config.stdout).toContain(shown('made'));
  expect(config.stdout).not.toContain('hush');
});

test('store migrate: a store of a newer release is rejected', async () => {
  const store = address('aged');
  await runCommand(['store', 'migrate', '--store', store]);
  const database = server.connect();
  try {
    await database`UPDATE aged.layout SET version = ${schema + 1}`;
    expect((await runCommand(['store', 'stats', '--store', store])).stderr).toContain('Upgrade sealpost.');
  } finally {
    await database.end();
  }
});

test('store migrate: a store of an older release is rejected, also where its layout had no version', async () => {
  const store = address('young');
  await runCommand(['store', 'migrate', '--store', store]);
  const database = server.connect();
  try {
    const refused = { code: 3, stderr: expect.stringContaining('has an older schema; this release needs 5') };
    await database`UPDATE young.layout SET version = 4`;
    expect(await runCommand(['store', 'stats', '--store', store])).toMatchObject(refused);
    expect(await runCommand(['store', 'migrate', '--store', store])).toMatchObject(refused);
    await database`ALTER TABLE young.layout DROP COLUMN version`;
    expect(await runCommand(['store', 'stats', '--store', store])).toMatchObject(refused);
    expect(await runCommand(['store', 'migrate', '--store', store])).toMatchObject(refused);
  } finally {
    await database.end();
  }
});

test('store copy: to a database and back, compared; stats and verify are as before', async () => {
  const { report } = await createSignedReports();
  const [from, back, to] = [join(root, 'from'), join(root, 'back'), address('moved')];
  const t0 = Math.floor(Date.now() / 1_000) - 1_000;
  const source = await openStore(from, 'write');
  await source.reports.append(Array.from({ length: 150 }, (_, i) => report(secondStream(1), t0 + i, t0 + i)));
  await source.close();
  expect(await runCommand(['store', 'copy', '--from', from, '--to', to])).toMatchObject({
    code: 0,
    stdout: `150 reports in ${shown('moved')}, 0 already present; all verified.\n`,
  });
  // The address, with its password, is no argument: it is the setting store.
  const again = await runCommand(['store', 'copy', '--to', back, '--json'], { env: { SEALPOST_STORE: to } });
  expect(JSON.parse(again.stdout)).toEqual({
    from: shown('moved'),
    to: back,
    reports: 150,
    duplicates: 0,
    damaged: 0,
    auditEntries: 0,
  });
  for (const store of [to, back]) {
    const stats = JSON.parse((await runCommand(['store', 'stats', '--store', store, '--json'])).stdout);
    expect(stats).toMatchObject({ streams: 1, reports: 150, reportBytes: 150 * 736 });
    expect(await runCommand(['store', 'verify', '--store', store])).toMatchObject({
      code: 0,
      stdout: '150 reports of 1 stream checked. No problems found.\n',
    });
  }
});

test('store copy: one of the two stores must be given', async () => {
  expect(await runCommand(['store', 'copy'])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'error: Set --from, --to or both. The other one defaults to the setting store.\n',
  });
});

test('store backup: a database is copied into a folder that is a store', async () => {
  const folder = join(root, 'backup');
  const { code, stdout } = await runCommand(['store', 'backup', folder, '--store', address('moved')]);
  expect([code, stdout]).toEqual([0, expect.stringContaining(`150 reports of 1 stream in ${folder}`)]);
});

test('store backup: goes on after a read that took longer than one of a request may', async () => {
  const store = `${server.base}?schema=slow`;
  await runCommand(['store', 'migrate', '--store', store]);
  const database = server.connect();
  const holder = await database.reserve();
  /** Whether a statement of the command has waited for longer than a node lets it. */
  const isWaiting = async (): Promise<boolean> => {
    const [row] = await database<{ waiting: number }[]>`
      SELECT count(*)::int AS waiting FROM pg_stat_activity
      WHERE application_name = 'sealpost' AND wait_event_type = 'Lock' AND now() - query_start > interval '1.5 s'`;
    return (row?.waiting ?? 0) > 0;
  };
  try {
    await holder`BEGIN`;
    await holder`LOCK TABLE slow.records IN ACCESS EXCLUSIVE MODE`;
    let ended = false;
    const running = runCommand(['store', 'backup', join(root, 'slow'), '--store', store]).finally(() => {
      ended = true;
    });
    while (!ended && !(await isWaiting())) await new Promise((resolve) => setTimeout(resolve, 50));
    await holder`COMMIT`;
    expect(await running).toMatchObject({ code: 0, stderr: '' });
  } finally {
    holder.release();
    await database.end();
  }
});

test.each([
  [
    'a database that is not there',
    (url: string) => url.replace('/postgres?', '/nowhere?'),
    'database "nowhere" does not exist',
  ],
  [
    'a user who is not there',
    (url: string) => url.replace('postgres:hush', 'nobody:hush'),
    'role "nobody" does not exist',
  ],
  ['an unknown parameter', (url: string) => `${url}&colour=red`, 'unrecognized configuration parameter "colour"'],
])('store stats: %s is one line that says what to check', async (_, change, message) => {
  const advice = 'Check user, password, database and parameters in the address.';
  expect(await runCommand(['store', 'stats', '--store', change(address('refusing'))])).toMatchObject({
    code: 3,
    stderr: `error: The database rejects this: ${message}. ${advice}\n`,
  });
});
