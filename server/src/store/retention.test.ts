import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dayMs } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import type { AppliedRetention } from './nodes.ts';
import { openStore } from './open.ts';
import { confirmRetention, nextRetention, startRetention } from './retention.ts';
import type { Retention, Store } from './store.ts';

const { report } = await createSignedReports();
const [busy, quiet] = [secondStream(1), secondStream(2)];
const t0 = 1_763_200_000;
const rules = { retentionDays: 1, retentionBytes: Number.POSITIVE_INFINITY, everyMs: 60_000 };

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-retention-'));
  store = await openStore(folder, 'write');
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What the first slice of a round is told to remove. */
const firstSlice = async (nowMs: number): Promise<Retention> => {
  let stop = async (): Promise<void> => {};
  const told = await new Promise<Retention>((resolve, reject) => {
    const trim: Store['reports']['trim'] = (retention) => {
      resolve(retention);
      return store.reports.trim(retention);
    };
    const streams = [busy, quiet].map((feedId) => testStream(feedId));
    ({ stop } = startRetention(
      { ...store, reports: { ...store.reports, trim } },
      () => streams,
      rules,
      () => nowMs,
      { failed: reject, waits: () => {}, deleted: () => {} },
    ));
  });
  await stop();
  return told;
};

test('retention: age is counted from the clock, as long as observations are not behind it', async () => {
  await store.reports.append([report(quiet, t0 - 500, t0 - 500), report(busy, t0, t0)]);
  expect((await firstSlice(t0 * 1_000)).beforeMs).toBe(t0 * 1_000 - dayMs);
  expect((await firstSlice((t0 - 3_600) * 1_000)).beforeMs).toBe((t0 - 3_600) * 1_000 - dayMs);
});

test('retention: a clock that is ahead of everything observed removes no more than the newest observation allows', async () => {
  await store.reports.append([report(busy, t0 - 80_000, t0 - 80_000), report(quiet, t0, t0)]);
  for (const aheadMs of [3_600_000, 365 * dayMs])
    expect((await firstSlice(t0 * 1_000 + aheadMs)).beforeMs).toBe(t0 * 1_000 - dayMs);
  expect(await store.reports.at([busy], t0 - 80_000)).toMatchObject([{ feedId: busy }]);
});

test('retention: an empty store has nothing to remove', async () => {
  expect((await firstSlice(t0 * 1_000)).beforeMs).toBe(0);
});

const t = t0 * 1_000;
/** The clock, and the newest report, which is as new. */
const at = (ms: number) => ({ clockMs: ms, reportsMs: ms });
const [long, short] = [
  { days: 30, bytes: null },
  { days: 3, bytes: 5e6 },
];

test('retention: the largest of each limit applies, and unlimited is the largest', () => {
  expect(nextRetention(undefined, [short, { days: 9, bytes: 4e6 }], at(t))).toEqual({ days: 9, bytes: 5e6 });
  expect(nextRetention(short, [short, long], at(t))).toEqual(long);
});

test('retention: a lower limit waits for a day of reports, and a higher one applies meanwhile', () => {
  const waiting = { ...short, fromMs: t + dayMs };
  expect(nextRetention(long, [short], at(t))).toEqual({ ...long, waiting });
  expect(nextRetention({ ...long, waiting }, [short], at(t + dayMs - 1))).toEqual({ ...long, waiting });
  expect(nextRetention({ ...long, waiting }, [short], at(t + dayMs))).toEqual(short);
  expect(nextRetention({ ...long, waiting }, [short, long], at(t + dayMs))).toEqual(long);
  expect(nextRetention({ ...long, waiting }, [{ days: 40, bytes: 5e6 }], at(t + 5))).toEqual({
    days: 40,
    bytes: null,
    waiting: { days: 40, bytes: 5e6, fromMs: t + 5 + dayMs },
  });
});

test('retention: other lower limits wait for a day of their own, and none waits longer because time was set back', () => {
  const applied: AppliedRetention = { ...long, waiting: { ...short, fromMs: t } };
  expect(nextRetention(applied, [{ days: 2, bytes: 5e6 }], at(t)).waiting?.fromMs).toBe(t + dayMs);
  expect(nextRetention(applied, [short], at(t - 9 * dayMs)).waiting?.fromMs).toBe(t - 8 * dayMs);
});

test('retention: an empty store has nothing to lose', () => {
  expect(nextRetention(long, [short], { clockMs: t, reportsMs: undefined })).toEqual(short);
});

test('retention: a lower limit waits for a day though reports come that are days newer than those before', () => {
  const waiting = { ...short, fromMs: t + dayMs };
  expect(nextRetention(long, [short], { clockMs: t, reportsMs: t - 5 * dayMs })).toEqual({ ...long, waiting });
  expect(nextRetention({ ...long, waiting }, [short], { clockMs: t + 9 * dayMs, reportsMs: t })).toMatchObject({
    waiting,
  });
});

test('retention: the first limits of a store apply, but bytes that it exceeds by a ninth wait for an hour', () => {
  expect(nextRetention(undefined, [short], at(t), 5.5e6)).toEqual(short);
  const waiting = { ...short, fromMs: t + 3_600_000 };
  const first = nextRetention(undefined, [short], at(t), 5.6e6);
  expect(first).toEqual({ ...short, bytes: null, waiting });
  expect(nextRetention(first, [short], at(t + 3_599_999))).toEqual(first);
  expect(nextRetention(first, [short], at(t + 3_600_000))).toEqual(short);
});

test('retention: what was confirmed applies, and not what waits by then', () => {
  const applied: AppliedRetention = { ...long, waiting: { ...short, fromMs: t } };
  expect(confirmRetention(applied, short)).toEqual({ ...short, deletionFromMs: 0 });
  expect(confirmRetention(applied, { days: 4, bytes: null })).toBe(applied);
  expect(confirmRetention(long, short)).toBe(long);
  expect(confirmRetention(long, long)).toBe(long);
  const large = { ...long, deletionFromMs: t };
  expect(confirmRetention(large, long)).toEqual({ ...long, deletionFromMs: 0 });
  expect(confirmRetention({ ...large, waiting: { ...short, fromMs: t } }, long)).toMatchObject(large);
});

const hourMs = 3_600_000;

/** Retention of a running node, whose rounds follow each other, by a clock that the test moves. */
const startNode = (retentionDays: number, startMs: number, retentionBytes = Number.POSITIVE_INFINITY) => {
  let nowMs = startMs;
  let rounds = 0;
  const failures: unknown[] = [];
  const warnings: string[] = [];
  const deletions: (readonly [number, number])[] = [];
  const list: Store['keyHolders']['list'] = async () => {
    rounds += 1;
    return [];
  };
  const retention = startRetention(
    { ...store, keyHolders: { ...store.keyHolders, list } },
    () => [testStream(busy)],
    { retentionDays, retentionBytes, everyMs: 1 },
    () => nowMs,
    {
      failed: (error) => void failures.push(error),
      waits: (text) => void warnings.push(text),
      deleted: (...deletion) => void deletions.push(deletion),
    },
  );
  return {
    warnings,
    deletions,
    waiting: retention.waiting,
    /** Resolves when whole rounds have run at that time. */
    to: async (ms: number) => {
      nowMs = ms;
      const from = rounds;
      await expect.poll(() => rounds).toBeGreaterThan(from + 2);
      expect(failures).toEqual([]);
    },
    stop: retention.stop,
  };
};

/** A report a day, the newest at t. What is appended together becomes one run, which goes as a whole. */
const appendDays = async (days: number): Promise<void> => {
  const seconds = Array.from({ length: days }, (_, i) => t0 - (days - 1 - i) * 86_400);
  for (const one of seconds) await store.reports.append([report(busy, one, one)]);
};
const stored = async (): Promise<number> => (await store.reports.stats()).reports;

test('retention: a node that starts with 3 days on a store of 29 deletes nothing for an hour, and says so', async () => {
  await appendDays(29);
  let node = startNode(3, t);
  await node.to(t);
  const texts = [
    `retention: 3 days apply, and more than a tenth of the stored time is older. These reports are deleted from ${new Date(t + hourMs).toISOString()} on. To keep them, start a node with a longer retention, or correct the clock; to delete them now, run: sealpost store retain --now`,
  ];
  expect([node.waiting(), node.warnings, await stored()]).toEqual([texts, texts, 29]);
  await node.stop();
  await store.reports.append([report(busy, t0 + 3_599, t0 + 3_599)]);
  node = startNode(3, t + hourMs);
  await node.to(t + hourMs);
  expect([node.waiting(), await stored()]).toEqual([texts, 30]);
  await store.reports.append([report(busy, t0 + 3_600, t0 + 3_600)]);
  await node.to(t + hourMs);
  expect([node.waiting(), await stored()]).toEqual([[], 5]);
  // In four slices; the oldest that is left is just as old as the retention.
  expect(node.deletions).toEqual([[26, t - 3 * dayMs + 1]]);
  expect(await store.retention.get()).toEqual({ days: 3, bytes: null });
  await node.stop();
});

test('retention: once it is confirmed, a large deletion begins at once, and the next one waits again', async () => {
  await appendDays(30);
  const node = startNode(3, t);
  await node.to(t);
  await store.retention.update((current) => confirmRetention(current, { days: 3, bytes: null }));
  await node.to(t);
  expect([node.waiting(), await stored()]).toEqual([[], 4]);
  const later = t0 + (9 * dayMs) / 1_000;
  await store.reports.append([report(busy, later, later)]);
  await node.to(t + 9 * dayMs);
  expect([node.waiting().length, await stored()]).toEqual([1, 5]);
  await node.stop();
});

test('retention: clock and reports that are a year ahead delete nothing, if they are corrected within the hour', async () => {
  await appendDays(30);
  const node = startNode(30, t);
  await node.to(t);
  const ahead = t0 + (365 * dayMs) / 1_000;
  await store.reports.append([report(busy, ahead, ahead)]);
  await node.to(t + 365 * dayMs);
  expect([node.waiting().length, await stored()]).toEqual([1, 31]);
  await node.to(t + 60_000);
  expect([node.waiting(), await stored()]).toEqual([[], 31]);
  expect(await store.retention.get()).toEqual({ days: 30, bytes: null });
  await node.stop();
});

test('retention: what is due after hours off is deleted at once, after days off when an hour has passed', async () => {
  await appendDays(30);
  const node = startNode(30, t);
  await node.to(t);
  const storedAt = async (ms: number): Promise<number> => {
    await store.reports.append([report(busy, ms / 1_000, ms / 1_000)]);
    await node.to(ms);
    return stored();
  };
  expect(await storedAt(t + 3 * dayMs)).toBe(29);
  expect(await storedAt(t + 8 * dayMs)).toBe(30);
  expect(await storedAt(t + 8 * dayMs + hourMs)).toBe(25);
  expect(node.waiting()).toEqual([]);
  await node.stop();
});

test('retention: fewer bytes than a store has that no node has run on delete nothing for an hour', async () => {
  for (let i = 0; i < 20; i += 1)
    await store.reports.append(
      Array.from({ length: 100 }, (_, n) => report(busy, t0 - 2_000 + 100 * i + n, t0 - 2_000 + 100 * i + n)),
    );
  const { usedBytes } = await store.reports.stats();
  const node = startNode(30, t, usedBytes / 2);
  await node.to(t);
  expect([node.waiting().length, await stored()]).toEqual([1, 2_000]);
  await store.reports.append([report(busy, t0 + 3_600, t0 + 3_600)]);
  await node.to(t + hourMs);
  expect(node.waiting()).toEqual([]);
  expect(await stored()).toBeLessThan(1_500);
  await node.stop();
});
