import { expect, test } from 'vitest';
import { createBatches } from './batches.ts';

const createBench = (isRefused: (count: number) => boolean = () => false) => {
  const asked: (readonly string[])[] = [];
  const ended = new AbortController();
  const load = async (feedIds: readonly string[]): Promise<void> => {
    asked.push(feedIds);
    if (isRefused(asked.length)) throw new Error('gone');
  };
  return { asked, ended, batches: createBatches({ load, signal: ended.signal, pauseMs: 1 }) };
};

const many = (count: number) => Array.from({ length: count }, (_, i) => `feed${i}`);

test('batches: streams are requested together; nothing to load is no request', async () => {
  const { asked, batches } = createBench();
  batches.load([]);
  batches.load(['one', 'two', 'three']);
  await expect.poll(() => asked).toEqual([['one', 'two', 'three']]);
});

test('batches: more streams than fit take several requests; those asked for last come first, and none twice', async () => {
  const { asked, batches } = createBench();
  batches.load(many(230));
  batches.load(['urgent', 'feed0', 'feed150']);
  await expect.poll(() => asked.map(({ length }) => length)).toEqual([100, 100, 31]);
  expect(asked[1]?.slice(0, 2)).toEqual(['urgent', 'feed150']);
});

test('batches: a failed request gives up what waits; the next call loads again', async () => {
  const { asked, batches } = createBench((count) => count === 2);
  batches.load(many(230));
  await expect.poll(() => asked.length).toBe(2);
  await expect
    .poll(() => {
      batches.load(['later']);
      return asked.some((feedIds) => feedIds.includes('later'));
    })
    .toBe(true);
  expect(asked.slice(2).every(({ length }) => length === 1)).toBe(true);
});

test('batches: nothing is requested after the end', async () => {
  const { asked, ended, batches } = createBench();
  batches.load(many(230));
  ended.abort();
  await expect.poll(() => asked.length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 0));
  batches.load(['later']);
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(asked.length).toBe(1);
});
