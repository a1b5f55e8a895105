import { SealpostError, type StreamCoverage } from '@sealpost/client';
import { expect, test } from 'vitest';
import { createMeasurements } from './measuring.ts';

const details = { status: 200, requestId: 'r', rateLimit: undefined, serverTimeMs: undefined };
const entry = (feedID: string): StreamCoverage => ({
  feedID,
  from: 0,
  coveredSeconds: 1,
  gapCount: 0,
  longestGap: null,
  newestMs: 9_999_000,
  hours: [],
});

const open = (answer: (count: number) => Error | undefined = () => undefined) => {
  const asked: (readonly string[])[] = [];
  const ended = new AbortController();
  const client = {
    coverageMany: async (feedIds: readonly string[]) => {
      asked.push(feedIds);
      const error = answer(asked.length);
      if (error !== undefined) throw error;
      return { streams: feedIds.map(entry), details };
    },
  };
  return {
    asked,
    ended,
    measurements: createMeasurements(
      client,
      () => 10_000_000,
      ended.signal,
      async () => {},
    ),
  };
};

test('measuring: a stream is measured once, unless it is asked for again', async () => {
  const { asked, measurements } = open();
  measurements.measure(['a', 'b']);
  await expect.poll(() => measurements.measured.value.size).toBe(2);
  expect(measurements.measured.value.get('a')?.lagMs).toBe(1_000);
  measurements.measure(['a', 'b']);
  measurements.measure(['b', 'c']);
  await expect.poll(() => measurements.measured.value.size).toBe(3);
  await expect
    .poll(() => {
      if (asked.length < 3) measurements.measure(['a'], true);
      return asked;
    })
    .toEqual([['a', 'b'], ['c'], ['a']]);
});

test('measuring: the rate limit is waited for; another failure is told, and goes away with the next success', async () => {
  const limited = new SealpostError('rate_limited', 'Slow down.', { status: 429, requestId: 'r' });
  const gone = new SealpostError('network_error', 'Gone.', { status: undefined, requestId: undefined });
  const { asked, measurements } = open((count) => [limited, undefined, gone][count - 1]);
  measurements.measure(['a']);
  await expect.poll(() => measurements.measured.value.size).toBe(1);
  expect([asked.length, measurements.failure.value]).toEqual([2, undefined]);
  await expect
    .poll(() => {
      if (asked.length === 2) measurements.measure(['b']);
      return measurements.failure.value;
    })
    .toBe(gone);
  await expect
    .poll(() => {
      measurements.measure(['b']);
      return measurements.measured.value.size;
    })
    .toBe(2);
  expect(measurements.failure.value).toBeUndefined();
});

test('measuring: nothing is changed once the page is gone', async () => {
  const { ended, measurements } = open();
  measurements.measure(['a']);
  ended.abort();
  await new Promise((resolve) => setTimeout(resolve));
  expect([measurements.measured.value.size, measurements.failure.value]).toEqual([0, undefined]);
});
