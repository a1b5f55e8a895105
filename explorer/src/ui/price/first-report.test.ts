import { SealpostError } from '@sealpost/client';
import { parseFeedId, type ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { reportOf } from '../../state/report.fixture.ts';
import { readFirstMs, readFirstMsOfMany } from './first-report.ts';

const feedOf = (index: number) => parseFeedId(`0x0002${index.toString(16).padStart(60, '0')}`);
const hour = 1_790_002_800;
const { signal } = new AbortController();

const details = {} as never; // not read

/** Answers as the API does, from reports in ascending order; `asked` has the streams of each request. */
const serverOf = (reports: readonly ReportJson[]) => {
  const asked: (readonly string[])[] = [];
  return {
    asked,
    page: async (feedId: string, start: number) => {
      asked.push([feedId]);
      const found = reports.filter((one) => one.feedID === feedId && one.observationsTimestamp >= start).slice(0, 1);
      if (feedId === feedOf(99)) throw new SealpostError('network_error', 'Gone.');
      return { reports: found, more: false, nextStartTimestamp: 0, details };
    },
    bulk: async (feedIds: readonly string[], second: number) => {
      asked.push(feedIds);
      const isValid = (one: ReportJson) => one.validFromTimestamp <= second && second <= one.observationsTimestamp;
      return { reports: reports.filter((one) => feedIds.includes(one.feedID) && isValid(one)), missing: [], details };
    },
  };
};

test('first report: a candle that begins hours before it has its own time, not the start of the candle', async () => {
  const server = serverOf([
    reportOf(feedOf(1), hour + 7_325, hour + 7_326),
    reportOf(feedOf(1), hour + 7_327, hour + 7_328),
  ]);
  const start = { feedId: feedOf(1), second: hour, open: 7n };
  expect(await readFirstMs(server, start, signal)).toBe((hour + 7_326) * 1_000);
});

test('first report: one with another price than the candle’s opening is not its first', async () => {
  const server = serverOf([reportOf(feedOf(1), hour, hour + 1, 8n)]);
  expect(await readFirstMs(server, { feedId: feedOf(1), second: hour, open: 7n }, signal)).toBeUndefined();
});

test('first report: streams that have one at the start of the candle share a request, others have their own', async () => {
  const feedIds = Array.from({ length: 150 }, (_, i) => feedOf(i + 100));
  const late = feedOf(1);
  const server = serverOf([
    ...feedIds.map((feedId) => reportOf(feedId, hour - 1, hour + 2)),
    reportOf(late, hour + 9, hour + 9),
  ]);
  const starts = [late, ...feedIds].map((feedId) => ({ feedId, second: hour, open: 7n }));
  const found = await readFirstMsOfMany(server, starts, signal);
  expect([found.size, found.get(feedOf(200)), found.get(late)]).toEqual([151, (hour + 2) * 1_000, (hour + 9) * 1_000]);
  expect(server.asked.map(({ length }) => length)).toEqual([100, 51, 1]);
});

test('first report: one whose fields are not known has no price to compare, and does not stop the others', async () => {
  const [strange, plain] = [reportOf(feedOf(1), hour, hour + 1), reportOf(feedOf(2), hour, hour + 1)];
  const fullReport = strange.fullReport.replace(feedOf(1).slice(2), `0fff${feedOf(1).slice(6)}`);
  const server = serverOf([{ ...strange, fullReport }, plain]);
  const starts = [1, 2].map((index) => ({ feedId: feedOf(index), second: hour, open: 7n }));
  expect([...(await readFirstMsOfMany(server, starts, signal))]).toEqual([[feedOf(2), (hour + 1) * 1_000]]);
});

test('first report: what was read before a failure is kept', async () => {
  const server = serverOf([reportOf(feedOf(1), hour + 3, hour + 4)]);
  const starts = [1, 99, 2].map((index) => ({ feedId: feedOf(index), second: hour, open: 7n }));
  expect([...(await readFirstMsOfMany(server, starts, signal))]).toEqual([[feedOf(1), (hour + 4) * 1_000]]);
});
