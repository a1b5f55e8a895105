import { expect, test } from 'vitest';
import { StoreError } from '../store/store.ts';
import { submitPatiently } from './ingest.ts';

const full = new StoreError('store_disk_full', 'The disk is full.');

const failing = (failures: readonly unknown[]) => {
  const left = [...failures];
  let calls = 0;
  return {
    calls: () => calls,
    submit: async () => {
      calls += 1;
      if (left.length > 0) throw left.shift();
      return [];
    },
  };
};

test('patient submit: what failed for a reason that passes is submitted again until it is stored', async () => {
  const ingest = failing([full, new StoreError('store_unavailable', 'Away.'), full]);
  expect(await submitPatiently(ingest, ['a'], new AbortController().signal, 1)).toEqual([]);
  expect(ingest.calls()).toBe(4);
});

test('patient submit: any other failure is thrown at once', async () => {
  for (const other of [new StoreError('store_taken_over', 'Taken over.'), new Error('a defect')]) {
    const ingest = failing([other]);
    await expect(submitPatiently(ingest, ['a'], new AbortController().signal, 1)).rejects.toBe(other);
    expect(ingest.calls()).toBe(1);
  }
});

test('patient submit: who stops does not wait for the next attempt', async () => {
  const stopping = new AbortController();
  const ingest = failing([full, full]);
  const submitted = submitPatiently(ingest, ['a'], stopping.signal, 1_000_000);
  setImmediate(() => stopping.abort());
  await expect(submitted).rejects.toBe(full);
  await expect(submitPatiently(ingest, ['a'], stopping.signal, 1_000_000)).rejects.toBe(full);
  expect(ingest.calls()).toBe(2);
});
