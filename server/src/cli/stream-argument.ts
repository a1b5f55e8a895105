// Owns naming a stream on the command line: by feed id, or by its name in the catalog.
import { type FeedId, parseFeedId, type Stream } from '@sealpost/protocol';
import type { Store } from '../store/store.ts';
import { usageError } from './failure.ts';

const isFeedId = (raw: string): boolean => /^0x[0-9a-fA-F]{64}$/.test(raw);

/** Finds a stream of the catalog by feed id or name, without regard to case. */
export const findStream = (streams: readonly Stream[], raw: string): Stream => {
  const wanted = raw.toLowerCase();
  const found = streams.filter(({ feedId, name }) => feedId === wanted || name.toLowerCase() === wanted);
  const [stream, ...others] = found;
  if (stream === undefined) throw unknownStream(raw);
  if (others.length === 0) return stream;
  throw usageError(`${raw} is the name of ${found.map(({ feedId }) => feedId).join(' and ')}. Give the feed id.`);
};

const unknownStream = (raw: string) =>
  usageError(`"${raw}" is neither the feed id nor the name of a stream. See them with: sealpost stream list.`);

/** As `findStream`, for reading reports: a feed id is also good when only reports of it are left. */
export const findReadableStream = async (
  { admin, reports }: Store,
  raw: string,
): Promise<{ readonly feedId: FeedId; readonly name: string }> => {
  const streams = await admin.list('stream');
  if (!isFeedId(raw)) return findStream(streams, raw);
  const feedId = parseFeedId(raw);
  const stream = streams.find((known) => known.feedId === feedId);
  if (stream !== undefined) return stream;
  if (reports.latest(feedId) === undefined) throw unknownStream(raw);
  return { feedId, name: feedId };
};
