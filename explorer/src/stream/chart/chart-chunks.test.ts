import { SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import { type ChunkKey, createChartPages } from './chart-chunks.ts';

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
  const pages = createChartPages<number>(
    ({ start }, signal) => new Promise((answer, fail) => void asked.push({ start, signal, answer, fail })),
    () => {
      changes += 1;
    },
  );
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
  return { pages, asked, settle, changes: () => changes };
};

test('pages: a chunk is loaded once, and the one that is not over again after a minute', async () => {
  const { pages, asked, settle, changes } = scripted();
  pages.want([chunk(0), chunk(500)], 520);
  pages.want([chunk(0), chunk(500)], 521);
  expect(asked.map(({ start }) => start)).toEqual([0, 500]);
  for (const { answer, start } of asked) answer([start]);
  await settle();
  expect(changes()).toBe(2);
  expect(pages.read(chunk(500))).toEqual({ values: [500], atSecond: 520 });
  pages.want([chunk(0), chunk(500)], 579);
  expect(asked).toHaveLength(2);
  pages.want([chunk(0), chunk(500)], 580);
  expect(asked.slice(2).map(({ start }) => start)).toEqual([500]);
  expect(pages.read(chunk(500))?.values).toEqual([500]);
});

test('pages: a chunk of the future is not loaded', () => {
  const { pages, asked } = scripted();
  pages.want([chunk(1_000)], 999);
  expect(asked).toEqual([]);
});

test('pages: what is no longer wanted is cancelled, and its late answer ignored', async () => {
  const { pages, asked, settle, changes } = scripted();
  pages.want([chunk(0)], 5_000);
  pages.want([chunk(100)], 5_000);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[0]?.answer([1]);
  await settle();
  expect(changes()).toBe(0);
  expect(pages.read(chunk(0))).toBeUndefined();
  pages.want([chunk(0)], 5_000);
  expect(asked).toHaveLength(3);
});

test('pages: a failure is reported, and tried again after five seconds or on demand', async () => {
  const { pages, asked, settle } = scripted();
  pages.want([chunk(0)], 5_000);
  asked[0]?.fail('broken');
  await settle();
  expect(pages.failureOf([chunk(0)])?.error).toBe('broken');
  expect(pages.failureOf([chunk(100)])).toBeUndefined();
  pages.want([chunk(0)], 5_004);
  expect(asked).toHaveLength(1);
  pages.want([chunk(0)], 5_005);
  asked[1]?.fail('broken again');
  await settle();
  pages.retry();
  pages.want([chunk(0)], 5_006);
  asked[2]?.answer([7]);
  await settle();
  expect(pages.failureOf([chunk(0)])).toBeUndefined();
  expect(pages.read(chunk(0))?.values).toEqual([7]);
});

test('pages: an unanswered request is repeated after ever longer waits', async () => {
  const { pages, asked, settle } = scripted();
  const askedAt: number[] = [];
  for (let second = 5_000; second < 5_200; second++) {
    const before = asked.length;
    pages.want([chunk(0)], second);
    if (asked.length === before) continue;
    askedAt.push(second - 5_000);
    asked.at(-1)?.fail(new SealpostError('network_error', 'Offline.'));
    await settle();
  }
  expect(askedAt).toEqual([0, 5, 15, 35, 75, 135, 195]);
});

test.each([400, 401, 403])('pages: a request that fails with %i is not repeated, except on demand', async (status) => {
  const { pages, asked, settle } = scripted();
  pages.want([chunk(0)], 5_000);
  asked[0]?.fail(new SealpostError(`http_${status}`, 'No.', { status }));
  await settle();
  pages.want([chunk(0)], 9_000);
  expect(asked).toHaveLength(1);
  pages.retry();
  pages.want([chunk(0)], 9_000);
  expect(asked).toHaveLength(2);
});

test('pages: after a 429, nothing is loaded until the second that the server asks for', async () => {
  const { pages, asked, settle } = scripted();
  pages.want([chunk(0)], 5_000);
  asked[0]?.fail(new SealpostError('rate_limited', 'Slow.', { status: 429, details: { retryAfterSeconds: 20 } }));
  await settle();
  pages.want([chunk(0), chunk(100)], 5_019);
  expect(asked).toHaveLength(1);
  pages.want([chunk(0), chunk(100)], 5_020);
  expect(asked).toHaveLength(3);
});

test('pages: waits end when the clock is set back, but a final failure stays', async () => {
  const { pages, asked, settle } = scripted();
  const hourAhead = 5_000 + 3_600;
  pages.want([chunk(0), chunk(100), chunk(4_950)], hourAhead);
  asked[0]?.fail(new SealpostError('network_error', 'Away.'));
  asked[1]?.fail(new SealpostError('unauthorized', 'No.', { status: 401 }));
  asked[2]?.fail(new SealpostError('rate_limited', 'Slow.', { status: 429, details: { retryAfterSeconds: 20 } }));
  await settle();
  pages.want([chunk(0), chunk(100), chunk(4_950)], 5_000);
  expect(asked.slice(3).map(({ start }) => start)).toEqual([0, 4_950]);
});

test('pages: a chunk that is not over is loaded again when the clock is set back', async () => {
  const { pages, asked, settle } = scripted();
  pages.want([chunk(4_950)], 5_000 + 3_600); // by this clock it is over
  asked[0]?.answer([1]);
  await settle();
  pages.want([chunk(4_950)], 5_000);
  expect(asked).toHaveLength(2);
  asked[1]?.answer([2]);
  await settle();
  pages.want([chunk(4_950)], 5_001);
  expect(asked).toHaveLength(2);
});

test('pages: a bounded number of chunks is kept, the last wanted ones', async () => {
  const { pages, asked, settle } = scripted();
  for (let i = 0; i < 200; i++) {
    pages.want([chunk(i * 100)], 50_000);
    asked.at(-1)?.answer([i]);
    await settle();
  }
  const kept = Array.from({ length: 200 }, (_, i) => pages.read(chunk(i * 100))).filter((one) => one !== undefined);
  expect(kept.map(({ values }) => values[0])).toEqual(Array.from({ length: 96 }, (_, i) => 104 + i));
});
