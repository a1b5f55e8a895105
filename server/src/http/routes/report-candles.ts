// GET /api/v1/reports/candles: minutes rolled up at ingest, merged into the resolution asked for. An extension of ours.
import { limits } from '@sealpost/protocol';
import type { MinuteCandle } from '../../store/store.ts';
import type { Handler } from './context.ts';
import { oldestMs } from './report-miss.ts';
import { checkSpan } from './span.ts';

export const reportCandles: Handler<'reportCandles'> = async ({ feedId, from, to, resolution }, context) => {
  const start = Math.floor(from / resolution) * resolution;
  const end = Math.floor(to / resolution) * resolution + resolution - 1;
  checkSpan(from, to, start + limits.candlesMax * resolution - from);
  // A bucket that began before retention would show prices that no other route answers any more, or a part of itself as the whole.
  const oldest = Math.ceil(oldestMs(context) / 1_000 / resolution) * resolution;
  const minutes = oldest > end ? [] : await context.reports.candles(feedId, Math.max(start, oldest), end);
  return { status: 200, body: renderCandles(minutes, resolution), cacheControl: 'no-store' };
};

const renderCandles = (minutes: readonly MinuteCandle[], resolution: number): string => {
  const buckets = new Map<number, MinuteCandle>();
  for (const minute of minutes) {
    const timestamp = Math.floor(minute.minute / resolution) * resolution;
    const known = buckets.get(timestamp);
    buckets.set(timestamp, known === undefined ? { ...minute, minute: timestamp } : merge(known, minute));
  }
  const candles = [...buckets.values()].map(({ minute, open, high, low, close, reports }) => ({
    timestamp: minute,
    open: String(open),
    high: String(high),
    low: String(low),
    close: String(close),
    reports,
  }));
  return JSON.stringify({ candles });
};

// Minutes come in ascending order: the first one opens, the last one closes. Math.max takes no bigint.
const merge = (bucket: MinuteCandle, next: MinuteCandle): MinuteCandle => {
  const { high, low, close } = next;
  const merged = { ...bucket, close, reports: bucket.reports + next.reports };
  if (high > bucket.high) merged.high = high;
  if (low < bucket.low) merged.low = low;
  return merged;
};
