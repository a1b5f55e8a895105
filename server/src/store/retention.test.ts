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
      reject,
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
const [long, short] = [
  { days: 30, bytes: null },
  { days: 3, bytes: 5e6 },
];

test('retention: the largest of each limit applies, and unlimited is the largest', () => {
  expect(nextRetention(undefined, [short, { days: 9, bytes: 4e6 }], t)).toEqual({ days: 9, bytes: 5e6 });
  expect(nextRetention(short, [short, long], t)).toEqual(long);
});

test('retention: a lower limit waits for a day of reports, and a higher one applies meanwhile', () => {
  const waiting = { ...short, fromMs: t + dayMs };
  expect(nextRetention(long, [short], t)).toEqual({ ...long, waiting });
  expect(nextRetention({ ...long, waiting }, [short], t + dayMs - 1)).toEqual({ ...long, waiting });
  expect(nextRetention({ ...long, waiting }, [short], t + dayMs)).toEqual(short);
  expect(nextRetention({ ...long, waiting }, [short, long], t + dayMs)).toEqual(long);
  expect(nextRetention({ ...long, waiting }, [{ days: 40, bytes: 5e6 }], t + 5)).toEqual({
    days: 40,
    bytes: null,
    waiting: { days: 40, bytes: 5e6, fromMs: t + 5 + dayMs },
  });
});

test('retention: other lower limits wait for a day of their own, and none waits longer because time was set back', () => {
  const applied: AppliedRetention = { ...long, waiting: { ...short, fromMs: t } };
  expect(nextRetention(applied, [{ days: 2, bytes: 5e6 }], t).waiting?.fromMs).toBe(t + dayMs);
  expect(nextRetention(applied, [short], t - 9 * dayMs).waiting?.fromMs).toBe(t - 8 * dayMs);
});

test('retention: an empty store has nothing to lose', () => {
  expect(nextRetention(long, [short], undefined)).toEqual(short);
});

test('retention: what was confirmed applies, and not what waits by then', () => {
  const applied: AppliedRetention = { ...long, waiting: { ...short, fromMs: t } };
  expect(confirmRetention(applied, short)).toEqual(short);
  expect(confirmRetention(applied, { days: 4, bytes: null })).toBe(applied);
  expect(confirmRetention(long, short)).toBe(long);
});
