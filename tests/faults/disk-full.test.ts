// A disk that fills up, is freed, and fills up again: nothing acknowledged is lost, reads go on, writes resume by themselves.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import type { Store, StoredReport } from '../../server/src/store/store.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { secondStream } from '../support/samples.ts';

const stream = secondStream(1);
/** The store does not look into it, and signing what fills a disk takes seconds. */
const report = (feedId: typeof stream, validFrom: number, observations: number): StoredReport => ({
  feedId,
  validFromMs: validFrom * 1_000,
  observationsMs: observations * 1_000,
  fullReport: randomBytes(2_000),
});
const folder = mkdtempSync(join(tmpdir(), 'sealpost-full-'));
const ballast = join(folder, 'ballast');
let mounted = false;

beforeAll(() => {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', folder], { stdio: 'ignore' });
    mounted = true;
  } catch {
    // Only root may mount; without it there is no small disk to fill.
  }
});
afterAll(() => {
  if (mounted) execFileSync('umount', ['-l', folder]);
  rmSync(folder, { recursive: true, force: true });
});

const fill = (bytes: number) => writeFileSync(ballast, Buffer.alloc(bytes, 1));
const free = () => rmSync(ballast, { force: true });

type Filling = { readonly acknowledged: StoredReport[]; next: number };

/** Appends until the disk is full; returns the error that said so. */
const writeUntilFull = async (store: Store, filling: Filling): Promise<unknown> => {
  for (;;) {
    const batch = Array.from({ length: 50 }, (_, i) => report(stream, filling.next + i, filling.next + i));
    filling.next += 50;
    try {
      await store.reports.append(batch);
      filling.acknowledged.push(...batch);
    } catch (error) {
      filling.next -= 50;
      return error;
    }
  }
};

const lostOf = async (store: Store, reports: readonly StoredReport[]): Promise<number> => {
  let lost = 0;
  for (const one of reports) {
    const [found] = await store.reports.at([stream], one.observationsMs / 1_000);
    if (found === undefined || Buffer.compare(found.fullReport, one.fullReport) !== 0) lost += 1;
  }
  return lost;
};

/** Bytes of other files that leave ever more space for the store, so that each filling stores something. */
const ballasts = [3_000_000, 2_000_000, 1_200_000];
const fillings = countOf(2, 80);

/** Fills the disk and frees it again, as often as there is ballast; returns what was acknowledged, and how much of it was lost. */
const fillInTurns = async (home: string, turns: number): Promise<{ acknowledged: number; lost: number }> => {
  mkdirSync(home);
  const filling: Filling = { acknowledged: [], next: 1_763_200_000 };
  let store = await openStore(home, 'write');
  for (const ballastBytes of ballasts.slice(0, turns)) {
    fill(ballastBytes);
    expect(await writeUntilFull(store, filling)).toMatchObject({
      code: 'store_disk_full',
      message: expect.stringContaining('Free some space'),
    });
    expect(await lostOf(store, filling.acknowledged)).toBe(0);
    expect(store.reports.latest(stream)?.observationsMs).toBe(filling.acknowledged.at(-1)?.observationsMs);
    await expect(store.reports.append([report(stream, filling.next, filling.next)])).rejects.toMatchObject({
      code: 'store_disk_full',
    });
    free();
    const next = report(stream, filling.next, filling.next);
    expect(await store.reports.append([next])).toEqual(['stored']);
    filling.acknowledged.push(next);
    filling.next += 1;
  }
  await store.close();
  store = await openStore(home, 'write');
  const lost = await lostOf(store, filling.acknowledged);
  await store.close();
  rmSync(home, { recursive: true });
  return { acknowledged: filling.acknowledged.length, lost };
};

test('disk full: writes are refused as such, reads go on, and writes resume when there is space', {
  timeout: 3_600_000,
}, async ({ skip }) => {
  if (!mounted) skip('mounting a small tmpfs needs root');
  const rejections: unknown[] = [];
  const note = (error: unknown) => void rejections.push(error);
  process.on('unhandledRejection', note);
  try {
    for (let done = 0; done < fillings; done += ballasts.length) {
      const { acknowledged, lost } = await fillInTurns(join(folder, 'store'), fillings - done);
      tally({ acknowledged, lost });
      expect(lost).toBe(0);
      expect(acknowledged).toBeGreaterThan(200);
    }
  } finally {
    process.off('unhandledRejection', note);
  }
  tally({ 'unhandled rejections': rejections.length });
  expect(rejections).toEqual([]);
});

test('disk full: whoever takes every append for a success loses (control)', async ({ skip }) => {
  if (!mounted) skip('mounting a small tmpfs needs root');
  const control = join(folder, 'control');
  mkdirSync(control);
  fill(4_500_000);
  const careless = await openStore(control, 'write');
  const claimed: StoredReport[] = [];
  for (let second = 1_763_200_000; second < 1_763_212_000; second += 50) {
    const batch = Array.from({ length: 50 }, (_, i) => report(stream, second + i, second + i));
    claimed.push(...batch);
    const outcome = await careless.reports.append(batch).catch(() => 'ignored');
    if (outcome === 'ignored') break;
  }
  const lost = await lostOf(careless, claimed);
  tallyControl({ lost });
  expect(lost).toBeGreaterThan(0);
  await careless.close();
  free();
});
