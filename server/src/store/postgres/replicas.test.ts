// History from replicas: a real primary with a real standby, whose replay a test can hold.
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { startPostgres, startStandby } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import { type Store, type StoredReport, StoreError } from '../store.ts';
import type { HistoryReader, StoreEvent } from '../store-event.ts';
import type { Run } from './connection.ts';
import type { HistoryReads } from './reads.ts';
import { createReplicaReads, createShown } from './replicas.ts';
import { tablesOf } from './schema.ts';

const { report } = await createSignedReports();
const primary = await startPostgres();
const standby = await startStandby(primary);
const replica = standby.connect();
afterAll(async () => {
  await replica.end();
  await standby.stop();
  await primary.stop();
});

const opened: Store[] = [];
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await replica`SELECT pg_wal_replay_resume() WHERE pg_is_in_recovery()`;
});

const t0 = 1_763_200_000;
const run = (n: number, from: number, count: number): StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(secondStream(n), t0 + from + i, t0 + from + i));
const patience = { timeout: 20_000 };

test('postgres replicas: what was shown is remembered of streams that have reports, not of any id that is asked for', () => {
  const [known, unknown] = [secondStream(1), secondStream(2)];
  const shown = createShown({ positionOf: (feedId) => (feedId === known ? 3 : 0) });
  for (const feedId of [known, unknown]) shown.begin([feedId]).note(7);
  expect([known, unknown].map((feedId) => shown.begin([feedId]).upTo)).toEqual([7, 0]);
});

/** A node with a replica, and who answered its readings of history. */
const openNode = async (schema: string) => {
  const answered: HistoryReader[] = [];
  const store = await openStore(primary.url(schema), 'write', {
    replicas: [standby.url(schema, 'read_ms=10000')],
    tell: (event) => void (event.kind === 'historyRead' && answered.push(event.by)),
  });
  opened.push(store);
  const at = async (n: number, second: number) => {
    const [found] = await store.reports.at([secondStream(n)], t0 + second);
    return [found && found.observationsMs / 1_000 - t0, answered.at(-1)];
  };
  return { store, at, answered };
};

const hold = () => replica`SELECT pg_wal_replay_pause()`;
const resume = () => replica`SELECT pg_wal_replay_resume()`;

test('replicas: all history is read from a replica that has caught up', async () => {
  const { store, at, answered } = await openNode('plain');
  await store.reports.append([...run(1, 0, 5), ...run(2, 0, 5)]);
  await expect.poll(() => at(1, 3), patience).toEqual([3, 'replica']);
  answered.length = 0;
  const stream = secondStream(2);
  const { reports } = store;
  const [one, other] = await Promise.all([reports.renderedAt([stream], t0 + 2), reports.renderedPage(stream, t0, 3)]);
  expect(one[0]?.json.toString()).toContain(`"observationsTimestamp":${t0 + 2}`);
  expect([other.lastMs, other.more]).toEqual([(t0 + 2) * 1_000, true]);
  expect((await reports.page(stream, t0, 10)).reports).toHaveLength(5);
  expect((await reports.neighbours(stream, t0 + 9)).previous?.observationsMs).toBe((t0 + 4) * 1_000);
  expect(await reports.windows(stream, t0, t0 + 9, 10)).toHaveLength(5);
  await reports.candles(stream, { from: t0 - 60, to: t0 + 60, resolution: 60 });
  expect(answered).toEqual(Array.from({ length: 6 }, () => 'replica'));
});

test('replicas: latest and history never contradict each other while a replica is behind; streams that it has stay there', async () => {
  const { store, at } = await openNode('behind');
  await store.reports.append([...run(1, 0, 5), ...run(2, 0, 5)]);
  await expect.poll(() => at(1, 4), patience).toEqual([4, 'replica']);
  await hold();
  await store.reports.append(run(1, 5, 5));
  expect(store.reports.latest(secondStream(1))?.observationsMs).toBe((t0 + 9) * 1_000);
  expect(await at(1, 9)).toEqual([9, 'behind']);
  expect(await at(2, 4)).toEqual([4, 'replica']);
  // The control: the replica itself has no such report.
  expect(await replica`SELECT 1 FROM behind.reports WHERE observations > ${(t0 + 4) * 1_000}`).toHaveLength(0);
  await resume();
  await expect.poll(() => at(1, 9), patience).toEqual([9, 'replica']);
});

test('replicas: history never goes back, also for streams without a latest report', async () => {
  const by: unknown[] = [];
  /** A server that tells where it is; what it answers makes no difference. */
  const serverAt = (position: () => number) => ({
    run: (async () => [{ value: position(), mark: null, mark_at: null }]) as Run,
    reads: { at: async () => [undefined] } as unknown as HistoryReads, // nothing else is asked
  });
  let replicaAt = 9;
  const { at } = createReplicaReads({
    primary: serverAt(() => 12),
    replicas: [{ ...serverAt(() => replicaAt), shown: 'replica' }],
    tables: tablesOf('any'),
    feed: { positionOf: () => 10, reached: () => ({ position: 10, mark: undefined }), recognizes: () => true },
    tell: (event) => by.push(event),
  });
  const answerer = async (n: number) => {
    await at([secondStream(n)], t0);
    return by.pop();
  };
  expect(await answerer(1)).toEqual({ kind: 'historyRead', by: 'behind' });
  replicaAt = 11; // all that latest shows, and not all that the primary may have answered with
  expect(await answerer(1)).toEqual({ kind: 'historyRead', by: 'behind' });
  expect(await answerer(2)).toEqual({ kind: 'historyRead', by: 'replica' });
  replicaAt = 12;
  expect(await answerer(1)).toEqual({ kind: 'historyRead', by: 'replica' });
});

test('replicas: what the primary showed without telling where it was stays, whoever is still reading', async () => {
  const by: unknown[] = [];
  let primaryAt: number | undefined;
  let latestAt = 10;
  let held: Promise<void> | undefined;
  const run = (position: () => number | undefined): Run =>
    (async () => {
      if (position() === undefined) throw new StoreError('store_unavailable', 'away');
      return [{ value: position(), mark: null, mark_at: null }];
    }) as Run; // nothing else is asked
  const answering = async () => {
    await held;
    return [undefined];
  };
  const { at } = createReplicaReads({
    primary: { run: run(() => primaryAt), reads: { at: async () => [undefined] } as unknown as HistoryReads }, // as above
    replicas: [{ run: run(() => 10), reads: { at: answering } as unknown as HistoryReads, shown: 'replica' }],
    tables: tablesOf('any'),
    feed: { positionOf: () => latestAt, reached: () => ({ position: 10, mark: undefined }), recognizes: () => true },
    tell: (event) => by.push(event.kind === 'historyRead' && event.by),
  });
  const read = () => at([secondStream(1)], t0);
  await read();
  let release = (): void => {};
  held = new Promise((resolve) => {
    release = resolve;
  });
  const early = read(); // on the replica, which has all that was shown until now
  latestAt = 11;
  await read(); // on the primary, which may show anything
  latestAt = 10;
  release();
  await early;
  await read();
  expect(by).toEqual(['replica', 'behind', 'replica', 'behind']);
  primaryAt = 10;
  await read(); // the primary again, which tells where it is this time
  await read();
  expect(by.slice(4)).toEqual(['behind', 'replica']);
});

test('replicas: one that serves no read for 10 s is reported once with the reason, and once when it serves again', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const told: StoreEvent[] = [];
    const where = { at: 3, isAway: false, isElsewhere: false };
    const reads = { at: async () => [undefined] } as unknown as HistoryReads; // nothing else is asked
    const run = (async () => {
      if (where.isAway) throw new StoreError('store_unavailable', 'No answer.');
      return [{ value: where.at, mark: null, mark_at: null }];
    }) as Run;
    const primaryRun = (async () => [{ value: 10, mark: null, mark_at: null }]) as Run;
    const { at } = createReplicaReads({
      primary: { run: primaryRun, reads },
      replicas: [{ run, reads, shown: 'postgres://db-2/prices' }],
      tables: tablesOf('any'),
      feed: {
        positionOf: () => 10,
        reached: () => ({ position: 10, mark: undefined }),
        recognizes: () => !where.isElsewhere,
      },
      tell: (event) => void (event.kind !== 'historyRead' && told.push(event)),
    });
    const readFor = async (seconds: number): Promise<void> => {
      for (let i = 0; i < seconds; i += 1) {
        await at([secondStream(1)], t0);
        vi.advanceTimersByTime(1_001); // one that does not answer rests for 1 s
      }
    };
    const untilServing = async () => {
      Object.assign(where, { at: 10, isAway: false, isElsewhere: false });
      await readFor(2);
      return told.splice(0).map((event) => ('reason' in event ? event.reason : event.kind));
    };
    await readFor(30);
    expect(await untilServing()).toEqual([expect.stringMatching(/^It is behind the primary\./), 'replicaUsed']);
    where.isAway = true;
    await readFor(30);
    expect(await untilServing()).toEqual(['No answer.', 'replicaUsed']);
    Object.assign(where, { at: 3, isElsewhere: true });
    await readFor(30);
    expect(await untilServing()).toEqual([expect.stringMatching(/^It is not a replica of the store/), 'replicaUsed']);
  } finally {
    vi.useRealTimers();
  }
});

test('replicas: latest is no older than the history that was shown', async () => {
  const { store, at } = await openNode('ahead');
  await store.reports.append(run(1, 0, 2));
  const other = await openStore(primary.url('ahead'), 'write');
  opened.push(other);
  for (let second = 2; second < 40; second += 1) {
    await other.reports.append(run(1, second, 1));
    const [found] = await at(1, second);
    if (found !== undefined)
      expect(store.reports.latest(secondStream(1))?.observationsMs).toBeGreaterThanOrEqual((t0 + second) * 1_000);
  }
});

test('replicas: an unavailable one times out once, is skipped, and is used again when it is back', async () => {
  const { store, at, answered } = await openNode('away');
  await store.reports.append(run(1, 0, 5));
  await expect.poll(() => at(1, 4), patience).toEqual([4, 'replica']);
  await standby.kill();
  expect(await at(1, 4)).toEqual([4, 'away']);
  const startedMs = performance.now();
  answered.length = 0;
  for (let i = 0; i < 20; i += 1) expect((await at(1, 4))[0]).toBe(4);
  expect(answered.filter((by) => by === 'replica')).toEqual([]);
  expect(performance.now() - startedMs).toBeLessThan(20 * 1_000); // not the bound for each of them
  await standby.start();
  await expect.poll(() => at(1, 4), patience).toEqual([4, 'replica']);
});

test('replicas: while the primary is unavailable, a replica that has caught up answers alone', async () => {
  const { store, at } = await openNode('alone');
  await store.reports.append(run(1, 0, 5));
  await expect.poll(() => at(1, 4), patience).toEqual([4, 'replica']);
  await primary.kill();
  expect(await at(1, 4)).toEqual([4, 'replica']);
  expect(store.reports.latest(secondStream(1))?.observationsMs).toBe((t0 + 4) * 1_000);
  await primary.start();
});

test('replicas: an address with another schema, several servers or no database is rejected', async () => {
  const open = (replicas: readonly string[], store = primary.url('plain')) => openStore(store, 'read', { replicas });
  await expect(open([primary.url('other')])).rejects.toThrow('so it has the same schema. Add schema=plain');
  const several = 'postgres://postgres:hush@127.0.0.1:1,127.0.0.1:2/postgres?schema=plain';
  await expect(open([several])).rejects.toThrow('a read store is one server.');
  await expect(open([several])).rejects.not.toThrow('hush');
  await expect(open([primary.url('plain')], 'lmdb:/nowhere')).rejects.toThrow('requires a store in PostgreSQL');
});

test('replicas: one that now follows another primary is not used', async () => {
  const { store, at } = await openNode('parted');
  await store.reports.append(run(1, 0, 5));
  await expect.poll(() => at(1, 4), patience).toEqual([4, 'replica']);
  await replica`SELECT pg_promote(true)`;
  const elsewhere = await openStore(standby.url('parted'), 'write');
  opened.push(elsewhere);
  await elsewhere.reports.append(run(2, 0, 3)); // as far as the primary, on another way
  await store.reports.append(run(1, 5, 3));
  expect(await at(1, 7)).toEqual([7, 'behind']);
  expect(await at(2, 1)).toEqual([undefined, 'behind']);
});
