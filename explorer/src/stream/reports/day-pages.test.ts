import { SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { dayProblems, edgeOf, isSameRead, readDayChoice, writeDayChoice } from './day-address.ts';
import { readDayPage } from './day-pages.ts';

const day = Date.UTC(2026, 10, 15) / 1_000;
const { signal } = new AbortController();

/** A server whose stream has reports at these seconds, and that keeps reports from a second on, which moves on with each request. */
const serverOf = (seconds: readonly number[], retainedFrom = 0) => {
  const requireRetained = (second: number): void => {
    const oldestTimestamp = retainedFrom === 0 ? 0 : retainedFrom + requests - 1;
    if (second < oldestTimestamp)
      throw new SealpostError('timestamp_out_of_bounds', 'Gone.', { status: 400, details: { oldestTimestamp } });
  };
  const all = seconds.map((second) => ({ observationsTimestamp: second }) as ReportJson); // the field that decides
  let requests = 0;
  return {
    requests: () => requests,
    page: async (_: string, start: number, limit = 10) => {
      requests += 1;
      requireRetained(start);
      const found = all.filter(({ observationsTimestamp }) => observationsTimestamp >= start);
      const reports = found.slice(0, limit);
      const nextStartTimestamp = (reports.at(-1)?.observationsTimestamp ?? start) + 1;
      return { reports, more: found.length > limit, nextStartTimestamp, details: {} as never }; // not read
    },
    at: async (_: string, second: number): Promise<never> => {
      requests += 1;
      requireRetained(second);
      const previous = all.findLast(({ observationsTimestamp }) => observationsTimestamp <= second) ?? null;
      throw new SealpostError('report_not_found', 'None.', { status: 404, details: { previous } });
    },
  };
};

const readOf = async (
  seconds: readonly number[],
  side: 'before' | 'after',
  second: number,
  intervalMs: number | undefined = 1_000,
) => {
  const server = serverOf(seconds);
  const page = await readDayPage(
    server,
    { feedId: '0x', day, edge: { side, second }, intervalMs, nowSeconds: day + 90_000 },
    signal,
  );
  const shown = page.reports.map(({ observationsTimestamp }) => observationsTimestamp - day);
  return {
    first: shown[0],
    last: shown.at(-1),
    count: shown.length,
    older: page.hasOlder,
    newer: page.hasNewer,
    requests: server.requests(),
  };
};

const each = (count: number, step = 1) => Array.from({ length: count }, (_, i) => day + i * step);

test('day pages: forward from a second, and back from one, a page each', async () => {
  const seconds = each(86_400);
  expect(await readOf(seconds, 'after', day)).toEqual({
    first: 0,
    last: 49,
    count: 50,
    older: false,
    newer: true,
    requests: 1,
  });
  expect(await readOf(seconds, 'before', day + 86_399)).toEqual({
    first: 86_350,
    last: 86_399,
    count: 50,
    older: true,
    newer: false,
    requests: 1,
  });
  expect(await readOf(seconds, 'before', day + 86_349)).toMatchObject({ first: 86_300, last: 86_349, newer: true });
});

test('day pages: a day ends where it ends', async () => {
  const seconds = [...each(10), day + 86_400, day - 1];
  expect(
    await readOf(
      seconds.sort((a, b) => a - b),
      'after',
      day,
    ),
  ).toMatchObject({ count: 10, last: 9, newer: false });
  expect(await readOf(seconds, 'before', day + 9)).toMatchObject({ count: 10, first: 0, older: false });
});

test('day pages: a long gap costs one request, and a rare stream few', async () => {
  expect(await readOf([...each(3), day + 80_000], 'before', day + 86_399)).toMatchObject({ count: 4, first: 0 });
  expect((await readOf([...each(3), day + 80_000], 'before', day + 86_399)).requests).toBeLessThanOrEqual(8);
  expect(await readOf(each(1_440, 60), 'before', day + 86_399, 60_000)).toMatchObject({ count: 50, last: 86_340 });
});

test('day pages: reports of one second are never split, however many there are', async () => {
  const dense = Array.from({ length: 5_000 }, (_, i) => day + Math.floor(i / 25));
  expect(await readOf(dense, 'before', day + 199, 40)).toMatchObject({ count: 50, first: 198, last: 199 });
  expect(await readOf(dense, 'before', day + 199, undefined)).toMatchObject({ count: 50, first: 198, last: 199 });
});

test('day pages: an empty day says whether there are reports on earlier days', async () => {
  const earlierOf = async (seconds: readonly number[], side: 'before' | 'after') => {
    const edge = { side, second: side === 'before' ? day + 86_399 : day };
    const read = { feedId: '0x', day, edge, intervalMs: 1_000, nowSeconds: day + 90_000 };
    return (await readDayPage(serverOf(seconds), read, signal)).hasEarlierDays;
  };
  for (const side of ['before', 'after'] as const) {
    expect(await earlierOf([day - 1], side)).toBe(true);
    expect(await earlierOf([day + 86_400], side)).toBe(false);
  }
});

test('day pages: a day that retention cuts has the reports that are left, and says from when', async () => {
  const seconds = each(86_400);
  const kept = day + 40_000;
  const read = (side: 'before' | 'after', second: number, of = seconds) =>
    readDayPage(
      serverOf(of, kept),
      { feedId: '0x', day, edge: { side, second }, intervalMs: 1_000, nowSeconds: day + 90_000 },
      signal,
    );
  const ends = { hasOlder: false, hasEarlierDays: false };
  const oldest = await read('after', day);
  expect(oldest).toMatchObject({ ...ends, hasNewer: true, retainedFrom: kept + 2 });
  expect(oldest.reports[0]?.observationsTimestamp).toBe(kept + 2);
  expect(await read('before', kept + 20)).toMatchObject({ ...ends, retainedFrom: kept + 2 });
  expect(await read('before', kept + 500)).toMatchObject({ hasOlder: true, retainedFrom: undefined });
  const few = [kept + 5, kept + 70, kept + 71];
  expect((await read('before', day + 86_399, few)).reports.map(({ observationsTimestamp: at }) => at)).toEqual(few);
  await expect(read('before', kept - 1)).rejects.toMatchObject({ code: 'timestamp_out_of_bounds' });
});

test('day address: another order has the same page once a time is chosen', () => {
  const newest = { day, order: 'newest', edge: undefined } as const;
  expect(isSameRead(newest, { ...newest, order: 'oldest' })).toBe(false);
  const edge = { side: 'before', second: day + 9 } as const;
  expect(isSameRead({ ...newest, edge }, { ...newest, edge, order: 'oldest' })).toBe(true);
});

test('day pages: a day without reports is empty', async () => {
  expect(await readOf([], 'before', day + 86_399)).toMatchObject({ count: 0, older: false });
});

test('day address: a choice is read as it was written, and other arguments stay', () => {
  const query = new URLSearchParams('range=1h&day=2026-11-15&before=09:28:17');
  const choice = readDayChoice(query);
  expect(choice).toEqual({ day, order: 'newest', edge: { side: 'before', second: day + 34_097 } });
  expect(writeDayChoice(query, choice).toString()).toBe('range=1h&day=2026-11-15&before=09%3A28%3A17');
  expect(writeDayChoice(query, undefined).toString()).toBe('range=1h');
  expect(edgeOf({ day, order: 'oldest', edge: undefined })).toEqual({ side: 'after', second: day });
});

test.each(['', '2026-02-30', '15.11.2026', '2026-11-15T00:00'])('day address: %j is no day', (text) => {
  expect(readDayChoice(new URLSearchParams({ day: text }))).toBeUndefined();
});

test.each([
  ['day=2026-11-31', ['day must be a date, such as 2026-11-15.']],
  ['day=yesterday&before=x', ['day must be a date, such as 2026-11-15.']],
  ['day=', ['day must be a date, such as 2026-11-15.']],
  ['day=2026-11-15&before=25:00', ['before must be a time of the day, such as 09:28:17.']],
  [
    'day=2026-11-15&before=09:00&after=08:00&order=up',
    ['after cannot be used with before.', 'order must be newest or oldest.'],
  ],
  [
    'after=08:00&order=oldest',
    ['after needs a day, such as day=2026-11-15.', 'order needs a day, such as day=2026-11-15.'],
  ],
  ['day=2026-11-15&after=09:28:17&order=oldest', []],
  ['range=1h', []],
])('day: what is ignored in the address %s is named', (query, texts) => {
  expect(dayProblems(new URLSearchParams(query)).map(({ text }) => text)).toEqual(texts);
});
