// GET /api/v1/reports/candles: prices rolled up at ingest, merged into the resolution asked for, in slices. Sealpost extension.
import { type FeedId, limits } from '@sealpost/protocol';
import { type LongWork, runForClient } from '../../access/long-work.ts';
import { type Candle, type CandleRange, mergeCandles } from '../../store/candle-rollup.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { Handler, RouteContext } from './context.ts';

import { checkRange } from './time-range.ts';

export const reportCandles: Handler<'reportCandles'> = async ({ feedId, from, to, resolution }, context) => {
  const start = Math.floor(from / resolution) * resolution;
  const end = Math.floor(to / resolution) * resolution + resolution - 1;
  checkRange(from, to, start + limits.candlesMax * resolution - from);
  // A bucket that began before retention would show prices that no other route answers any more, or a part of itself as the whole.
  const oldest = Math.ceil(retentionEdgeMs(context) / 1_000 / resolution) * resolution;
  const range = { from: Math.max(start, oldest), to: end, resolution };
  const { reports, longWork, userId, client } = context;
  const candles =
    oldest > end
      ? []
      : await runForClient(longWork, userId, client, (slice) => readInSlices(reports, slice, feedId, range));
  return { status: 200, body: `{"candles":[${candles.map(renderCandle).join(',')}]}`, cacheControl: 'no-store' };
};

const readInSlices = async (
  reports: RouteContext['reports'],
  inSlice: LongWork['slice'],
  feedId: FeedId,
  range: CandleRange,
): Promise<readonly Candle[]> => {
  const candles: Candle[] = [];
  for (let from: number | undefined = range.from; from !== undefined; ) {
    const rest: CandleRange = { ...range, from };
    const slice = await inSlice((isOver) => reports.candles(feedId, rest, isOver));
    for (const candle of slice.candles) {
      const last = candles.at(-1);
      if (last?.start === candle.start) candles[candles.length - 1] = mergeCandles(last, candle);
      else candles.push(candle);
    }
    from = slice.next;
  }
  return candles;
};

const renderCandle = ({ start, open, high, low, close, reports }: Candle): string =>
  `{"timestamp":${start},"open":"${open}","high":"${high}","low":"${low}","close":"${close}","reports":${reports}}`;
