// GET /api/v1/reports/candles: prices rolled up at ingest, merged into the resolution asked for; candles of a second are read from
// reports. Sealpost extension.
import { candleBucketsMax, type FeedId, isRolledUp, limits, malformedArgument, type QueryOf } from '@sealpost/protocol';
import { type LongWork, runForClient } from '../../access/long-work.ts';
import { createKeptValues, type KeptValues } from '../../runtime/kept-values.ts';
import type { Candle, CandleRange } from '../../store/candle-rollup.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import { readSecondCandles } from '../../store/second-candles.ts';
import { checkRange } from '../query.ts';
import type { Handler, RouteContext } from './context.ts';
import { createTextPieces } from './report-bodies.ts';

/** Reports that candles of a second are read from in one answer: 24 minutes of 69 per second, and a second of the loop in slices. */
const reportsMax = 100_000;

export const reportCandles: Handler<'reportCandles'> = async (query, context) => {
  const range = candleRangeOf(query, limits.candlesMax, context);
  const { longWork, userId, client } = context;
  const candles = await runForClient(longWork, userId, client, (slice) =>
    createCandleReader(context, query, slice)(query.feedId, range),
  );
  return { status: 200, body: `{"candles":[${renderCandles(candles)}]}`, cacheControl: 'no-store' };
};

type CandleQuery = Pick<QueryOf<'reportCandles'>, 'from' | 'to' | 'resolution'>;

/** The whole buckets of a range; rejects one with more than `bucketsMax`. Ends before it begins where all of it is before retention. */
const candleRangeOf = (
  { from, to, resolution }: CandleQuery,
  bucketsMax: number,
  { reportNowMs, retentionDays }: Pick<RouteContext, 'reportNowMs' | 'retentionDays'>,
): CandleRange => {
  const start = Math.floor(from / resolution) * resolution;
  checkRange(from, to, start + bucketsMax * resolution - from);
  // A bucket that began before retention would show prices that no other route answers any more, or a part of itself as the whole.
  const oldest = Math.ceil(retentionEdgeMs(reportNowMs, retentionDays) / 1_000 / resolution) * resolution;
  const end = Math.floor(to / resolution) * resolution + resolution - 1;
  return { from: Math.max(start, oldest), to: end, resolution };
};

/** Reads candles of streams for one answer, which bounds the reports that candles of a second are read from. */
const createCandleReader = (
  { reports }: Pick<RouteContext, 'reports'>,
  { to }: CandleQuery,
  slice: LongWork['slice'],
): ((feedId: FeedId, range: CandleRange) => Promise<readonly Candle[]>) => {
  const bound = createBound(to);
  return async (feedId, range) => {
    if (range.from > range.to) return [];
    return isRolledUp(range.resolution)
      ? slice(() => reports.candles(feedId, range))
      : readSecondCandles(reports, feedId, range, slice, bound);
  };
};

/** Counts reports, up to `reportsMax`. */
const createBound = (to: number) => {
  let count = 0;
  return (read: number): void => {
    count += read;
    if (count > reportsMax)
      throw malformedArgument('to', to, `an earlier second: the range has more than ${reportsMax} reports`);
  };
};

/** Candles as the API sends them, without the brackets around them. */
const renderCandles = (candles: readonly Candle[]): string => candles.map(renderCandle).join(',');

const renderCandle = ({ start, open, high, low, close, reports }: Candle): string =>
  `{"timestamp":${start},"open":"${open}","high":"${high}","low":"${low}","close":"${close}","reports":${reports}}`;

/** Only late reports change a candle that is over: they are in it after this long. */
const keptMs = 10_000;
/** Characters of all kept texts: a day of hours of 2,000 streams has 7 million. */
const charactersMax = 8_000_000;

export function createCandlesManyRoute(monotonicMs: () => number): Handler<'reportCandlesMany'> {
  const kept = createKeptValues<string>(keptMs, charactersMax, monotonicMs);
  return async (query, context) => {
    const { feedIds } = query;
    const range = candleRangeOf(query, candleBucketsMax(feedIds.length), context);
    const { longWork, userId, client } = context;
    const body = await runForClient(longWork, userId, client, async (slice) => {
      const read = createCandleReader(context, query, slice);
      const { add, end } = createTextPieces(slice);
      await add('{"streams":[');
      for (const [i, feedId] of feedIds.entries()) {
        const text = await renderStream(feedId, range, context.reports, read, kept);
        await add(`${i === 0 ? '' : ','}{"feedID":"${feedId}","candles":[${text}]}`);
      }
      return end(']}');
    });
    return { status: 200, body, cacheControl: 'no-store' };
  };
}

/** The candles of one stream: those that are over from what is kept, else read with the others. */
const renderStream = async (
  feedId: FeedId,
  range: CandleRange,
  reports: RouteContext['reports'],
  read: ReturnType<typeof createCandleReader>,
  kept: KeptValues<string>,
): Promise<string> => {
  const { from, to, resolution } = range;
  const newestSecond = Math.floor((reports.newestMs(feedId) ?? 0) / 1_000);
  // A new report is in the bucket of the newest one, or in a later one.
  const openStart = Math.floor(newestSecond / resolution) * resolution;
  const openFrom = Math.min(Math.max(from, openStart), to + 1);
  const key = `${feedId} ${resolution} ${from} ${openFrom}`;
  const known = kept.get(key);
  const candles = await read(feedId, known === undefined ? range : { ...range, from: openFrom });
  const over = known ?? renderCandles(candles.filter(({ start }) => start < openFrom));
  if (known === undefined && openFrom > from) kept.put(key, over, key.length + over.length);
  const open = renderCandles(candles.filter(({ start }) => start >= openFrom));
  return over === '' || open === '' ? over + open : `${over},${open}`;
};
