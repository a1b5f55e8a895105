import { SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createFirstPrices, type FirstParts } from './first-prices.ts';

const report = (feedID: string): ReportJson => ({
  feedID,
  validFromTimestamp: 1,
  observationsTimestamp: 1,
  fullReport: '0x',
});
const details = { status: 200, requestId: undefined, rateLimit: undefined, serverTimeMs: undefined };

/** Streams called `none…` have no report. */
const createBench = (refuse: () => SealpostError | undefined = () => undefined) => {
  const asked: (readonly string[])[] = [];
  const told: string[] = [];
  const empty: string[] = [];
  const ended = new AbortController();
  const parts: FirstParts = {
    client: {
      latestMany: async (feedIds) => {
        asked.push(feedIds);
        const refusal = refuse();
        if (refusal !== undefined) throw refusal;
        const isThere = (feedId: string): boolean => !feedId.startsWith('none');
        const missing = feedIds.filter((feedId) => !isThere(feedId)).map((feedID) => ({ feedID }));
        return { reports: feedIds.filter(isThere).map(report), missing, details };
      },
    },
    onReport: ({ feedID }) => told.push(feedID),
    onEmpty: (feedIds) => empty.push(...feedIds),
    signal: ended.signal,
    pauseMs: 1,
  };
  return { asked, told, empty, ended, first: createFirstPrices(parts) };
};

const many = (count: number, prefix = 'one') => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

test('streams are requested together, and those without a report are named', async () => {
  const { asked, told, empty, first } = createBench();
  first.load([]);
  first.load(['one', 'none', 'two']);
  await expect.poll(() => empty).toEqual(['none']);
  expect([asked, told]).toEqual([[['one', 'none', 'two']], ['one', 'two']]);
});

test('more streams than fit take several requests; those asked for last come first, and none twice', async () => {
  const { asked, told, first } = createBench();
  first.load(many(230));
  first.load(['urgent', 'one0', 'one150']);
  await expect.poll(() => told.length).toBe(231);
  expect(asked.map(({ length }) => length)).toEqual([100, 100, 31]);
  expect(asked[1]?.slice(0, 2)).toEqual(['urgent', 'one150']);
});

test('a failed request gives up what waits; the next call loads again', async () => {
  const { asked, told, first } = createBench(() =>
    asked.length === 2 ? new SealpostError('network_error', 'gone') : undefined,
  );
  first.load(many(230));
  await expect.poll(() => asked.length).toBe(2);
  await expect
    .poll(() => {
      first.load(['later']);
      return told.includes('later');
    })
    .toBe(true);
  expect(told.slice(0, 100)).toEqual(many(100));
  expect(told.slice(100).every((feedId) => feedId === 'later')).toBe(true);
});

test('nothing is requested after the session has ended', async () => {
  const { asked, told, ended, first } = createBench();
  first.load(many(230));
  ended.abort();
  await expect.poll(() => asked.length).toBe(1);
  first.load(['later']);
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect([asked.length, told]).toEqual([1, []]);
});
