// GET /api/v1/reports/candles/bulk: candles of several streams, in the order asked for. Candles that are over are kept for a while, by stream and
// range, so that many clients with the same range cost one read (D191). Sealpost extension.
import { candleBucketsMax, type FeedId } from '@sealpost/protocol';
import { runForClient } from '../../access/long-work.ts';
import { createKeptValues, type KeptValues } from '../../runtime/kept-values.ts';
import type { CandleRange } from '../../store/candle-rollup.ts';
import type { Handler, RouteContext } from './context.ts';
import { createTextPieces } from './report-bodies.ts';
import { candleRangeOf, createCandleReader, renderCandles } from './report-candles.ts';

/** Only late reports change a candle that is over: they are in it after this long. */
const keptMs = 10_000;
/** Characters of all kept texts: a day of hours of 2,000 streams has 7 million. */
const charactersMax = 8_000_000;

export const createCandlesManyRoute = (monotonicMs: () => number): Handler<'reportCandlesMany'> => {
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
};

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
