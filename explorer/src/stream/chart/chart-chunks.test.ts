import { SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import { type ChunkKey, createChartChunks } from './chart-chunks.ts';

const chunk = (start: number): ChunkKey => ({ resolution: 60, start, seconds: 100, from: start, isAssumed: false });

/** Requests are answered by hand. */
const scripted = () => {
  const asked: {
    readonly start: number;
    readonly signal: AbortSignal;
    readonly answer: (values: number[]) => void;
    readonly fail: (error: unknown) => void;
  }[] = [];
  let changes = 0;
  const chunks = createChartChunks<number>(
    ({ start }, signal) => new Promise((answer, fail) => void asked.push({ start, signal, answer, fail })),
    () => {
      changes += 1;
    },
  );
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
  return { chunks, asked, settle, changes: () => changes };
};

test('chunks: a chunk is loaded once, and the one that is not over again after a minute', async () => {
  const { chunks, asked, settle, changes } = scripted();
  chunks.want([chunk(0), chunk(500)], 520);
  chunks.want([chunk(0), chunk(500)], 521);
  expect(asked.map(({ start }) => start)).toEqual([0, 500]);
  for (const { answer, start } of asked) answer([start]);
  await settle();
  expect(changes()).toBe(2);
  expect(chunks.read(chunk(500))).toEqual({ values: [500], atSecond: 520 });
  chunks.want([chunk(0), chunk(500)], 579);
  expect(asked).toHaveLength(2);
  chunks.want([chunk(0), chunk(500)], 580);
  expect(asked.slice(2).map(({ start }) => start)).toEqual([500]);
  expect(chunks.read(chunk(500))?.values).toEqual([500]);
});

test('chunks: a chunk of the future is not loaded', () => {
  const { chunks, asked } = scripted();
  chunks.want([chunk(1_000)], 999);
  expect(asked).toEqual([]);
});

test('chunks: what is no longer wanted is cancelled, and its late answer ignored', async () => {
  const { chunks, asked, settle, changes } = scripted();
  chunks.want([chunk(0)], 5_000);
  chunks.want([chunk(100)], 5_000);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[0]?.answer([1]);
  await settle();
  expect(changes()).toBe(0);
  expect(chunks.read(chunk(0))).toBeUndefined();
  chunks.want([chunk(0)], 5_000);
  expect(asked).toHaveLength(3);
});

test('chunks: a failure is reported, and tried again after five seconds or on demand', async () => {
  const { chunks, asked, settle } = scripted();
  chunks.want([chunk(0)], 5_000);
  asked[0]?.fail('broken');
  await settle();
  expect(chunks.failureOf([chunk(0)])?.error).toBe('broken');
  expect(chunks.failureOf([chunk(100)])).toBeUndefined();
  chunks.want([chunk(0)], 5_004);
  expect(asked).toHaveLength(1);
  chunks.want([chunk(0)], 5_005);
  asked[1]?.fail('broken again');
  await settle();
  chunks.retry();
  chunks.want([chunk(0)], 5_006);
  asked[2]?.answer([7]);
  await settle();
  expect(chunks.failureOf([chunk(0)])).toBeUndefined();
  expect(chunks.read(chunk(0))?.values).toEqual([7]);
});

test('chunks: an unanswered request is repeated after ever longer waits', async () => {
  const { chunks, asked, settle } = scripted();
  const askedAt: number[] = [];
  for (let second = 5_000; second < 5_200; second++) {
    const before = asked.length;
    chunks.want([chunk(0)], second);
    if (asked.length === before) continue;
    askedAt.push(second - 5_000);
    asked.at(-1)?.fail(new SealpostError('network_error', 'Offline.'));
    await settle();
  }
  expect(askedAt).toEqual([0, 5, 15, 35, 75, 135, 195]);
});

test.each([400, 401, 403])('chunks: a request that fails with %i is not repeated, except on demand', async (status) => {
  const { chunks, asked, settle } = scripted();
  chunks.want([chunk(0)], 5_000);
  asked[0]?.fail(new SealpostError(`http_${status}`, 'No.', { status }));
  await settle();
  chunks.want([chunk(0)], 9_000);
  expect(asked).toHaveLength(1);
  chunks.retry();
  chunks.want([chunk(0)], 9_000);
  expect(asked).toHaveLength(2);
});

test('chunks: after a 429, nothing is loaded until the second that the server asks for', async () => {
  const { chunks, asked, settle } = scripted();
  chunks.want([chunk(0)], 5_000);
  asked[0]?.fail(new SealpostError('rate_limited', 'Slow.', { status: 429, details: { retryAfterSeconds: 20 } }));
  await settle();
  chunks.want([chunk(0), chunk(100)], 5_019);
  expect(asked).toHaveLength(1);
  chunks.want([chunk(0), chunk(100)], 5_020);
  expect(asked).toHaveLength(3);
});

test('chunks: waits end when the clock is set back, but a final failure stays', async () => {
  const { chunks, asked, settle } = scripted();
  const hourAhead = 5_000 + 3_600;
  chunks.want([chunk(0), chunk(100), chunk(4_950)], hourAhead);
  asked[0]?.fail(new SealpostError('network_error', 'Away.'));
  asked[1]?.fail(new SealpostError('unauthorized', 'No.', { status: 401 }));
  asked[2]?.fail(new SealpostError('rate_limited', 'Slow.', { status: 429, details: { retryAfterSeconds: 20 } }));
  await settle();
  chunks.want([chunk(0), chunk(100), chunk(4_950)], 5_000);
  expect(asked.slice(3).map(({ start }) => start)).toEqual([0, 4_950]);
});

test('chunks: a chunk that is not over is loaded again when the clock is set back', async () => {
  const { chunks, asked, settle } = scripted();
  chunks.want([chunk(4_950)], 5_000 + 3_600); // by this clock it is over
  asked[0]?.answer([1]);
  await settle();
  chunks.want([chunk(4_950)], 5_000);
  expect(asked).toHaveLength(2);
  asked[1]?.answer([2]);
  await settle();
  chunks.want([chunk(4_950)], 5_001);
  expect(asked).toHaveLength(2);
});

test('chunks: a bounded number of chunks is kept, the last wanted ones', async () => {
  const { chunks, asked, settle } = scripted();
  for (let i = 0; i < 200; i++) {
    chunks.want([chunk(i * 100)], 50_000);
    asked.at(-1)?.answer([i]);
    await settle();
  }
  const kept = Array.from({ length: 200 }, (_, i) => chunks.read(chunk(i * 100))).filter((one) => one !== undefined);
  expect(kept.map(({ values }) => values[0])).toEqual(Array.from({ length: 96 }, (_, i) => 104 + i));
});
