import { SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { type FirstParts, paceMs, readFirst } from './live-first.ts';

const report = (feedID: string): ReportJson => ({
  feedID,
  validFromTimestamp: 1,
  observationsTimestamp: 1,
  fullReport: '0x',
});
const details = { status: 200, requestId: undefined, rateLimit: undefined, serverTimeMs: undefined };

/** Streams called `fast…` have a report at the moment, `slow…` only a latest one, `none…` none at all. */
const createBench = (refuse: () => SealpostError | undefined = () => undefined) => {
  const asked: string[] = [];
  const pauses: number[] = [];
  const told: string[] = [];
  const parts: FirstParts = {
    client: {
      bulk: async (feedIds, timestamp) => {
        asked.push(`bulk ${feedIds.length} at ${timestamp}`);
        const isFast = (feedId: string): boolean => feedId.startsWith('fast');
        const missing = feedIds
          .filter((feedId) => !isFast(feedId))
          .map((feedID) => ({
            feedID,
            reason: feedID.startsWith('none') ? ('no_reports' as const) : ('not_yet' as const),
          }));
        return { reports: feedIds.filter(isFast).map(report), missing, details };
      },
      latest: async (feedId) => {
        asked.push(`latest ${feedId}`);
        const refusal = refuse();
        if (refusal !== undefined) throw refusal;
        return { report: report(feedId), details };
      },
    },
    nowMs: () => 100_900,
    limit: () => 10,
    sleep: async (ms) => void pauses.push(ms),
    onReport: ({ feedID }) => told.push(feedID),
    signal: new AbortController().signal,
  };
  return { asked, pauses, told, parts };
};

test('many streams are asked for together, then those without a report yet one by one', async () => {
  const { asked, told, parts } = createBench();
  await readFirst(['fast1', 'slow1', 'fast2', 'none1', 'slow2'], parts);
  expect(asked).toEqual(['bulk 5 at 98', 'latest slow1', 'latest slow2']);
  expect(told).toEqual(['fast1', 'fast2', 'slow1', 'slow2']);
});

test('more streams than a request may name are asked for in several', async () => {
  const { asked, parts } = createBench();
  await readFirst(
    Array.from({ length: 230 }, (_, i) => `fast${i}`),
    parts,
  );
  expect(asked).toEqual(['bulk 100 at 98', 'bulk 100 at 98', 'bulk 30 at 98']);
});

test('a stream that turns out to have no report is passed over', async () => {
  const { asked, told, parts } = createBench(() => new SealpostError('report_not_found', 'None.', { status: 404 }));
  await readFirst(['fast1', 'slow1', 'slow2'], parts);
  expect(asked).toEqual(['bulk 3 at 98', 'latest slow1', 'latest slow2']);
  expect(told).toEqual(['fast1']);
});

test('the pace leaves the account half of its limit', async () => {
  const { pauses, parts } = createBench();
  await readFirst(['slow1', 'slow2'], parts);
  expect(pauses).toEqual([200, 200, 200]);
  expect(paceMs(1)).toBe(2_000);
  expect(paceMs(0)).toBe(50);
  expect(paceMs(undefined)).toBe(50);
});

test('a refusal for pace is waited for as long as the server says, other refusals end the run', async () => {
  let times = 0;
  const slow = createBench(() =>
    ++times === 1
      ? new SealpostError('rate_limited', 'Slow down.', { status: 429, details: { retryAfterSeconds: 3 } })
      : undefined,
  );
  await readFirst(['slow1'], slow.parts);
  expect(slow.pauses).toEqual([200, 3_000, 200]);
  expect(slow.told).toEqual(['slow1']);
  const refused = createBench(() => new SealpostError('unauthorized', 'No.', { status: 401 }));
  await expect(readFirst(['slow1', 'slow2'], refused.parts)).rejects.toThrow('No.');
  expect(refused.asked).toEqual(['bulk 2 at 98', 'latest slow1']);
});
