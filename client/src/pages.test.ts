import { expect, test } from 'vitest';
import { type Asked, type Scripted, scriptedFetch } from '../../tests/support/scripted-fetch.ts';
import { createClient } from './client.ts';
import type { PagesOptions } from './pages.ts';

const feedId = `0x0003${'0'.repeat(59)}1`;
const feedIdMs = `0x1003${'0'.repeat(59)}1`;

/** What a server does: ours links pages, others may not, and may return less than is asked for. */
type Manners = { readonly headers?: object; readonly links?: boolean; readonly cap?: number };

/** A server that has a report for each of these moments, in milliseconds, and one more page of them with every pause. */
const serving = (
  feedID: string,
  stored: number[],
  arriving: number[][] = [],
  { headers = {}, links = true, cap = 1_000 }: Manners = {},
) => {
  const slept: number[] = [];
  const answer = ({ url }: Asked): Scripted => {
    const query = new URL(url).searchParams;
    const [start, limit] = [Number(query.get('startTimestamp')), Math.min(cap, Number(query.get('limit')))];
    const found = stored.filter((ms) => Math.floor(ms / 1_000) >= start);
    const reports = found.slice(0, limit).map((ms) => ({
      feedID,
      validFromTimestamp: Math.floor(ms / 1_000),
      observationsTimestamp: Math.floor(ms / 1_000),
      fullReport: `0x${ms.toString(16).padStart(8, '0')}`,
    }));
    const link = { Link: `</api/v1/reports/page>; rel="${found.length > limit ? 'next' : 'last'}"` };
    return { status: 200, body: { reports }, headers: { ...headers, ...(links && link) } };
  };
  const { fetch, asked } = scriptedFetch(answer);
  const client = createClient({
    baseUrl: 'http://a.test',
    userId: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f',
    secret: 's',
    fetch,
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      slept.push(ms);
      stored.push(...(arriving.shift() ?? []));
    },
  });
  const read = async (options: PagesOptions): Promise<readonly (readonly number[])[]> => {
    const pages: number[][] = [];
    for await (const { reports } of client.pages(feedID, options))
      pages.push(reports.map(({ fullReport }) => Number(fullReport)));
    return pages;
  };
  return { read, asked, slept, client };
};

const seconds = (...list: readonly number[]): number[] => list.map((second) => second * 1_000);

test('pages: a range is read to its end and not beyond', async () => {
  const { read, slept } = serving(feedId, seconds(1, 2, 3, 4, 5, 6, 7));
  expect(await read({ from: 2, to: 6, limit: 2 })).toEqual([seconds(2, 3), seconds(4, 5), seconds(6)]);
  expect(slept).toEqual([]);
});

test('pages: without an end, to the newest', async () => {
  const { read } = serving(feedId, seconds(1, 2, 3));
  expect(await read({ from: 2 })).toEqual([seconds(2, 3)]);
  expect(await read({ from: 4 })).toEqual([]);
});

test('pages: a range that ends before it starts sends no request', async () => {
  const { read, asked } = serving(feedId, seconds(1));
  expect(await read({ from: 2, to: 1 })).toEqual([]);
  expect(asked).toHaveLength(0);
});

test('pages: following returns each report once as it arrives, until the end of the range', async () => {
  const { read, slept } = serving(feedId, seconds(1, 2), [seconds(3), [], seconds(4, 5, 6)]);
  expect(await read({ from: 1, to: 5, follow: true, pollMs: 700 })).toEqual([seconds(1, 2), seconds(3), seconds(4, 5)]);
  expect(slept).toEqual([700, 700, 700]);
});

test('pages: following an empty stream waits for its first report', async () => {
  const { read } = serving(feedId, [], [[], seconds(8)]);
  expect(await read({ from: 3, to: 8, follow: true })).toEqual([seconds(8)]);
});

test('pages: following a stream in milliseconds loses no report of a second that was not over', async () => {
  const { read } = serving(feedIdMs, [1_000, 2_100], [[2_600, 2_900], [3_000], [4_000]]);
  expect(await read({ from: 1, to: 3, follow: true })).toEqual([[1_000, 2_100], [2_600, 2_900], [3_000]]);
});

test('pages: with the rate limit used up, it waits for one more request', async () => {
  const headers = { 'RateLimit-Limit': '10', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '1' };
  const { read, slept } = serving(feedId, seconds(1, 2, 3), [], { headers });
  expect(await read({ from: 1, limit: 1 })).toEqual([seconds(1), seconds(2), seconds(3)]);
  expect(slept).toEqual([100, 100]);
});

test('pages: an abort ends following with a typed error', async () => {
  const controller = new AbortController();
  const { client } = serving(feedId, seconds(1));
  const iterator = client.pages(feedId, { from: 1, follow: true, signal: controller.signal });
  expect((await iterator.next()).done).toBe(false);
  controller.abort('enough');
  await expect(iterator.next()).rejects.toMatchObject({ code: 'aborted', cause: 'enough' });
});

test.each([{ cap: 1_000 }, { cap: 500 }, { cap: 7 }])(
  'pages: a server without links that returns at most $cap reports is read until a page is empty',
  async ({ cap }) => {
    const stored = Array.from({ length: 2_991 }, (_, i) => (i + 1) * 1_000);
    const { read, asked } = serving(feedId, stored, [], { links: false, cap });
    expect((await read({ from: 1 })).flat()).toEqual(stored);
    expect(asked).toHaveLength(Math.ceil(2_991 / cap) + 1);
    expect((await read({ from: 11, to: 2_000 })).flat()).toEqual(stored.slice(10, 2_000));
  },
);

test('pages: following a server without links returns each report once', async () => {
  const { read } = serving(feedId, seconds(1, 2), [seconds(3), [], seconds(4, 5, 6)], { links: false, cap: 1 });
  expect((await read({ from: 1, to: 5, follow: true })).flat()).toEqual(seconds(1, 2, 3, 4, 5));
  const fine = serving(feedIdMs, [1_000, 2_100], [[2_600, 2_900], [3_000], [4_000]], { links: false });
  expect((await fine.read({ from: 1, to: 3, follow: true })).flat()).toEqual([1_000, 2_100, 2_600, 2_900, 3_000]);
});

test('pages: following a range of one second waits for its report', async () => {
  const { read } = serving(feedId, [], [[], seconds(8)], { links: false });
  expect(await read({ from: 8, to: 8, follow: true })).toEqual([seconds(8)]);
});

test('pages: a report that is twice in a page is returned once', async () => {
  const { read } = serving(feedId, seconds(1, 1, 2, 2, 2), [], { links: false });
  expect((await read({ from: 1 })).flat()).toEqual(seconds(1, 2));
});

test('pages: reading ends with the last second that the API allows', async () => {
  const { read } = serving(feedId, seconds(2 ** 32 - 2, 2 ** 32 - 1), [], { links: false });
  expect((await read({ from: 2 ** 32 - 2 })).flat()).toHaveLength(2);
});
