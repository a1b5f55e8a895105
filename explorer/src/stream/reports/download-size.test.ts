import { type Client, SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import { downloadMax } from './download.ts';
import { estimateDownload, requireSize } from './download-size.ts';

const from = 1_794_700_800;
const day = { feedId: `0x0003${'0'.repeat(60)}`, name: 'ETH/USD', from, to: from + 86_399, format: 'csv' } as const;
const activity = { intervalMs: 1_000, isEmpty: false, newestSecond: undefined };
const { signal } = new AbortController();

test('download size: the estimate follows the interval', () => {
  expect(estimateDownload(day, activity)).toMatchObject({ reports: 86_400, requests: 87 });
  expect(estimateDownload(day, { ...activity, intervalMs: 60_000 })).toMatchObject({ reports: 1_440, requests: 2 });
  expect(estimateDownload(day, { ...activity, intervalMs: 40 }).reports).toBeGreaterThan(downloadMax);
});

test('download size: nothing is estimated after the newest report, or of a stream without one', () => {
  expect(estimateDownload(day, { ...activity, newestSecond: from + 9 }).reports).toBe(10);
  expect(estimateDownload(day, { ...activity, newestSecond: from - 9 }).reports).toBe(0);
  expect(estimateDownload(day, { ...activity, isEmpty: true }).reports).toBe(0);
});

/** A server whose stream has a report every `step` seconds from `first` on. */
const serverOf = (first: number, step: number) => {
  let requests = 0;
  const counter = {
    page: async () => {
      requests += 1;
      return { reports: [{ observationsTimestamp: first }] };
    },
    coverage: async (_: string, range: { readonly from: number; readonly to: number }) => {
      requests += 1;
      return { coverage: { reports: Math.floor((range.to - Math.max(range.from, first)) / step) + 1 } };
    },
  };
  return { client: counter as unknown as Pick<Client, 'page' | 'coverage'>, requests: () => requests }; // what is read of them
};

const week = { ...day, to: from + 7 * 86_400 - 1 };

test('download size: a range with too many reports is refused before it starts, with the last second that fits', async () => {
  const { client, requests } = serverOf(from, 1);
  await expect(requireSize(client, week, activity, signal)).rejects.toThrow(
    'The range has more than 100,000 reports. End it at 2026-11-16T03:46:39Z or earlier, or use sealpost export.',
  );
  expect(requests()).toBeLessThan(6);
});

test('download size: a range that fits is not refused, however high the estimate', async () => {
  await requireSize(serverOf(week.to - 50_000, 1).client, week, activity, signal);
  await requireSize(serverOf(from, 7).client, week, activity, signal);
});

test('download size: a server that cannot count does not stop a download', async () => {
  const coverage = async () => {
    throw new SealpostError('unsupported', 'No.', {});
  };
  await requireSize({ ...serverOf(from, 1).client, coverage }, week, activity, signal);
});
