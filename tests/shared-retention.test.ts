// Two real nodes on one PostgreSQL with different retention: the history of both stays as long as the longer one says. And a single node with one that is too short.
import { dayMs } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { runReports } from '../server/src/store/format/report-run.ts';
import { openStore } from '../server/src/store/open.ts';
import type { Store } from '../server/src/store/store.ts';
import { inFull, isFull, tally, tallyControl } from './support/full-count.ts';
import { createWorld, fetchSigned, killGroup, type Server, startServer, type World } from './support/real-program.ts';
import { type RunningPostgres, startPostgres } from './support/running-postgres.ts';
import { createSignedReports } from './support/signed-reports.ts';

const { report } = await createSignedReports();
const days = 29;
let postgres: RunningPostgres;
let world: World;
let store: Store;
let times: readonly number[];
const running = new Set<Server>();

beforeAll(async () => {
  postgres = await startPostgres({ durable: true });
  world = await createWorld(postgres.url('retention', 'read_ms=10000&write_ms=20000'));
  store = await openStore(world.store, 'write');
  const now = Math.floor(Date.now() / 1_000);
  times = Array.from({ length: days }, (_, i) => now - (i + 1) * 86_400 + 3_600).reverse();
  await store.reports.append(times.map((at) => report(world.feedId, at, at)));
});
afterAll(async () => {
  for (const server of running) await server.stop();
  await store?.close();
  world?.remove();
  await postgres?.stop();
});

const startNode = async (...args: readonly string[]): Promise<Server> => {
  const server = await startServer(world, args, {}, true);
  running.add(server);
  return server;
};

/** A round of retention runs when a node starts, and a node does not end within one. */
const runRound = async (...args: readonly string[]): Promise<readonly string[]> => {
  const server = await startNode(...args);
  const seen = await degradedOf(server);
  await server.stop();
  running.delete(server);
  return seen;
};

const degradedOf = async ({ opsUrl }: Server): Promise<readonly string[]> => {
  const { degraded = [] } = (await (await fetch(`${opsUrl}/readyz`)).json()) as { degraded?: readonly string[] };
  return degraded;
};

const daysStored = async (of = store, { feedId } = world, at = times): Promise<number> =>
  (await Promise.all(at.map((at) => of.reports.at([feedId], at)))).filter(([one]) => one !== undefined).length;

const daysServed = async ({ url }: Server): Promise<number> => {
  const found = times.map((at) => fetchSigned(url, `/api/v1/reports?feedID=${world.feedId}&timestamp=${at}`, world));
  return (await Promise.all(found)).filter(({ status }) => status === 200).length;
};

const retain = async (...args: readonly string[]) => {
  const command = ['store', 'retain', '--store', world.store, '--json', ...args];
  const { code, stdout, stderr } = await runCommand(command, { cwd: world.folder });
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
};

const short = ['--retention-days', '3', '--retention-bytes', '1MB'] as const;
const long = ['--retention-days', '30'] as const;

test('shared retention: a node with a shorter retention deletes nothing that another one keeps', async () => {
  const keeper = await startNode(...long);
  await runRound(...short, '--workers', '1');
  const served = await daysServed(keeper);
  tally({ 'days deleted': days - served });
  expect(served).toBe(days);
  const state = await retain();
  expect(state).toMatchObject({ applies: { retentionDays: 30, retentionBytes: null }, waiting: null });
  expect(state.nodes).toEqual([{ node: expect.any(String), retentionDays: 30, retentionBytes: null }]);
  killGroup(keeper);
  await keeper.finished;
  running.delete(keeper);
});

test('shared retention: without the other node it deletes nothing for a day, however often it starts, and /readyz says so', async () => {
  await expect.poll(async () => (await retain()).nodes).toEqual([]);
  const node = await startNode(...short);
  await expect.poll(() => degradedOf(node)).toEqual([expect.stringContaining('sealpost store retain --now')]);
  const [said] = await degradedOf(node);
  const { applies, waiting } = await retain();
  expect(applies).toEqual({ retentionDays: 30, retentionBytes: null });
  expect(waiting).toEqual({ retentionDays: 3, retentionBytes: 1_000_000, from: expect.any(String) });
  expect(Math.abs(Date.parse(waiting.from) - Date.now() - dayMs)).toBeLessThan(dayMs / 24);
  for (const text of ['30 days', '3 days', 'unlimited', '1000000 bytes', waiting.from.slice(0, 19)])
    expect(said).toContain(text);
  await node.stop();
  running.delete(node);
  await runRound(...short);
  expect((await retain()).waiting).toEqual(waiting);
  const stored = await daysStored();
  tally({ 'days deleted': days - stored });
  expect(stored).toBe(days);
});

test('shared retention: when the longer one is announced again, nothing waits any more', async () => {
  const keeper = await startNode(...long);
  await expect.poll(async () => (await retain()).waiting).toBeNull();
  expect(await degradedOf(keeper)).toEqual([]);
  await keeper.stop();
  running.delete(keeper);
});

/** As if what waits had waited for long enough. */
const passDay = () =>
  store.retention.update((current) => {
    if (current?.waiting === undefined) throw new Error('Nothing waits.');
    return { ...current, waiting: { ...current.waiting, fromMs: 0 } };
  });
const passHour = () =>
  store.retention.update((current) => {
    if (current?.deletionFromMs === undefined) throw new Error('No deletion waits.');
    return { ...current, deletionFromMs: 1 };
  });

inFull(
  'shared retention: another value waits for a day of its own, after which it applies, and what it deletes for an hour',
  async () => {
    await runRound(...short);
    await passDay();
    await runRound('--retention-days', '20');
    expect((await retain()).waiting).toMatchObject({ retentionDays: 20, retentionBytes: null });
    expect(await daysStored()).toBe(days);
    await passDay();
    const waits = await startNode('--retention-days', '20');
    await expect.poll(async () => (await retain()).deletionFrom).not.toBeNull();
    expect(await retain()).toMatchObject({ applies: { retentionDays: 20 }, waiting: null });
    expect(await daysStored()).toBe(days);
    await waits.stop();
    running.delete(waits);
    await passHour();
    const node = await startNode('--retention-days', '20');
    await expect.poll(() => daysStored()).toBeLessThan(days);
    expect(await degradedOf(node)).toEqual([]);
    expect(await retain()).toMatchObject({ applies: { retentionDays: 20, retentionBytes: null }, waiting: null });
    await node.stop();
    running.delete(node);
  },
);

test('shared retention: once it is confirmed, a shorter one applies', async () => {
  await runRound(...short);
  const before = await daysStored();
  expect(await retain('--now')).toMatchObject({ applies: { retentionDays: 3 }, waiting: null });
  expect((await retain('--now')).applies).toEqual({ retentionDays: 3, retentionBytes: 1_000_000 });
  const node = await startNode(...short);
  await expect.poll(() => daysStored()).toBeLessThanOrEqual(4);
  tallyControl({ 'days deleted once confirmed': before - (await daysStored()) });
  await node.stop();
  running.delete(node);
});

test.each(isFull ? ['lmdb', 'postgres'] : ['lmdb'])(
  'retention: a single node on a store in %s that starts with a shorter one deletes nothing for an hour, unless that is confirmed',
  async (engine) => {
    const single = await createWorld(engine === 'lmdb' ? undefined : postgres.url('single', 'write_ms=20000'));
    let opened: Store | undefined = await openStore(single.store, 'write');
    const some = times.filter((_, i) => isFull || i % 4 === 0);
    let server: Server | undefined;
    const restart = async (): Promise<Server> => {
      await server?.stop();
      server = await startServer(single, ['--retention-days', '3'], {}, true);
      return server;
    };
    const daysLeft = async (): Promise<number> => {
      const reader = await openStore(single.store, 'read');
      try {
        return await daysStored(reader, single, some);
      } finally {
        await reader.close();
      }
    };
    try {
      // LMDB deletes whole runs: each day has more reports than a run.
      const ofDay = (at: number) =>
        Array.from({ length: runReports + 1 }, (_, i) => report(single.feedId, at + i, at + i));
      for (const at of some) await opened.reports.append(ofDay(at));
      await opened.close();
      opened = undefined;
      for (let i = 0; i < 2; i += 1) {
        const node = await restart();
        await expect
          .poll(() => degradedOf(node))
          .toEqual([expect.stringContaining('3 days apply, and more than a tenth')]);
      }
      const left = await daysLeft();
      tally({ 'days deleted': some.length - left });
      expect(left).toBe(some.length);
      const { code } = await runCommand(['store', 'retain', '--store', single.store, '--now']);
      expect(code).toBe(0);
      const node = await restart();
      await expect.poll(daysLeft).toBeLessThanOrEqual(4);
      tallyControl({ 'days deleted once confirmed': some.length - (await daysLeft()) });
      expect(await degradedOf(node)).toEqual([]);
    } finally {
      await server?.stop();
      await opened?.close();
      single.remove();
    }
  },
);
