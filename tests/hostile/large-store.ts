// A store that takes long to read, built in seconds: a stream with a dense day and a month of minutes, and after it many reports of others.
import type { FeedId } from '@sealpost/protocol';
import { rekeyedReports } from '../../bench/rekeyed-reports.ts';
import type { NewReport, Store } from '../../server/src/store/store.ts';
import { secondStream } from '../support/signed-reports.ts';

const batchMax = 2_000;
const monthMinutes = 29 * 1_440;

/** Reports of a stream up to a second, some seconds apart; nobody here checks their signatures. */
const reportsOf = (feedId: FeedId, until: number, count: number, apart: number): readonly NewReport[] =>
  [...rekeyedReports(until - count, count, [feedId])].flat().map((one, i) => {
    const ms = (until - (count - i) * apart) * 1_000;
    return { ...one, validFromMs: ms, observationsMs: ms, price: BigInt(i % 997) };
  });

/** Appends about three times `size` reports. */
export const fillStore = async ({ reports }: Store, feedId: FeedId, size: number): Promise<void> => {
  const now = Math.floor(Date.now() / 1_000) - 2_000;
  const apart = Math.ceil(monthMinutes / size) * 60;
  const all = [
    ...reportsOf(feedId, now - size, Math.floor((monthMinutes * 60) / apart), apart),
    ...reportsOf(feedId, now, size, 1),
    ...[91, 92].flatMap((n) => reportsOf(secondStream(n), now, size / 2, 1)),
  ];
  for (let i = 0; i < all.length; i += batchMax) await reports.append(all.slice(i, i + batchMax));
};
