// The cells of a catalog row that change live: price, age, and the countdown to a stream's end.
import type { CatalogEntry } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { Exact, Freshness, StatusPill } from '../ui/components.tsx';
import { marketStatusOf } from '../ui/market-status.ts';

type One = { readonly stream: CatalogEntry };

const noAccess = 'Your account does not include this stream. Ask the server’s operator for access.';

export const PriceCell = ({ stream: { feedId, quoteAsset }, isReadable }: One & { readonly isReadable: boolean }) => {
  const { live } = useExplorer();
  const report = live.latest(feedId).value;
  if (!isReadable)
    return (
      <span class="muted small" title={noAccess}>
        no access
      </span>
    );
  if (report === undefined) return <span class="muted">–</span>;
  return (
    <span title={`${report.decoded.priceText} ${quoteAsset}`}>
      <Exact value={report.decoded.price} />
    </span>
  );
};

export const AgeCell = ({ stream: { feedId } }: One) => {
  const { live, clock } = useExplorer();
  const report = live.latest(feedId).value;
  const intervalMs = live.intervalMs(feedId).value;
  if (report === undefined) return <span class="muted">–</span>;
  const { observationsMs, fields } = report.decoded;
  const isClosed = 'marketStatus' in fields && marketStatusOf(fields.version, fields.marketStatus).isOpen === false;
  return <Freshness ageMs={clock.nowMs.value - observationsMs} intervalMs={intervalMs} isClosed={isClosed} />;
};

/** A component of its own, because only a countdown needs the clock. */
export const StatusCell = ({ stream: { status, expectedDecommissionAt } }: One) => (
  <StatusPill status={status} expectedDecommissionAt={expectedDecommissionAt} nowMs={useExplorer().clock.nowMs.value} />
);
