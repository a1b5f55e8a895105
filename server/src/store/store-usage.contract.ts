// The contract of usage and of exchange between nodes, as tests.
import { expect } from 'vitest';
import type { Act, Store, UsageRow } from './store.ts';
import { type Contract, type EngineUnderTest, other, run, stream, t0, trimAll } from './store-samples.fixture.ts';

const row = (userId: string, day: string, route: string, requests: number): UsageRow => ({
  userId,
  day,
  route,
  requests,
});
const nowMs = Date.parse('2026-03-01T12:00:00Z');
const act: Act = { atMs: 1_763_200_000_000, actor: 'test', action: 'between', detail: {} };

export const testUsage = (
  contract: Contract,
  store: () => Store,
  engine: () => EngineUnderTest,
  reopen: () => Promise<void>,
): void => {
  contract('usage adds up, is listed by day and route from a day on, and survives closing', async () => {
    await store().usage.add([], [], nowMs);
    expect(await store().usage.list('a', '2026-01-01')).toEqual([]);
    await store().usage.add(
      [
        row('a', '2026-01-02', 'reportPage', 1),
        row('a', '2026-01-02', 'feeds', 2),
        row('a', '2026-01-02', 'feeds', 3),
        row('ab', '2026-01-02', 'feeds', 90),
        row('a', '2025-12-31', 'feeds', 7),
      ],
      [],
      nowMs,
    );
    await store().usage.add([row('a', '2026-01-02', 'feeds', 10), row('a', '2026-01-04', 'time', 4)], [], nowMs);
    await reopen();
    const inYear = [
      row('a', '2026-01-02', 'feeds', 15),
      row('a', '2026-01-02', 'reportPage', 1),
      row('a', '2026-01-04', 'time', 4),
    ];
    expect(await store().usage.list('a', '2026-01-01')).toEqual(inYear);
    expect(await store().usage.list('a', '2025-01-01')).toEqual([row('a', '2025-12-31', 'feeds', 7), ...inYear]);
    expect(await store().usage.list('a', '2026-01-03')).toEqual(inYear.slice(2));
    expect(await store().usage.list('nobody', '2025-01-01')).toEqual([]);
  });

  contract('usage of 400 days is kept, and older days go as a newer one comes', async () => {
    const [oldest, kept, newest] = ['2024-12-31', '2025-01-01', '2026-02-04']; // 399 days lie between the last two
    await store().usage.add(
      [row('a', oldest, 'feeds', 1), row('b', oldest, 'feeds', 1), row('a', kept, 'feeds', 2)],
      [],
      Date.parse(kept),
    );
    expect(await store().usage.list('b', oldest)).toHaveLength(1);
    await store().usage.add([row('c', newest, 'feeds', 3)], [], nowMs);
    expect(await store().usage.list('a', oldest)).toEqual([row('a', kept, 'feeds', 2)]);
    expect(await store().usage.list('b', oldest)).toEqual([]);
  });

  contract('the usage of the first day stays', async () => {
    await store().usage.add([row('a', '2026-03-01', 'feeds', 1)], [], nowMs);
    await store().usage.add([row('a', '2026-03-01', 'feeds', 2)], [], nowMs);
    expect(await store().usage.list('a', '2026-01-01')).toEqual([row('a', '2026-03-01', 'feeds', 3)]);
  });

  contract('a day of usage that is ahead of the clock, and a clock that leaps ahead, remove nothing', async () => {
    const [earlier, today, leap] = ['2025-11-01', '2026-03-01', '2038-01-19'];
    await store().usage.add([row('a', earlier, 'feeds', 1), row('a', today, 'feeds', 2)], [], nowMs);
    await store().usage.add([row('b', leap, 'feeds', 3)], [], nowMs); // dated ahead
    await store().usage.add([row('b', leap, 'feeds', 4)], [], Date.parse(leap)); // the clock leaps, and counts
    await store().usage.add([row('b', leap, 'feeds', 5)], [], Date.parse(leap) + 3_600_000);
    await store().usage.add([row('a', today, 'feeds', 6)], [], nowMs); // and is right again
    expect(await store().usage.list('a', '2020-01-01')).toEqual([
      row('a', earlier, 'feeds', 1),
      row('a', today, 'feeds', 8),
    ]);
    expect(await store().usage.list('b', '2020-01-01')).toEqual([row('b', leap, 'feeds', 12)]);
  });

  contract('a last use of a secret that is ahead of the clock is replaced by the next one', async () => {
    const use = (usedAtMs: number) => ({ userId: 'a', secretId: 's1', usedAtMs });
    await store().usage.add([], [use(nowMs + 86_400_000)], nowMs + 86_400_000);
    await store().usage.add([], [use(nowMs)], nowMs);
    expect(await store().usage.lastUses('a')).toEqual([use(nowMs)]);
  });

  contract('of the uses of a secret the latest is kept, by account and secret, and survives closing', async () => {
    const use = (userId: string, secretId: string, usedAtMs: number) => ({ userId, secretId, usedAtMs });
    expect(await store().usage.lastUses('a')).toEqual([]);
    await store().usage.add([], [use('a', 's2', 120_000), use('a', 's1', 60_000), use('a', 's2', 180_000)], nowMs);
    await store().usage.add(
      [row('a', '2026-01-02', 'feeds', 1)],
      [use('ab', 's3', 240_000), use('a', 's2', 60_000)],
      nowMs,
    );
    await reopen();
    expect(await store().usage.lastUses('a')).toEqual([use('a', 's1', 60_000), use('a', 's2', 180_000)]);
    expect(await store().usage.lastUses('ab')).toEqual([use('ab', 's3', 240_000)]);
    expect(await store().usage.list('a', '2026-01-01')).toEqual([row('a', '2026-01-02', 'feeds', 1)]);
  });

  contract('several processes count and administer at once, and no count is lost', async () => {
    const reader = await engine().open('read');
    try {
      const rounds = Array.from({ length: 40 }, (_, i) => [
        (i % 2 === 0 ? store() : reader).usage.add([row('a', '2026-01-01', 'feeds', 1)], [], nowMs),
        (i % 2 === 0 ? reader : store()).admin.log(act),
      ]);
      await Promise.all(rounds.flat());
      expect(await reader.usage.list('a', '2026-01-01')).toEqual([row('a', '2026-01-01', 'feeds', 40)]);
      expect(await store().usage.list('a', '2026-01-01')).toEqual([row('a', '2026-01-01', 'feeds', 40)]);
      expect(await store().admin.auditAfter(0, 100)).toHaveLength(40);
    } finally {
      await reader.close();
    }
  });
};

export const testNodes = (contract: Contract, store: () => Store, engine: () => EngineUnderTest): void => {
  contract('a node’s keys are visible to every process on the store until it withdraws them', async () => {
    const other = await engine().open('read');
    try {
      expect(await other.keyHolders.list()).toEqual([]);
      await store().keyHolders.announce({ node: 'here', keyIds: ['a'] });
      await store().keyHolders.announce({ node: 'here', keyIds: ['a', 'b'] });
      expect(await other.nodes?.exchange(undefined)).toEqual(engine().writers === 'one' ? undefined : []);
      expect(await other.keyHolders.list()).toEqual([{ node: 'here', keyIds: ['a', 'b'] }]);
      await store().keyHolders.withdraw('here');
      expect(await other.keyHolders.list()).toEqual([]);
    } finally {
      await other.close();
    }
  });
  contract(
    'a node’s retention is visible to every process, and the retention that applies is changed by any of them',
    async () => {
      const other = await engine().open('read');
      try {
        const limits = { days: 30, bytes: null };
        await store().keyHolders.announce({ node: 'here', keyIds: ['a'], retention: limits });
        expect(await other.keyHolders.list()).toEqual([{ node: 'here', keyIds: ['a'], retention: limits }]);
        expect(await other.retention.get()).toBeUndefined();
        const waiting = { days: 3, bytes: 1e6, fromMs: 5 };
        expect(await store().retention.update(() => ({ ...limits, waiting }))).toEqual({ ...limits, waiting });
        expect(await other.retention.get()).toEqual({ ...limits, waiting });
        const failed = other.retention.update(() => {
          throw new Error('not now');
        });
        await expect(failed).rejects.toThrow('not now');
        await Promise.all(
          [store(), other].flatMap((one) =>
            Array.from({ length: 5 }, () =>
              one.retention.update((current) => ({ bytes: null, days: (current?.days ?? 0) + 1 })),
            ),
          ),
        );
        expect(await store().retention.get()).toEqual({ days: 40, bytes: null });
      } finally {
        await other.close();
      }
    },
  );
  contract('nothing is removed while a report has been due for longer than is allowed', async () => {
    await store().reports.append([...run(other, t0 + 600, 5), ...run(stream, t0, 700)]);
    const [bytesMax, overdueMaxMs] = [Number.POSITIVE_INFINITY, 300_000];
    const trim = (seconds: number) =>
      store().reports.trim({ beforeMs: (t0 + seconds) * 1_000, bytesMax, overdueMaxMs });
    if (engine().isFleeting) return expect((await trim(10_000)).removed).toBeGreaterThan(0);
    expect(await trim(10_000)).toEqual({ removed: 0, more: false, isWithheld: true });
    expect((await store().reports.stats()).reports).toBe(705);
    // The oldest run or partition ends at most 300 s after the first report.
    const { removed, endMs } = await trim(310);
    expect([removed > 0, (endMs ?? 0) > t0 * 1_000, (endMs ?? 0) <= (t0 + 310) * 1_000]).toEqual([true, true, true]);
    expect(await trimAll(store(), (t0 + 10_000) * 1_000)).toBeGreaterThan(0);
    expect((await store().reports.stats()).reports).toBe(0);
  });
  contract('several nodes on a store are listed each, whichever announced last, until each withdraws', async () => {
    const other = await engine().open('read');
    const listed = async () => (await other.keyHolders.list()).map(({ node, keyIds }) => [node, ...keyIds]);
    try {
      await store().keyHolders.announce({ node: 'host, process 1, ID a', keyIds: ['old'] });
      await other.keyHolders.announce({ node: 'host, process 1, ID b', keyIds: ['old', 'new'] });
      const both = [
        ['host, process 1, ID a', 'old'],
        ['host, process 1, ID b', 'old', 'new'],
      ];
      expect(await listed()).toEqual(both);
      await store().keyHolders.announce({ node: 'host, process 1, ID a', keyIds: ['old'] });
      expect(await listed()).toEqual(both);
      await store().keyHolders.withdraw('host, process 1, ID a');
      expect(await listed()).toEqual(both.slice(1));
      await other.keyHolders.withdraw('host, process 1, ID b');
      expect(await listed()).toEqual([]);
    } finally {
      await other.close();
    }
  });
  contract(
    'nodes hear what others tell, each thing once and in order; a store of one node has nobody to tell',
    async () => {
      const other = await engine().open('read');
      try {
        const [here, there] = [store().nodes, other.nodes];
        expect(here === undefined).toBe(engine().writers === 'one');
        if (here === undefined || there === undefined) return;
        const heard: number[] = [];
        // More than enough: what is not heard within a second is not heard.
        for (let i = 1; i <= 100 && heard.length < 5; i += 1) {
          await here.exchange(Uint8Array.of(i, 255 - i));
          for (const [first = 0, second = 0] of await there.exchange(undefined)) {
            expect(second).toBe(255 - first);
            heard.push(first);
          }
        }
        expect(heard).toHaveLength(5);
        expect(heard).toEqual([...new Set(heard)].sort((a, b) => a - b));
        expect(await here.exchange(undefined)).toEqual([]);
        expect(await there.exchange(undefined)).toEqual([]);
      } finally {
        await other.close();
      }
    },
  );
};
