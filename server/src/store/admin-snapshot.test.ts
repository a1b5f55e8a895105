// The records as a process knows them, over a store whose readings fail or are held.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { act, testStream } from '../../../tests/support/running-ingest.ts';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { type AdminView, openAdminView } from './admin-snapshot.ts';
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
  const failures: unknown[] = [];
  const admin = readingWith(async (list) => {
    if (isAway) throw new Error('away');
    return list();
  });
  view = await openAdminView(admin, (error) => {
    failures.push(error);
    isAway = false;
  });
  isAway = true;
  await addStream(1);
  await expect.poll(() => view?.current().streams.size, patience).toBe(1);
  expect(failures).toHaveLength(1);
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
