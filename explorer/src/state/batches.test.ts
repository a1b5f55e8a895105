import { SealpostError } from '@sealpost/client';
import { afterEach, expect, test, vi } from 'vitest';
import { type BatchParts, createBatches } from './batches.ts';

const createBench = (
  isRefused: (count: number, feedIds: readonly string[]) => Error | boolean = () => false,
  rules: Partial<BatchParts> = { failedPauseMs: 1 },
) => {
  const asked: (readonly string[])[] = [];
  const ended = new AbortController();
  const load = async (feedIds: readonly string[]): Promise<void> => {
    asked.push(feedIds);
    const refused = isRefused(asked.length, feedIds);
    if (refused !== false) throw refused === true ? new Error('gone') : refused;
  };
  return { asked, ended, batches: createBatches({ load, signal: ended.signal, pauseMs: 1, ...rules }) };
};

afterEach(() => {
  vi.useRealTimers();
});

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

test('batches: a server that allows fewer streams per request gets as many as it allows', async () => {
  const tooMany = new SealpostError('malformed_argument', 'at most 40', { status: 400, details: { feedIdsMax: 40 } });
  const { asked, batches } = createBench((_, { length }) => length > 40 && tooMany);
  batches.load(many(100));
  await expect.poll(() => asked.map(({ length }) => length)).toEqual([100, 40, 40, 20]);
  expect(new Set(asked.slice(1).flat())).toEqual(new Set(many(100)));
});

test('batches: a server that fails gets a request every two seconds, however often streams are asked for', async () => {
  vi.useFakeTimers();
  const { asked, batches } = createBench(() => true, {});
  for (let i = 0; i < 600; i += 1) {
    batches.load([`feed${i}`]);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(asked.length).toBeLessThanOrEqual(31);
  expect(asked.length).toBeGreaterThan(20);
});

test('batches: in the background, a slow server rests for three times as long as it takes', async () => {
  vi.useFakeTimers();
  const startedMs: number[] = [];
  const load = async (): Promise<void> => {
    startedMs.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, 5_000));
  };
  const batches = createBatches({ load, signal: new AbortController().signal, pauseMs: 500, pauseFactor: 3 });
  batches.load(many(300));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(startedMs.map((ms) => ms - (startedMs[0] ?? 0))).toEqual([0, 20_000, 40_000]);
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
