// What is known about a closed market: since when, by its reports, and when it usually opens, by the catalog (D197).
import type { Client } from '@sealpost/client';
import type { CatalogEntry, ReportJson } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { readLiveReport } from '../state/live-prices.ts';
import { Time } from '../ui/components.tsx';
import { formatAge } from '../ui/format.ts';
import { useLoaded } from '../ui/loaded.ts';
import { usualHoursOf } from '../ui/price/market-hours.ts';
import { StreamStateMark } from '../ui/price/stream-state.tsx';
import { isMarketClosed } from '../ui/price-age.ts';

/** Seconds before the usual closing at which the search for the first closed report begins. */
const marginSeconds = 120;
const reportsMax = 400;

/** The first report of a closed market, in order of observation; undefined unless the one before it was of an open one. */
const findClosing = (reports: readonly ReportJson[]): number | undefined => {
  let wasOpen = false;
  for (const report of reports) {
    const decoded = readLiveReport(report)?.decoded;
    if (decoded === undefined) continue;
    const isClosed = isMarketClosed(decoded);
    if (isClosed && wasOpen) return decoded.observationsMs;
    wasOpen = !isClosed;
  }
  return undefined;
};

const readClosing = async (client: Client, feedId: string, closedMs: number, signal: AbortSignal) => {
  const start = Math.floor(closedMs / 1_000) - marginSeconds;
  const { reports } = await client.page(feedId, start, reportsMax, { signal });
  return findClosing(reports);
};

export function MarketClosed({ stream }: { readonly stream: CatalogEntry }) {
  const { clock, session } = useExplorer();
  const nowMs = clock.nowMs.value;
  const hours = usualHoursOf(stream, nowMs);
  const closedMs = hours === undefined || hours.isOpen ? undefined : hours.closedMs;
  const client = session.client.value;
  const [closing] = useLoaded(
    async (signal) => (closedMs === undefined ? undefined : readClosing(client, stream.feedId, closedMs, signal)),
    [client, stream.feedId, closedMs],
  );
  const sinceMs = closing.phase === 'ready' ? closing.value : undefined; // a failure is no news: the state is known without it
  return (
    <p class="stream-state">
      <StreamStateMark state="closed" />
      <span>
        {sinceMs !== undefined && (
          <>
            Closed since <Time ms={sinceMs} />.{' '}
          </>
        )}
        {hours === undefined ? (
          'When it opens is not known.'
        ) : hours.isOpen ? (
          'By its usual hours it would be open: a holiday or a halt.'
        ) : (
          <>
            Usually opens <Time ms={hours.opensMs} />, in {formatAge(hours.opensMs - nowMs)}
            <span class="muted"> (holidays aside)</span>.
          </>
        )}
      </span>
    </p>
  );
}
