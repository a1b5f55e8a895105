// A real node with workers, whose history comes from a replica.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorld, fetchSigned, type Server, startServer, type World } from './support/real-program.ts';
import { type RunningPostgres, startPostgres, startStandby } from './support/running-postgres.ts';
import { readText } from './support/source-tree.ts';

let primary: RunningPostgres;
let standby: RunningPostgres;
let world: World;
let server: Server;

beforeAll(async () => {
  primary = await startPostgres();
  standby = await startStandby(primary);
  world = await createWorld(primary.url('served', 'read_ms=10000'));
  await createReader();
  const replica = standby.url('served', 'read_ms=10000').replace('postgres@', 'sealpost_reader:hush@');
  server = await startServer(world, ['--workers', '2', '--read-store', replica]);
});
afterAll(async () => {
  await server?.stop();
  world?.remove();
  await standby?.stop();
  await primary?.stop();
});

/** As operating.md says; the owner and the schema have other names here. */
const createReader = async (): Promise<void> => {
  const [, statements = ''] = /```sql\n([^`]+)```/.exec(readText('docs/operating.md')) ?? [];
  const sql = primary.connect();
  try {
    await sql.unsafe(
      statements.replaceAll('ROLE sealpost ', 'ROLE postgres ').replaceAll('SCHEMA sealpost', 'SCHEMA served'),
    );
    await sql.unsafe('CREATE TABLE served.of_tomorrow (x int)');
    const [row] = await sql`SELECT has_table_privilege('sealpost_reader', 'served.of_tomorrow', 'SELECT') AS reads`;
    expect(row).toEqual({ reads: true });
    await sql.unsafe('DROP TABLE served.of_tomorrow');
  } finally {
    await sql.end();
  }
};

const countBy = async (by: string): Promise<number> => {
  const text = await (await fetch(`${server.opsUrl}/metrics`)).text();
  return Number(new RegExp(`^sealpost_store_history_reads_total\\{by="${by}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
};

test('read store: pages come from the replica, go on while the primary is away, and from the primary while the replica is', async () => {
  const { feedId } = world;
  const pageOf = (limit: number) => `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${newest - 9}&limit=${limit}`;
  const latest = await fetchSigned(server.url, `/api/v1/reports/latest?feedID=${feedId}`, world);
  const newest = ((await latest.json()) as { report: { observationsTimestamp: number } }).report.observationsTimestamp;
  const reports = async (limit: number) => {
    const response = await fetchSigned(server.url, pageOf(limit), world);
    return [response.status, ((await response.json()) as { reports?: unknown[] }).reports?.length];
  };
  await expect
    .poll(async () => {
      expect(await reports(10)).toEqual([200, 10]);
      return countBy('replica');
    })
    .toBeGreaterThan(2);
  await primary.kill();
  for (let limit = 1; limit <= 10; limit += 1) expect(await reports(limit)).toEqual([200, limit]);
  await primary.start();
  await standby.kill();
  // Connections to the primary are made anew, which may take a moment.
  await expect.poll(() => reports(7)).toEqual([200, 7]);
  expect(await countBy('away')).toBeGreaterThan(0);
  const { stderr, stdout } = await server.stop();
  expect(`${stdout}${stderr}`).not.toContain('hush');
});
