import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dayMs } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from './open.ts';
import { startRetention } from './retention.ts';
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
    stop = startRetention(
      { ...store.reports, trim },
      () => streams,
      rules,
      () => nowMs,
      reject,
    );
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
