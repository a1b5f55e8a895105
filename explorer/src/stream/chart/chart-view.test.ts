import { expect, test } from 'vitest';
import {
  type ChartView,
  comparedIn,
  followView,
  panView,
  parseView,
  rangeWordsOf,
  viewOf,
  viewProblems,
  windowOf,
  writeView,
  zoomView,
} from './chart-view.ts';

const feedId = `0x0003${'ab'.repeat(30)}`;
const readable: ReadonlySet<string> = new Set([feedId]);
const now = 1_000_000;
const hour: ChartView = { seconds: 3_600, end: undefined, kind: 'candles', compare: undefined };
const read = (query: string): ChartView => parseView(new URLSearchParams(query));
const write = (view: ChartView, query = ''): string => writeView(new URLSearchParams(query), view).toString();

test.each([
  ['', { seconds: 300, end: undefined, kind: 'candles', compare: undefined }],
  ['range=1h', hour],
  ['range=754s&kind=line', { ...hour, seconds: 754, kind: 'line' }],
  [`view=1000-4600&compare=${feedId}`, { ...hour, end: 4_600, compare: feedId }],
] as const)('view: the address %s is read, and written the same', (query, view) => {
  expect(read(query)).toEqual(view);
  expect(write(view)).toBe(query);
});

test.each([
  ['range=toString', 'range must be 1m, 5m, 15m, 1h, 6h, 1d, 7d, 30d, or seconds, such as 90s.'],
  ['range=-5s', 'range must be 1m, 5m, 15m, 1h, 6h, 1d, 7d, 30d, or seconds, such as 90s.'],
  ['range=', 'range must be 1m, 5m, 15m, 1h, 6h, 1d, 7d, 30d, or seconds, such as 90s.'],
  ['view=9-3', 'view must be two Unix times, such as 1763190000-1763193600.'],
  ['view=a-b', 'view must be two Unix times, such as 1763190000-1763193600.'],
  ['view=4294967290-4294967296', 'view must be two Unix times, such as 1763190000-1763193600.'],
  ['compare=0x1', 'compare must be a feed ID: 0x and 64 hex digits.'],
  ['kind=pie', 'kind must be candles or line.'],
])('view: what cannot be read in %s is left out, and named', (query, text) => {
  expect(read(query)).toEqual(read(''));
  expect(viewProblems(new URLSearchParams(query), readable)).toEqual([{ name: query.split('=')[0], text }]);
});

test('view: what is read has no problems', () => {
  for (const query of ['', 'range=1h', 'range=754s&kind=candles', `view=1000-4600&compare=${feedId}&kind=line`])
    expect(viewProblems(new URLSearchParams(query), readable)).toEqual([]);
});

test('view: a stream that the user may not read, or that does not exist, is not compared, and named', () => {
  const unknown = `0x0003${'ff'.repeat(30)}`;
  expect([comparedIn(read(`compare=${feedId}`), readable), comparedIn(read(''), readable)]).toEqual([
    feedId,
    undefined,
  ]);
  expect(comparedIn(read(`compare=${unknown}`), readable)).toBeUndefined();
  expect(viewProblems(new URLSearchParams(`compare=${unknown}`), readable)).toEqual([
    { name: 'compare', text: 'compare is not a stream of this server, or your account may not read it.' },
  ]);
});

test('view: a length beyond the limits is cut to 5 seconds or 30 days', () => {
  expect(read('view=100-101').seconds).toBe(5);
  expect(windowOf(read('view=0-3'), now)).toEqual({ from: 0, to: 5 });
  expect(read('range=99999999s').seconds).toBe(2_592_000);
});

test('view: what others keep in the address stays', () => {
  expect(write(hour, 'at=-5m&range=1d')).toBe('at=-5m&range=1h');
});

test('view: while it follows, it ends with the bar that is not over', () => {
  expect(windowOf({ seconds: 60, end: undefined }, now)).toEqual({ from: now - 59, to: now + 1 });
  expect(windowOf(hour, now)).toEqual({ from: 999_420 + 600 - 3_600, to: 999_420 + 600 });
  expect(windowOf({ seconds: 60, end: 500 }, now)).toEqual({ from: 440, to: 500 });
});

test('view: panning into the past fixes the end, and panning back to the newest report follows it again', () => {
  const past = panView(hour, -1_800, now);
  expect(past.end).toBe(1_000_020 - 1_800);
  expect(panView(past, 1_700, now).end).toBe(999_920);
  expect(panView(past, 1_800, now).end).toBeUndefined();
  expect(panView(hour, -2 * now, now).end).toBe(3_600);
});

test('view: zooming while it follows keeps the newest report in view, and at a place keeps that place', () => {
  expect(zoomView(hour, 0.5, now)).toEqual({ ...hour, seconds: 1_800 });
  const fixed: ChartView = { ...hour, end: 500_000 };
  expect(windowOf(zoomView(fixed, 0.5, now, 0.25), now)).toEqual({ from: 496_850, to: 498_650 });
  expect(windowOf(zoomView(fixed, 0.5, now), now)).toEqual({ from: 497_300, to: 499_100 });
  expect(zoomView(fixed, 1e9, now).seconds).toBe(2_592_000);
});

test('view: a candle is zoomed into exactly, a second with seconds around it', () => {
  expect(windowOf(viewOf(hour, { from: 6_000, to: 6_060 }, now), now)).toEqual({ from: 6_000, to: 6_060 });
  expect(windowOf(viewOf(hour, { from: 6_000, to: 6_001 }, now), now)).toEqual({ from: 5_998, to: 6_003 });
});

test('view: a named range follows the newest report', () => {
  expect(followView({ ...hour, end: 77 }, 60)).toEqual({ ...hour, seconds: 60 });
  expect(rangeWordsOf(60)).toBe('minute');
  expect(rangeWordsOf(754)).toBe('12 min 34 s');
});
