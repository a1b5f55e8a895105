import type { ReportJson } from '@sealpost/protocol/report-json';
import { expect, test } from 'vitest';
import { toError } from '../request/answer.ts';
import type { Requester } from '../request/requester.ts';
import { readAfter } from './backfill.ts';
import { feedA, scriptedReport } from './script.fixture.ts';
import type { StreamGap } from './state.ts';

const exactFeed = `0x1003${'e'.repeat(60)}`;
const signal = new AbortController().signal;
const word = (value: number): string => value.toString(16).padStart(64, '0');

/** A report of a stream that counts milliseconds: its bytes tell the window, which begins after the last 100 ms. */
const exactReport = (observationsMs: number): ReportJson => ({
  feedID: exactFeed,
  validFromTimestamp: Math.floor((observationsMs - 99) / 1_000),
  observationsTimestamp: Math.floor(observationsMs / 1_000),
  fullReport: `0x${word(0).repeat(8)}${exactFeed.slice(2)}${word(observationsMs - 99)}${word(observationsMs)}`,
});

type Pages = {
  readonly stored: readonly ReportJson[];
  /** Does an answer tell whether there is more? Ours do, by a link. */
  readonly links?: boolean;
  /** Reports of a page at most, whatever is asked for. */
  readonly cap?: number;
  /** Pages end anywhere within a second. */
  readonly cutsSeconds?: boolean;
  /** The oldest second that is kept, at each question. */
  readonly oldest?: (question: number) => number;
};

/** Pages as the server cuts them: in a stream in milliseconds they extend to the end of their last second. */
const createPages = ({ stored, links = false, cap = 1_000, cutsSeconds = false, oldest = () => 0 }: Pages) => {
  const starts: number[] = [];
  const get = async <T>(target: string) => {
    const query = new URL(target, 'http://scripted').searchParams;
    const [start, limit] = [Number(query.get('startTimestamp')), Math.min(cap, Number(query.get('limit')))];
    starts.push(start);
    const oldestTimestamp = oldest(starts.length);
    if (start < oldestTimestamp) {
      const text = JSON.stringify({ message: 'Too old.', code: 'timestamp_out_of_bounds', oldestTimestamp });
      throw toError({ status: 400, headers: new Headers(), text }, 'scripted', 0);
    }
    const from = stored.filter(({ observationsTimestamp }) => observationsTimestamp >= start);
    const last = from[limit - 1]?.observationsTimestamp ?? Number.POSITIVE_INFINITY;
    const isCut = !cutsSeconds && from.length > limit && from[limit]?.observationsTimestamp === last;
    const reports = isCut ? from.filter((one) => one.observationsTimestamp < last) : from.slice(0, limit);
    const details = { status: 200, requestId: 'r', rateLimit: undefined, serverTimeMs: undefined };
    return { body: { reports } as T, details, ...(links && { more: reports.length < from.length }) }; // as a page is
  };
  return { get, starts };
};

const readAll = async (requester: Pick<Requester, 'get'>, feedId: string, lastMs: number) => {
  const gaps: StreamGap[] = [];
  const pages: number[][] = [];
  for await (const page of readAfter(requester, feedId, lastMs, signal, (gap) => gaps.push(gap)))
    pages.push(page.map(({ observationsMs }) => observationsMs));
  return { pages, gaps, moments: pages.flat() };
};
const range = (from: number, count: number, step = 1) => Array.from({ length: count }, (_, i) => from + i * step);
const secondsOf = (from: number, count: number) => range(from, count).map((at) => scriptedReport(feedA, at, at));

test('backfill: reports observed after a time, page by page, until a page is empty', async () => {
  const requester = createPages({ stored: secondsOf(1_000, 2_500) });
  const { pages, moments, gaps } = await readAll(requester, feedA, 1_099_000);
  expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 400]);
  expect(moments).toEqual(range(1_100_000, 2_400, 1_000));
  expect(requester.starts).toEqual([1_100, 2_100, 3_100, 3_500]);
  expect(gaps).toEqual([]);
});

test('backfill: the last page is followed by an empty one, unless the server says that it is the last', async () => {
  const stored = secondsOf(1_000, 1_000);
  const silent = createPages({ stored });
  expect((await readAll(silent, feedA, 999_000)).moments).toHaveLength(1_000);
  expect(silent.starts).toEqual([1_000, 2_000]);
  const linking = createPages({ stored, links: true });
  expect((await readAll(linking, feedA, 999_000)).moments).toHaveLength(1_000);
  expect(linking.starts).toEqual([1_000]);
});

test('backfill: without newer reports there is no page', async () => {
  const { pages } = await readAll(createPages({ stored: secondsOf(1_000, 5) }), feedA, 1_004_000);
  expect(pages).toEqual([]);
});

test('backfill: a stream in milliseconds continues within a second that was read in part', async () => {
  const stored = range(5_000, 30, 100).map(exactReport);
  const requester = createPages({ stored });
  const { moments } = await readAll(requester, exactFeed, 5_300);
  expect(moments).toEqual(range(5_400, 26, 100));
  // The first second for what is left of it; the last one again and the one after it, because the page may have been cut.
  expect(requester.starts).toEqual([5, 7, 8]);
});

test.each([1, 7, 300])('backfill: a server that returns at most %i reports is read to the end', async (cap) => {
  const { moments } = await readAll(createPages({ stored: secondsOf(1_000, 310), cap }), feedA, 999_000);
  expect(moments).toEqual(range(1_000_000, 310, 1_000));
});

test.each([10, 11, 25])(
  'backfill: pages of %i that end within a second give each report of milliseconds once',
  async (cap) => {
    const stored = range(5_000, 95, 100).map(exactReport);
    const requester = createPages({ stored, cap, cutsSeconds: true });
    expect((await readAll(requester, exactFeed, 4_999)).moments).toEqual(range(5_000, 95, 100));
    expect(requester.starts.length).toBeLessThan(60);
  },
);

test('backfill: a second of milliseconds with more reports than a page of the server holds is an error', async () => {
  const stored = range(5_000, 95, 100).map(exactReport);
  const requester = createPages({ stored, cap: 8, cutsSeconds: true });
  await expect(readAll(requester, exactFeed, 4_999)).rejects.toMatchObject({ code: 'invalid_page', retryable: false });
});

test.each([
  ['ignores startTimestamp', (at: number) => secondsOf(1_000, 5).map((one) => ({ ...one, at }))],
  ['returns the newest first', (at: number) => secondsOf(at, 5).reverse()],
])('backfill: a server that %s is an error, not a loop', async (_, answer) => {
  const details = { status: 200, requestId: undefined, rateLimit: undefined, serverTimeMs: undefined };
  const get = async <T>(target: string) => {
    const start = Number(new URL(target, 'http://scripted').searchParams.get('startTimestamp'));
    return { body: { reports: answer(start) } as T, details }; // as a page is
  };
  await expect(readAll({ get }, feedA, 999_000)).rejects.toMatchObject({ code: 'invalid_page', retryable: false });
});

test('backfill: the last millisecond of a second is followed by the next second', async () => {
  const requester = createPages({ stored: [exactReport(5_999), exactReport(6_000)], links: true });
  expect((await readAll(requester, exactFeed, 5_999)).moments).toEqual([6_000]);
  expect(requester.starts).toEqual([6]);
});

test.each([true, false])(
  'backfill: pages of milliseconds overlap by a second and give each report once (links: %s)',
  async (links) => {
    // 300 a second: the page of 1,000 ends with the third second.
    const stored = range(10_000, 3_000, 10 / 3).map((ms) => exactReport(Math.round(ms)));
    const { pages, moments } = await readAll(createPages({ stored, links }), exactFeed, 9_999);
    expect(moments).toEqual(range(10_000, 3_000, 10 / 3).map(Math.round));
    expect(pages.map(({ length }) => length)).toEqual([900, 600, 600, 600, 300]);
  },
);

test('backfill: before the retention it starts with the oldest report, and reports the gap', async () => {
  const requester = createPages({ stored: secondsOf(1_000, 100), oldest: () => 1_040, links: true });
  const { moments, gaps } = await readAll(requester, feedA, 999_000);
  expect(moments).toEqual(range(1_040_000, 60, 1_000));
  expect(gaps).toEqual([{ feedId: feedA, from: 1_000, to: 1_040 }]);
  expect(requester.starts).toEqual([1_000, 1_040]);
});

test('backfill: the oldest retained second may advance between two requests', async () => {
  const requester = createPages({ stored: secondsOf(1_000, 100), oldest: (question) => 1_040 + question, links: true });
  const { moments, gaps } = await readAll(requester, feedA, 999_000);
  expect(requester.starts).toEqual([1_000, 1_041, 1_043]);
  expect(moments[0]).toBe(1_043_000);
  expect(gaps).toEqual([{ feedId: feedA, from: 1_000, to: 1_043 }]);
});

test('backfill: a server whose oldest second keeps advancing is an error in the end', async () => {
  const requester = createPages({ stored: [], oldest: (question) => 1_000 * 2 ** question });
  await expect(readAll(requester, feedA, 0)).rejects.toMatchObject({ code: 'timestamp_out_of_bounds' });
  expect(requester.starts).toHaveLength(6);
});

test('backfill: what passes retention while pages are read is a gap too', async () => {
  const requester = createPages({
    stored: secondsOf(1_000, 3_000),
    oldest: (question) => (question === 1 ? 0 : 2_500),
  });
  const { moments, gaps } = await readAll(requester, feedA, 999_000);
  expect(moments).toEqual([...range(1_000_000, 1_000, 1_000), ...range(2_500_000, 1_500, 1_000)]);
  expect(gaps).toEqual([{ feedId: feedA, from: 2_000, to: 2_500 }]);
});

test('backfill: an out-of-bounds error without the oldest second, and an invalid page, are errors', async () => {
  const refuse = (details: object) => ({
    get: () => {
      const text = JSON.stringify({ message: 'No.', code: 'timestamp_out_of_bounds', ...details });
      return Promise.reject(toError({ status: 400, headers: new Headers(), text }, 'scripted', 0));
    },
  });
  for (const details of [{}, { oldestTimestamp: 'soon' }, { oldestTimestamp: 1 }])
    await expect(readAll(refuse(details), feedA, 5_000)).rejects.toMatchObject({ code: 'timestamp_out_of_bounds' });
  const broken = [
    { ...scriptedReport(feedA, 1, 1), fullReport: 7 as unknown as string }, // what a broken server may send
    scriptedReport(feedA, 1_763_200_000_000, 1_763_200_000_000),
  ];
  for (const one of broken)
    await expect(readAll(createPages({ stored: [one] }), feedA, 0)).rejects.toMatchObject({
      code: 'unexpected_answer',
    });
});

test('backfill: after the last second that a report can have, nothing is asked for', async () => {
  const last = 2 ** 32 - 1;
  const requester = createPages({ stored: [scriptedReport(feedA, last, last)] });
  expect((await readAll(requester, feedA, last * 1_000 - 1)).moments).toHaveLength(1);
  expect(requester.starts).toEqual([last]);
  expect((await readAll(requester, feedA, last * 1_000)).moments).toEqual([]);
  expect(requester.starts).toEqual([last]);
});
