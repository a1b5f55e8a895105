import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../../tests/support/signed-reports.ts';
import { openStore } from '../../open.ts';
import type { Store } from '../../store.ts';
import type { StoreEvent } from '../../store-event.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;
const at = (second: number) => [report(stream, t0 + second, t0 + second)];
const threads: Worker[] = [];
const noteThread = (thread: Worker) => void threads.push(thread);
let folder: string;
let store: Store;
let events: StoreEvent[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-writer-'));
  process.on('worker', noteThread);
  threads.length = 0;
  events = [];
  store = await openStore(folder, 'write', { tell: (event) => void events.push(event) });
});
afterEach(async () => {
  process.off('worker', noteThread);
  await store.close();
  rmSync(folder, { recursive: true });
});

const kinds = () => events.map(({ kind }) => kind).filter((kind) => /thread|writing/.test(kind));

/** Does the thread do nothing for a moment? */
const isIdle = async ({ performance }: Worker): Promise<boolean> => {
  const before = performance.eventLoopUtilization();
  await new Promise((resolve) => setTimeout(resolve, 50));
  return performance.eventLoopUtilization(before).active < 1; // ms: both clocks are read at a distance
};

/** Waits until the thread has nothing to do: one that is ended inside LMDB may take the process with it, or never end. */
const untilIdle = async (): Promise<Worker> => {
  const thread = threads[0] as Worker; // of the store that each test opens
  await expect.poll(() => isIdle(thread)).toBe(true);
  return thread;
};

test('writer: a thread that dies is replaced and reported once; nothing acknowledged is lost', async () => {
  expect(await store.reports.append(at(1))).toEqual(['stored']);
  const thread = await untilIdle();
  const ended = thread.terminate();
  const asked = store.reports.append(at(2));
  asked.catch(() => {}); // until it is looked at
  await ended;
  await expect(asked).rejects.toMatchObject({ code: 'store_outcome_unknown' });
  expect(store.stops()).toMatchObject([{ part: 'reports' }]);
  await expect.poll(() => store.stops()).toEqual([]);
  expect(kinds()).toEqual(['writingStopped', 'threadEnded', 'writingResumed']);
  expect(['stored', 'duplicate']).toContain((await store.reports.append(at(2)))[0]);
  expect(await store.reports.append(at(3))).toEqual(['stored']);
  expect((await store.reports.page(stream, t0, 10)).reports).toHaveLength(3);
});

test('writer: closing completes though its thread has died', async () => {
  const thread = await untilIdle();
  await thread.terminate();
  await store.close();
  await expect(store.reports.append(at(1))).rejects.toMatchObject({ code: 'store_closed' });
});

test('writer: a store that is open for reading adds usage in its own thread, which ends with it', async () => {
  const reader = await openStore(folder, 'read');
  expect(threads).toHaveLength(1);
  await reader.usage.add([{ userId: 'a', day: '2025-01-31', route: 'feeds', requests: 2 }], [], Date.now());
  expect(threads).toHaveLength(2);
  expect(await store.usage.list('a', '2025-01-01')).toEqual([
    { userId: 'a', day: '2025-01-31', route: 'feeds', requests: 2 },
  ]);
  await reader.close();
  await expect(
    reader.usage.add([{ userId: 'a', day: '2025-01-31', route: 'feeds', requests: 2 }], [], 0),
  ).rejects.toMatchObject({
    code: 'store_closed',
  });
});
