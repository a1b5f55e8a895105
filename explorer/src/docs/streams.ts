// The streams that samples and forms use.
import type { CatalogEntry } from '@sealpost/protocol';
import type { CatalogState } from '../state/user-catalog.ts';
import { isMillisecondFeed } from './arguments.ts';
import type { SampleStreams } from './sample-body.ts';

const streamsMax = 50;

/** Those that the user may read, or else the public ones; first those that have reports at any hour. */
export function pickStreams(state: CatalogState): SampleStreams {
  if (state.phase !== 'ready') return { feedIds: [], entries: [] };
  const readable = state.streams.filter(({ feedId }) => state.readable.has(feedId));
  const ranked = (readable.length > 0 ? readable : state.streams).toSorted((a, b) => rankOf(a) - rankOf(b));
  const entries = withMillisecondStream(ranked, ranked.slice(0, streamsMax));
  return { feedIds: entries.map(({ feedId }) => feedId), entries };
}

/** The sample of the WebSocket in milliseconds needs such a stream, wherever it is in the catalog. */
const withMillisecondStream = (
  all: readonly CatalogEntry[],
  picked: readonly CatalogEntry[],
): readonly CatalogEntry[] => {
  const found = all.find(({ feedId }) => isMillisecondFeed(feedId));
  return found === undefined || picked.includes(found) ? picked : [...picked.slice(0, -1), found];
};

const rankOf = ({ status, marketHours }: CatalogEntry): number =>
  (status === 'live' ? 0 : 2) + (marketHours === '24/7' ? 0 : 1);
