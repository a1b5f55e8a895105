import { expect, test } from 'vitest';
import { createStoreMemory, openStore } from '../open.ts';
import { testStoreContract } from '../store.contract.ts';
import { run, stream, t0 } from '../store-samples.fixture.ts';

testStoreContract('memory', async () => {
  const memory = createStoreMemory();
  return {
    writers: 'one',
    isFleeting: true,
    open: (mode) => openStore('memory:', mode, { memory }),
    remove: async () => {},
  };
});

test('memory store: two stores in one process share nothing', async () => {
  const [first, second] = [createStoreMemory().open('write'), createStoreMemory().open('write')];
  await first.reports.append(run(stream, t0, 3));
  expect(await first.reports.position()).toBe(3);
  expect(await second.reports.position()).toBe(0);
});

test('memory store: a report that retention removed is not kept for those who follow', async () => {
  const { reports } = createStoreMemory().open('write');
  await reports.append(run(stream, t0, 100));
  while ((await reports.trim({ beforeMs: (t0 + 90) * 1_000, bytesMax: Number.POSITIVE_INFINITY })).more);
  const { reports: followed, positions, position, missed } = await reports.appendedAfter(0, 1_000);
  expect([followed.length, positions[0], position, missed]).toEqual([10, 91, 100, false]);
});

test('memory store: what a caller does to its bytes later changes nothing', async () => {
  const { reports } = createStoreMemory().open('write');
  const [one] = run(stream, t0, 1);
  const fullReport = Uint8Array.from(one?.fullReport ?? []);
  await reports.append([{ feedId: stream, validFromMs: t0 * 1_000, observationsMs: t0 * 1_000, fullReport }]);
  fullReport.fill(0);
  expect(
    Buffer.compare(
      (await reports.at([stream], t0))[0]?.fullReport ?? Buffer.alloc(0),
      one?.fullReport ?? Buffer.alloc(0),
    ),
  ).toBe(0);
});

test('memory store: a listener of a closed store is not called', async () => {
  const memory = createStoreMemory();
  const writer = memory.open('write');
  const reader = memory.open('read');
  let wakes = 0;
  reader.reports.onAppended(() => (wakes += 1));
  await reader.close();
  await writer.reports.append(run(stream, t0, 1));
  expect(wakes).toBe(0);
});

test('a store in memory is refused to a program that does not bring the memory, with what to use', async () => {
  for (const [url, mode] of [
    ['memory:', 'read'],
    ['memory:', 'write'],
    ['memory:x', 'write'],
  ] as const)
    await expect(openStore(url, mode)).rejects.toMatchObject({
      code: 'store_url_invalid',
      message: expect.stringContaining('lmdb:FOLDER'),
    });
});
