// Exports the list of streams: loads the values that are not known yet, then makes the file. Loaded when the user exports.
import type { CatalogEntry } from '@sealpost/protocol';
import type { Explorer } from '../state/explorer.ts';
import { formatCount } from '../ui/format.ts';
import { download, toCsv } from './csv.ts';

/** Longest wait for values. 2,000 streams take about 10 s within the rate limit. */
const waitMaxMs = 20_000;
const lookEveryMs = 100;

/** Downloads the streams, in this order. Returns what to tell the user. */
export const exportStreams = async (
  streams: readonly CatalogEntry[],
  { live, days, clock }: Pick<Explorer, 'live' | 'days' | 'clock'>,
  readable: ReadonlySet<string>,
): Promise<string> => {
  const feedIds = streams.map(({ feedId }) => feedId).filter((feedId) => readable.has(feedId));
  live.load(feedIds);
  days.load(feedIds);
  const isKnown = (feedId: string): boolean =>
    (live.latest(feedId).peek() !== undefined || live.isEmpty(feedId).peek()) &&
    (days.phaseOf(feedId).peek() === 'loaded' || !days.areSupported.peek());
  const startedMs = Date.now();
  while (!feedIds.every(isKnown) && Date.now() - startedMs < waitMaxMs)
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  const rows = streams.map((stream) => ({
    stream,
    latest: readable.has(stream.feedId) ? live.latest(stream.feedId).peek() : undefined,
    day: days.of(stream.feedId).peek(),
  }));
  const time = new Date(clock.nowMs.peek()).toISOString().slice(0, 19).replaceAll(':', '-');
  download(`sealpost-streams-${time}Z.csv`, toCsv(rows));
  const missing = feedIds.filter((feedId) => !isKnown(feedId)).length;
  const exported = `Exported ${formatCount(rows.length)} ${rows.length === 1 ? 'stream' : 'streams'}.`;
  return missing === 0 ? exported : `${exported} ${formatCount(missing)} values did not load in time and are empty.`;
};
