// Exports the list of streams: loads the values that are not known or old, then makes the file. Loaded when the user exports.
import type { CatalogEntry } from '@sealpost/protocol';
import type { Explorer } from '../state/explorer.ts';
import { formatCount } from '../ui/format.ts';
import { readFirstMsOfMany } from '../ui/price/first-report.ts';
import { saveText, toCsv } from './csv.ts';

/** Longest wait for values. 2,000 streams take about 15 s within the rate limit. */
const waitMaxMs = 20_000;
/** What is left of it at least for the times at which changes start. */
const timesMinMs = 5_000;
const lookEveryMs = 100;

/** Downloads the streams, in this order. Returns what to tell the user. */
export async function exportStreams(
  streams: readonly CatalogEntry[],
  { session, live, days, clock }: Pick<Explorer, 'session' | 'live' | 'days' | 'clock'>,
  readable: ReadonlySet<string>,
): Promise<string> {
  const feedIds = streams.map(({ feedId }) => feedId).filter((feedId) => readable.has(feedId));
  live.load(feedIds);
  days.load(feedIds);
  const isLoaded = (feedId: string): boolean =>
    live.isCurrent(feedId) && (days.phaseOf(feedId).peek() === 'loaded' || !days.areSupported.peek());
  // A value that has come stays counted, though it grows old while others load.
  const waiting = new Set(feedIds);
  const look = (): number => {
    for (const feedId of waiting) if (isLoaded(feedId)) waiting.delete(feedId);
    return waiting.size;
  };
  const startedMs = performance.now();
  while (look() > 0 && performance.now() - startedMs < waitMaxMs)
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  const known = streams.map((stream) => ({
    stream,
    latest: readable.has(stream.feedId) ? live.latest(stream.feedId).peek() : undefined,
    day: days.of(stream.feedId).peek(),
  }));
  const starts = known.flatMap(({ stream: { feedId }, latest, day }) =>
    latest === undefined || day === undefined ? [] : [{ feedId, second: day.sinceMs / 1_000, open: day.first }],
  );
  const leftMs = Math.max(timesMinMs, waitMaxMs - (performance.now() - startedMs));
  const firstMs = await readFirstMsOfMany(session.client.peek(), starts, AbortSignal.timeout(leftMs));
  const rows = known.map((row) => ({ ...row, firstMs: firstMs.get(row.stream.feedId) }));
  const time = new Date(clock.nowMs.peek()).toISOString().slice(0, 19).replaceAll(':', '-');
  saveText(`sealpost-streams-${time}Z.csv`, toCsv(rows));
  for (const { feedId } of starts) if (!firstMs.has(feedId)) waiting.add(feedId);
  const missing = waiting.size;
  const exported = `Exported ${formatCount(rows.length)} ${rows.length === 1 ? 'stream' : 'streams'}.`;
  return missing === 0
    ? exported
    : `${exported} ${formatCount(missing)} did not load in time: their values are old or empty.`;
}
