// A real PgBouncer between nodes and their database, configured as docs/operating.md says.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../server/src/store/open.ts';
import type { Store } from '../server/src/store/store.ts';
import { findDebianProgram } from './support/debian-programs.ts';
import { freePort } from './support/free-port.ts';
import { type RunningPostgres, startPostgres } from './support/running-postgres.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;
const run = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => report(stream, t0 + from + i, t0 + from + i));

const pgbouncer = findDebianProgram('pgbouncer');
if ('missing' in pgbouncer) process.stderr.write(`skipped: ${pgbouncer.missing}\n`);

const folder = mkdtempSync(join(tmpdir(), 'sealpost-pgbouncer-'));
let server: RunningPostgres;
let bouncer: ChildProcess | undefined;
let url = '';

/** Those lines of the documentation that matter, and a place for each connection of two nodes. */
const configure = (postgresPort: number, port: number): string => `[databases]
postgres = host=127.0.0.1 port=${postgresPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = session
default_pool_size = 20
ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout, synchronous_commit
`;

beforeAll(async () => {
  if ('missing' in pgbouncer) return;
  server = await startPostgres();
  const port = await freePort();
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'pgbouncer.ini'), configure(server.port, port));
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn(pgbouncer.path, [...user, join(folder, 'pgbouncer.ini')], { stdio: ['ignore', 'pipe', 'pipe'] });
  bouncer = child;
  await new Promise<void>((resolve, reject) => {
    let told = '';
    child.stderr.on('data', (chunk: Buffer) => {
      told += chunk;
      if (told.includes('process up')) resolve();
    });
    child.once('exit', () => reject(new Error(`PgBouncer did not start: ${told}`)));
  });
  url = `postgres://postgres@127.0.0.1:${port}/postgres?schema=bounced&read_ms=20000&write_ms=20000&connections=8`;
});
afterAll(async () => {
  if (bouncer?.exitCode === null) {
    const ended = new Promise((resolve) => bouncer?.once('exit', resolve));
    bouncer.kill('SIGKILL');
    await ended;
  }
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test.skipIf('missing' in pgbouncer)(
  'pgbouncer in session mode: two nodes write, read and follow each other through it',
  async () => {
    const nodes: Store[] = [await openStore(url, 'write'), await openStore(url, 'write')];
    const [first, second] = nodes as [Store, Store];
    try {
      const woken = new Promise<void>((resolve) => void second.reports.onAppended(resolve));
      expect(new Set(await first.reports.append(run(0, 50)))).toEqual(new Set(['stored']));
      await woken;
      await expect.poll(() => second.reports.latest(stream)?.observationsMs).toBe((t0 + 49) * 1_000);
      const outcomes = await Promise.all(nodes.map(({ reports }) => reports.append(run(40, 20))));
      expect(outcomes.flat().filter((outcome) => outcome === 'stored')).toHaveLength(10);
      expect((await second.reports.page(stream, t0, 100)).reports).toHaveLength(60);
      await first.retention.update(() => ({ days: 30, bytes: null }));
      expect(await second.retention.get()).toEqual({ days: 30, bytes: null });
    } finally {
      for (const node of nodes) await node.close();
    }
  },
);
