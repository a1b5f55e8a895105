import { type Client, SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import { type ChartWindow, gridOf, resolutionOf } from './resolution.ts';
import { createChartSource, createRetention } from './source.ts';

const daySeconds = 86_400;
const now = 1_790_000_000;

/** A server that keeps some days; `asked` has the first second of every request, as days before now, and whether it was rejected. */
const sourceOf = (keptDays: number) => {
  const asked: { readonly days: number; readonly isRejected: boolean }[] = [];
  const oldestTimestamp = now - keptDays * daySeconds;
  const check = (from: number): void => {
    const isRejected = from < oldestTimestamp;
    asked.push({ days: Math.round((now - from) / daySeconds), isRejected });
    if (isRejected)
      throw new SealpostError('timestamp_out_of_bounds', 'Too old.', { status: 400, details: { oldestTimestamp } });
  };
  const candle = { open: 1n, high: 1n, low: 1n, close: 1n, reports: 1 };
  const client = {
    candles: async (_: string, { from }: { readonly from: number }) => {
      check(from);
      return { candles: [{ ...candle, timestamp: from }] };
    },
    pages: (_: string, { from }: { readonly from: number }) => {
      check(from);
      return [];
    },
  } as unknown as Client; // what the chart uses of one
  const retention = createRetention();
  const source = createChartSource(client, 'feed', retention, () => {});
  /** Wants a view twice a second apart, as the chart does. */
  const show = async (window: ChartWindow) => {
    const grid = gridOf(window, resolutionOf(window.to - window.from));
    for (const second of [now, now + 1]) {
      source.want(grid, window, second);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    return {
      bars: source.read(grid, [], now + 1),
      failure: source.failureOf(grid, window, now + 1),
      isLoading: source.isLoading(grid, window, now + 1),
    };
  };
  return { asked, show, retention, oldestTimestamp };
};

const lastDays = (days: number): ChartWindow => ({ from: now + 3_600 - days * daySeconds, to: now + 3_600 });

test('source: 30 days of a server that keeps 30 are drawn, without a request for older ones', async () => {
  const { asked, show } = sourceOf(30);
  const { bars, failure, isLoading } = await show(lastDays(30));
  expect(asked.filter(({ isRejected }) => isRejected)).toEqual([]);
  expect(bars?.candles.length).toBeGreaterThan(0);
  expect({ failure, isLoading }).toEqual({ failure: undefined, isLoading: false });
});

test('source: a shorter retention is learned with one request, and what exists is drawn', async () => {
  const { asked, show, retention, oldestTimestamp } = sourceOf(7);
  const { bars, failure, isLoading } = await show(lastDays(30));
  expect(retention.oldest()).toBe(oldestTimestamp);
  expect(bars?.candles[0]?.timestamp).toBeGreaterThanOrEqual(oldestTimestamp);
  expect({ failure, isLoading }).toEqual({ failure: undefined, isLoading: false });
  await show(lastDays(29));
  expect(asked.filter(({ isRejected }) => isRejected)).toHaveLength(1);
});

test('source: a longer retention is used once a view is that old', async () => {
  const { asked, show, retention } = sourceOf(90);
  await show(lastDays(30));
  const { bars } = await show({ from: now - 60 * daySeconds, to: now - 40 * daySeconds });
  expect(bars?.candles.some(({ timestamp }) => timestamp < now - 40 * daySeconds)).toBe(true);
  expect(asked.some(({ days }) => days > 40)).toBe(true);
  expect(retention.oldest()).toBeUndefined();
});

test.each([300, 3_600])(
  'source: a view of %i seconds before what is kept takes one request, and is empty',
  async (seconds) => {
    const { asked, show, retention, oldestTimestamp } = sourceOf(30);
    const { bars, failure, isLoading } = await show({ from: 1_000_000, to: 1_000_000 + seconds });
    expect(asked).toHaveLength(1);
    expect(retention.oldest()).toBe(oldestTimestamp);
    expect(bars).toMatchObject({ candles: [], spans: [] });
    expect({ failure, isLoading }).toEqual({ failure: undefined, isLoading: false });
  },
);
