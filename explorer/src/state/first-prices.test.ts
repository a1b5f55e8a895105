import { SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { type FirstParts, readFirst } from './first-prices.ts';

const report = (feedID: string): ReportJson => ({
  feedID,
  validFromTimestamp: 1,
  observationsTimestamp: 1,
  fullReport: '0x',
});
const details = { status: 200, requestId: undefined, rateLimit: undefined, serverTimeMs: undefined };

/** Streams called `none…` have no report. */
const createBench = (refuse: () => SealpostError | undefined = () => undefined) => {
  const asked: number[] = [];
  const told: string[] = [];
  const parts: FirstParts = {
    client: {
      latestMany: async (feedIds) => {
        asked.push(feedIds.length);
        const refusal = refuse();
        if (refusal !== undefined) throw refusal;
        const isThere = (feedId: string): boolean => !feedId.startsWith('none');
        const missing = feedIds.filter((feedId) => !isThere(feedId)).map((feedID) => ({ feedID }));
        return { reports: feedIds.filter(isThere).map(report), missing, details };
      },
    },
    onReport: ({ feedID }) => told.push(feedID),
    signal: new AbortController().signal,
  };
  return { asked, told, parts };
};

test('streams are requested together, and those without a report are skipped', async () => {
  const { asked, told, parts } = createBench();
  await readFirst(['one', 'none', 'two'], parts);
  expect([asked, told]).toEqual([[3], ['one', 'two']]);
  await readFirst([], parts);
  expect(asked).toEqual([3]);
});

test('more streams than fit take several requests, delivered after each response', async () => {
  const { asked, told, parts } = createBench(() =>
    asked.length === 3 ? new SealpostError('network_error', 'gone') : undefined,
  );
  const many = Array.from({ length: 230 }, (_, i) => `one${i}`);
  await expect(readFirst(many, parts)).rejects.toThrow('gone');
  expect([asked, told.length]).toEqual([[100, 100, 30], 200]);
});
