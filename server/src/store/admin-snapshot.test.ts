// The records as a process knows them, over a store whose readings fail or are held.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { act, testStream } from '../../../tests/support/running-ingest.ts';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { type AdminReloadEvent, type AdminView, openAdminView } from './admin-snapshot.ts';
import { openStore } from './open.ts';
import type { AdminStore, Store } from './store.ts';

let folder: string;
let store: Store;
let view: AdminView | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-admin-'));
  store = await openStore(folder, 'write');
});
afterEach(async () => {
  view?.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const patience = { timeout: 20_000 };
const addStream = (n: number) =>
  store.admin.update('stream', [secondStream(n)], () => [testStream(secondStream(n))], act);

/** The store's records, with something done before or after each list is read. */
const readingWith = (read: <T>(list: () => Promise<T>) => Promise<T>): AdminStore => ({
  ...store.admin,
  list: (kind) => read(() => store.admin.list(kind)),
});

test('admin view: a failed reload is retried without another change', async () => {
  let isAway = false;
  const events: AdminReloadEvent[] = [];
  const admin = readingWith(async (list) => {
    if (isAway) throw new Error('away');
    return list();
  });
  view = await openAdminView(admin, (event) => {
    events.push(event);
    isAway = false;
  });
  isAway = true;
  await addStream(1);
  await expect.poll(() => view?.current().streams.size, patience).toBe(1);
  await expect
    .poll(() => events.map(({ kind }) => kind), patience)
    .toEqual(['adminReloadFailed', 'adminReloadRecovered']);
});

test('admin view: reloads that fail are news once, and another time for another cause; that they work again is reported once', async () => {
  let cause: string | undefined;
  const clock = { ms: 0 };
  const events: AdminReloadEvent[] = [];
  const admin = readingWith(async (list) => {
    if (cause !== undefined) throw new Error(cause);
    return list();
  });
  const seen = (message: string) =>
    events.filter((event) => event.kind === 'adminReloadFailed' && event.error.message === message);
  view = await openAdminView(admin, (event) => void events.push(event), { retryMs: 1, nowMs: () => clock.ms });
  cause = 'away';
  await addStream(1);
  await expect.poll(() => seen('away').length, patience).toBeGreaterThan(3);
  clock.ms = 60_000;
  cause = 'damaged';
  await expect.poll(() => seen('damaged').length, patience).toBeGreaterThan(3);
  clock.ms = 61_500;
  cause = undefined;
  await expect.poll(() => events.at(-1)?.kind, patience).toBe('adminReloadRecovered');
  await addStream(2);
  await expect.poll(() => view?.current().streams.size, patience).toBe(2);
  const news = events.filter((event) => event.kind === 'adminReloadRecovered' || event.isNews);
  expect(news).toEqual([
    { kind: 'adminReloadFailed', error: new Error('away'), isNews: true },
    { kind: 'adminReloadFailed', error: new Error('damaged'), isNews: true },
    { kind: 'adminReloadRecovered', seconds: 61.5 },
  ]);
});

test('admin view: a reload that is cut short by closing is no failure', async () => {
  let release = (_: Error): void => {};
  let held: Promise<void> | undefined;
  let isHeld = false;
  const events: AdminReloadEvent[] = [];
  const admin = readingWith(async (list) => {
    isHeld = held !== undefined;
    await held;
    return list();
  });
  view = await openAdminView(admin, (event) => void events.push(event), { retryMs: 1 });
  held = new Promise((_, reject) => {
    release = reject;
  });
  await addStream(1);
  await expect.poll(() => isHeld, patience).toBe(true);
  view.close();
  release(new Error('The store is closed.'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toEqual([]);
});

test('admin view: a change during the first load is seen', async () => {
  let isFirst = true;
  const admin = readingWith(async (list) => {
    const found = await list();
    if (isFirst) {
      isFirst = false;
      await addStream(1);
    }
    return found;
  });
  view = await openAdminView(admin, () => {});
  await expect.poll(() => view?.current().streams.size, patience).toBe(1);
});

test('admin view: one load at a time, so that none from before a change comes after the one from after it', async () => {
  let release = (): void => {};
  let held: Promise<void> | undefined;
  let underWay = 0;
  let mostAtOnce = 0;
  const admin = readingWith(async (list) => {
    underWay += 1;
    mostAtOnce = Math.max(mostAtOnce, underWay);
    const found = await list();
    await held;
    underWay -= 1;
    return found;
  });
  view = await openAdminView(admin, () => {});
  held = new Promise((resolve) => {
    release = resolve;
  });
  await addStream(1);
  await expect.poll(() => underWay, patience).toBe(3); // the three kinds
  const heard = new Promise<void>((resolve) => store.admin.onChanged(resolve));
  await addStream(2);
  await heard;
  release();
  await expect.poll(() => view?.current().streams.size, patience).toBe(2);
  expect(mostAtOnce).toBe(3);
});
