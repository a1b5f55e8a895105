// What changes in a row of the catalog while one looks at it: price and age as they come in, and the time a stream has left.
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

/** A countdown needs the clock, and nothing else does. */
export const StatusCell = ({ stream: { status, expectedDecommissionAt } }: One) => (
  <StatusPill status={status} expectedDecommissionAt={expectedDecommissionAt} nowMs={useExplorer().clock.nowMs.value} />
);
