// The contract of following, retention, quarantine and administration, as tests.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from './open.ts';
import type { Account, Act, Store, StoredReport } from './store.ts';
import {
  bytes,
  type Contract,
  type EngineUnderTest,
  fine,
  other,
  report,
  run,
  seconds,
  stream,
  t0,
  trimAll,
} from './store-samples.fixture.ts';

export const testFollowing = (
  contract: Contract,
  store: () => Store,
  engine: () => EngineUnderTest,
  reopen: () => Promise<void>,
): void => {
  contract('what was appended can be followed from any position, in the order of appending', async () => {
    const a = run(stream, t0, 150);
    const b = run(other, t0, 5);
    await store().reports.append(a.slice(0, 10));
    await store().reports.append([...b, ...a.slice(20)]);
    await store().reports.append(a.slice(10, 20));
    const order = [...a.slice(0, 10), ...b, ...a.slice(20), ...a.slice(10, 20)];
    await reopen();
    for (const limit of [1_000, 7]) {
      const followed: StoredReport[] = [];
      for (let position = 0, read = -1; read !== 0; ) {
        const next = await store().reports.appendedAfter(position, limit);
        followed.push(...next.reports);
        read = next.reports.length;
        expect(next.positions).toEqual(next.reports.map((_, i) => position + 1 + i));
        position = next.position;
        expect(next.missed).toBe(false);
      }
      expect(bytes(followed)).toEqual(bytes(order));
      expect(followed.map(({ feedId }) => feedId)).toEqual(order.map(({ feedId }) => feedId));
    }
    expect(await store().reports.position()).toBe(order.length);
    expect(await store().reports.appendedAfter(order.length, 10)).toEqual({
      reports: [],
      positions: [],
      position: order.length,
      missed: false,
    });
  });

  contract('what was appended of some streams can be followed alone, in slices', async () => {
    const [a, b] = [run(stream, t0, 200), run(other, t0, 200)];
    for (let i = 0; i < 200; i += 40) await store().reports.append([...a.slice(i, i + 40), ...b.slice(i, i + 40)]);
    await store().reports.append([report(fine, t0 * 1_000, t0 * 1_000)]);
    await reopen();
    for (const limit of [1_000, 7]) {
      const followed: StoredReport[] = [];
      let position = 0;
      for (let slices = 0; position < 401 && slices < 401; slices++) {
        const next = await store().reports.appendedAfter(position, limit, new Set([other]));
        expect(next.position).toBeGreaterThan(position);
        expect(next.reports.length).toBeLessThanOrEqual(limit);
        for (const [i, one] of next.reports.entries()) {
          const index = b.findIndex(({ observationsMs }) => observationsMs === one.observationsMs);
          expect(next.positions[i]).toBe(Math.floor(index / 40) * 80 + 40 + (index % 40) + 1);
        }
        followed.push(...next.reports);
        position = next.position;
      }
      expect(position).toBe(401);
      expect(bytes(followed)).toEqual(bytes(b));
    }
    const nothing = new Set([secondStream(99)]);
    expect(await store().reports.appendedAfter(0, 1_000, nothing)).toMatchObject({ reports: [], position: 401 });
  });

  contract('a listener wakes when something is appended, and no more after it stopped', async () => {
    let wakes = 0;
    const woken = new Promise<void>((resolve) => {
      const stop = store().reports.onAppended(() => {
        wakes += 1;
        stop();
        resolve();
      });
    });
    await store().reports.append(run(stream, t0, 1));
    await woken;
    await store().reports.append(run(stream, t0 + 1, 1));
    expect(wakes).toBe(1);
  });

  contract('a second reader sees what is appended, latest too, and wakes', async () => {
    await store().reports.append(run(stream, t0, 1));
    const reader = await engine().open('read');
    try {
      const wake = vi.fn();
      const woken = new Promise<void>((resolve) => void reader.reports.onAppended(() => resolve(wake())));
      await store().reports.append(run(stream, t0 + 1, 1));
      reader.reports.checkAppended();
      // On one machine a reader sees it at once, elsewhere when it is told.
      if (engine().writers === 'many') await woken;
      expect(wake).toHaveBeenCalled();
      expect(reader.reports.latest(stream)?.observationsMs).toBe((t0 + 1) * 1_000);
      await woken;
      expect((await reader.reports.appendedAfter(1, 10)).reports).toHaveLength(1);
      await expect(reader.reports.append(run(stream, t0 + 2, 1))).rejects.toMatchObject({ code: 'store_read_only' });
    } finally {
      await reader.close();
    }
  });

  contract('a second writer is rejected with what to do, or writes as well', async () => {
    if (engine().writers === 'many') return expectTwoWriters(store(), await engine().open('write'));
    await expect(engine().open('write')).rejects.toMatchObject({
      code: 'store_locked',
      message: expect.stringContaining('sealpost ingest --to URL'),
    });
  });

  contract('after closing nothing is written', async () => {
    await store().close();
    await expect(store().reports.append(run(stream, t0, 1))).rejects.toMatchObject({ code: 'store_closed' });
  });
};

// Two stores append the same reports: each is stored once, and the second append returns duplicates.
const expectTwoWriters = async (first: Store, second: Store): Promise<void> => {
  try {
    const batch = run(stream, t0, 100);
    const [a, b] = await Promise.all([first.reports.append(batch), second.reports.append(batch)]);
    expect([...a, ...b].filter((outcome) => outcome === 'stored')).toHaveLength(100);
    expect([...a, ...b].filter((outcome) => outcome === 'duplicate')).toHaveLength(100);
    expect(await second.reports.append([report(stream, t0, t0, 7n)])).toEqual(['conflict']);
    expect(await first.reports.position()).toBe(100);
    expect(second.reports.latest(stream)?.observationsMs).toBe((t0 + 99) * 1_000);
  } finally {
    await second.close();
  }
};

export const testRetention = (contract: Contract, store: () => Store, reopen: () => Promise<void>): void => {
  contract('trimming by age keeps everything that is young enough', async () => {
    const all = [...run(stream, t0, 300), ...run(other, t0 + 250, 50)];
    await store().reports.append(all);
    const removed = await trimAll(store(), (t0 + 200) * 1_000);
    expect(removed).toBeGreaterThan(100);
    expect(removed).toBeLessThanOrEqual(200);
    expect(seconds((await store().reports.page(stream, t0 + 200, 1_000)).reports)).toEqual(
      Array.from({ length: 100 }, (_, i) => t0 + 200 + i),
    );
    expect((await store().reports.page(other, 0, 1_000)).reports).toHaveLength(50);
    const { reports, reportBytes } = await store().reports.stats();
    expect([reports, reportBytes]).toEqual([350 - removed, (350 - removed) * 736]);
  });

  contract('a stream whose every report was trimmed has no latest, and takes new reports', async () => {
    await store().reports.append(run(stream, t0, 70));
    expect(await trimAll(store(), (t0 + 1_000) * 1_000)).toBe(70);
    expect(store().reports.latest(stream)).toBeUndefined();
    expect((await store().reports.appendedAfter(0, 100)).reports).toEqual([]);
    expect(await store().reports.append(run(stream, t0 + 2_000, 1))).toEqual(['stored']);
    expect(store().reports.latest(stream)?.observationsMs).toBe((t0 + 2_000) * 1_000);
  });

  contract('trimming by bytes removes the oldest of all streams until the rest fits', async () => {
    await store().reports.append([...run(stream, t0, 2_000), ...run(other, t0 + 1_000, 2_000)]);
    const { usedBytes } = await store().reports.stats();
    await trimAll(store(), 0, Math.floor(usedBytes / 2));
    expect((await store().reports.stats()).usedBytes).toBeLessThan(0.65 * usedBytes); // with what does not count
    const oldest = async (feedId: typeof stream) =>
      seconds((await store().reports.page(feedId, 0, 1)).reports)[0] ?? Number.POSITIVE_INFINITY;
    expect(Math.abs((await oldest(stream)) - (await oldest(other)))).toBeLessThan(200);
    expect(store().reports.latest(other)?.observationsMs).toBe((t0 + 2_999) * 1_000);
  });

  contract('trimming by bytes leaves every stream its newest report', async () => {
    await store().reports.append(run(other, t0, 200));
    await store().reports.append(run(stream, t0 + 400, 2_000));
    await trimAll(store(), 0, 1);
    await reopen();
    expect(store().reports.latest(other)?.observationsMs).toBe((t0 + 199) * 1_000);
    expect(bytes(await store().reports.at([other], t0 + 199))).toEqual(bytes([report(other, t0 + 199, t0 + 199)]));
    expect(store().reports.latest(stream)?.observationsMs).toBe((t0 + 2_399) * 1_000);
    const { reports, reportBytes } = await store().reports.stats();
    expect(reports).toBeLessThan(500);
    expect(reportBytes).toBe(reports * 736);
    expect(await trimAll(store(), (t0 + 200) * 1_000)).toBeGreaterThan(0); // by age it goes
    expect(store().reports.latest(other)).toBeUndefined();
  });

  contract('rejected lines are bounded in bytes too, and never cause reports to be removed', async () => {
    await store().reports.append(run(stream, t0, 300));
    const rejected = { atMs: 1, code: 'c', message: 'm', feedId: null, observationsMs: null, line: 'x'.repeat(8_192) };
    for (let i = 0; i < 11; i += 1)
      await store().quarantine.add(Array.from({ length: 200 }, (_, n) => ({ ...rejected, atMs: 200 * i + n })));
    const kept = await store().quarantine.count();
    expect(kept).toBeGreaterThan(1_000);
    expect(kept * 8_192).toBeLessThanOrEqual(16 * 2 ** 20);
    expect((await store().quarantine.list(1))[0]?.atMs).toBe(2_199);
    expect(await trimAll(store(), 0, 4_000_000)).toBe(0);
    expect((await store().reports.stats()).reports).toBe(300);
  });

  contract('a scan visits every report once, in key order', async () => {
    const all = [...run(stream, t0, 300), ...run(other, t0, 10)];
    await store().reports.append(all);
    const visited: string[] = [];
    let cursor: string | undefined;
    do {
      const { entries, next } = await store().reports.scan(cursor, 50);
      for (const { report: found, error } of entries) {
        expect(error).toBeUndefined();
        if (found) visited.push(`${found.feedId} ${found.observationsMs}`);
      }
      cursor = next;
    } while (cursor !== undefined);
    expect(visited.sort()).toEqual(all.map(({ feedId, observationsMs }) => `${feedId} ${observationsMs}`).sort());
  });

  contract(
    'a backup taken while reports come in opens as a store with everything that was promised before it',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sealpost-backup-'));
      try {
        const before = run(stream, t0, 300);
        await store().reports.append(before);
        const target = join(folder, 'copy');
        await Promise.all([store().backup(target), store().reports.append(run(stream, t0 + 300, 100))]);
        await expect(store().backup(target)).rejects.toMatchObject({ code: 'store_write_failed' });
        const copy = await openStore(target, 'read');
        expect(bytes((await copy.reports.page(stream, t0, 300)).reports)).toEqual(bytes(before));
        await copy.close();
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  contract('the quarantine keeps the newest rejected lines, newest first', async () => {
    const rejected = (n: number) => ({
      atMs: n,
      code: 'c',
      message: `m${n}`,
      feedId: null,
      observationsMs: null,
      line: 'x',
    });
    await store().quarantine.add([rejected(1), rejected(2)]);
    await store().quarantine.add([rejected(3)]);
    expect(await store().quarantine.list(2)).toEqual([rejected(3), rejected(2)]);
    expect(await store().quarantine.count()).toBe(3);
    await store().quarantine.add(Array.from({ length: 10_050 }, (_, i) => rejected(10 + i)));
    expect(await store().quarantine.count()).toBeLessThanOrEqual(10_000);
    expect((await store().quarantine.list(1))[0]).toEqual(rejected(10_059));
  });
};

const act = (action: string): Act => ({ atMs: 1_763_200_000_000, actor: 'test', action, detail: { why: 'contract' } });
const account = (userId: string, name: string): Account => ({
  userId,
  name,
  createdAt: '2026-01-01T00:00:00.000000Z',
  disabledAt: null,
  secrets: [],
  entitlements: [],
  rateLimits: {},
});

export const testAdministration = (
  contract: Contract,
  store: () => Store,
  engine: () => EngineUnderTest,
  reopen: () => Promise<void>,
): void => {
  contract('records are listed by key, changed with their audit entry, and survive closing', async () => {
    const { admin } = store();
    await admin.update(
      'account',
      ['b', 'a'],
      ([b, a]) => [b ?? account('b', 'B'), a ?? account('a', 'A')],
      act('create'),
    );
    await admin.update('account', ['a'], ([a]) => [{ ...(a as Account), name: 'A2' }], act('rename'));
    await reopen();
    expect((await store().admin.list('account')).map(({ name }) => name)).toEqual(['A2', 'B']);
    expect(await store().admin.get('account', 'b')).toEqual(account('b', 'B'));
    expect(await store().admin.get('account', 'c')).toBeUndefined();
    expect(await store().admin.list('stream')).toEqual([]);
  });

  contract('a change that throws changes nothing and logs nothing', async () => {
    const refuse = () => {
      throw new Error('no');
    };
    await expect(store().admin.update('account', ['a'], refuse, act('create'))).rejects.toThrow('no');
    expect(await store().admin.list('account')).toEqual([]);
    expect(await store().admin.auditAfter(0, 10)).toEqual([]);
  });

  contract(
    'a check gets all records of the kind under the lock of the change: of many at once, one takes a name',
    async () => {
      await store().reports.append([]);
      const other = await engine().open('read');
      const take = (on: Store, id: string) =>
        on.admin.update(
          'account',
          [id],
          () => [account(id, 'desk')],
          act(`create ${id}`),
          (all) => {
            if (all.some(({ name }) => name === 'desk')) throw new Error(`taken by ${all[0]?.userId}`);
          },
        );
      try {
        await store().admin.update('account', ['z'], () => [account('z', 'Z')], act('create z'));
        const taken = await Promise.allSettled(
          ['a', 'b', 'c', 'd', 'e', 'f'].map((id, i) => take(i % 2 === 0 ? store() : other, id)),
        );
        const [owner] = (await store().admin.list('account')).filter(({ name }) => name === 'desk');
        expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
        const reasons = taken.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []));
        expect(new Set(reasons)).toEqual(new Set([`taken by ${owner?.userId}`]));
        expect((await store().admin.list('account')).map(({ name }) => name)).toEqual(['desk', 'Z']);
        expect(await store().admin.auditAfter(0, 10)).toHaveLength(2);
      } finally {
        await other.close();
      }
    },
  );

  contract('records are put in the place of what is stored, with one entry of the log', async () => {
    await store().admin.update('account', ['a'], () => [account('a', 'A')], act('create'));
    const records = ['a', 'b'].map((key) => ({ kind: 'account' as const, key, record: account(key, 'new') }));
    await store().admin.put(records, act('put'));
    expect((await store().admin.list('account')).map(({ userId, name }) => [userId, name])).toEqual([
      ['a', 'new'],
      ['b', 'new'],
    ]);
    expect((await store().admin.auditAfter(0, 10)).map(({ action }) => action)).toEqual(['create', 'put']);
  });

  contract('the audit log is a chain in order, read from any entry', async () => {
    for (const action of ['one', 'two', 'three']) await store().admin.log(act(action));
    const entries = await store().admin.auditAfter(0, 10);
    expect(entries.map(({ sequence, action }) => [sequence, action])).toEqual([
      [1, 'one'],
      [2, 'two'],
      [3, 'three'],
    ]);
    expect(entries[0]?.previousHash).toBe('');
    expect(entries[2]?.previousHash).toBe(entries[1]?.hash);
    expect(await store().admin.auditAfter(2, 10)).toEqual(entries.slice(2));
    expect(await store().admin.auditNewest(2)).toEqual(entries.slice(1));
  });

  contract('another reader wakes on a change and sees it', async () => {
    await store().reports.append([]);
    const reader = await engine().open('read');
    try {
      const woken = new Promise<void>((resolve) => void reader.admin.onChanged(resolve));
      await store().admin.update('account', ['a'], () => [account('a', 'A')], act('create'));
      await woken;
      expect(await reader.admin.get('account', 'a')).toEqual(account('a', 'A'));
    } finally {
      await reader.close();
    }
  });
};
