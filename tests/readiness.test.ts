// What /readyz says of a node that serves, but not with everything it has.
import { rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWorld, type Server, startServer, type World } from './support/real-program.ts';
import { type RunningPostgres, startPostgres } from './support/running-postgres.ts';

const probe = async ({ opsUrl }: Server) => (await (await fetch(`${opsUrl}/readyz`)).json()) as object;

test('readiness: while a worker cannot be replaced, the node is ready and says so, and no more once it is', async () => {
  const world = await createWorld();
  const server = await startServer(world, ['--workers', '2', '--verifier-threads', '1']);
  try {
    await fetch(`${server.url}/time`);
    const [, pid] = await server.printed(/"pid":(\d+),"event":"request"/);
    rmSync(world.keyFile);
    process.kill(Number(pid), 'SIGKILL');
    await server.printed(/"code":"worker_ended".*No key-encryption key/);
    expect(await probe(server)).toMatchObject({ ready: true, degraded: ['1 of 2 workers not running; see the log'] });
    writeFileSync(world.keyFile, `${world.key}\n`, { mode: 0o600 });
    await expect.poll(() => probe(server)).not.toHaveProperty('degraded');
  } finally {
    await server.stop();
    world.remove();
  }
});

describe('on PostgreSQL', () => {
  let postgres: RunningPostgres;
  let world: World;
  let server: Server;
  beforeAll(async () => {
    postgres = await startPostgres({ durable: true });
    world = await createWorld(postgres.url('readiness'));
    server = await startServer(world, ['--workers', '1', '--verifier-threads', '1']);
  });
  afterAll(async () => {
    await server?.stop();
    world?.remove();
    await postgres?.stop();
  });

  test('readiness: accounts and streams that cannot be read after a change are named for every process, until they can', async () => {
    const database = postgres.connect();
    expect(await probe(server)).toEqual({ ready: true, reasons: [] });
    await database.unsafe('ALTER TABLE readiness.records RENAME TO elsewhere');
    await database.unsafe("UPDATE readiness.counters SET value = value + 1 WHERE name = 'admin'");
    const why =
      /^accounts, streams and signers are those from before their last change, which cannot be read: .*readiness/;
    const fromWorker = new RegExp(why.source.replace('^', '^worker 1: '));
    await expect
      .poll(() => probe(server))
      .toEqual({
        ready: true,
        reasons: [],
        degraded: [expect.stringMatching(fromWorker), expect.stringMatching(why)],
      });
    await database.unsafe('ALTER TABLE readiness.elsewhere RENAME TO records');
    await expect.poll(() => probe(server)).toEqual({ ready: true, reasons: [] });
  });

  test('readiness: a database that can lose what was acknowledged is in /readyz, the log and the metrics, until it no longer can', async () => {
    const database = postgres.connect();
    const fsync = async (value: string): Promise<void> => {
      await database.unsafe(`ALTER SYSTEM SET fsync = ${value}`);
      await database`SELECT pg_reload_conf()`;
    };
    const metric = async (): Promise<string | undefined> =>
      /^sealpost_store_durability_reduced (\d)$/m.exec(await (await fetch(`${server.opsUrl}/metrics`)).text())?.[1];
    expect([await probe(server), await metric()]).toEqual([{ ready: true, reasons: [] }, '0']);
    await fsync('off');
    await server.printed(/"level":"error".*"event":"durabilityReduced","reason":"fsync is off/);
    expect([await probe(server), await metric()]).toEqual([
      { ready: true, reasons: [], degraded: [expect.stringMatching(/^store: fsync is off/)] },
      '1',
    ]);
    await fsync('on');
    await server.printed(/"level":"info".*"event":"durabilityRestored"/);
    expect([await probe(server), await metric()]).toEqual([{ ready: true, reasons: [] }, '0']);
  });
});
