// The cells of a catalog row that change live: price, age, and the countdown to a stream's end.
import { useComputed } from '@preact/signals';
import type { DecodedReport } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { useExplorer } from '../state/explorer.ts';
import { Exact, Freshness, StatusPill } from '../ui/components.tsx';
import { StreamStateMark, streamStateOf } from '../ui/price/stream-state.tsx';
import { isMarketClosed, isOldPrice } from '../ui/price-age.ts';
import { unitTextOf } from '../ui/price-unit.ts';

type One = { readonly stream: CatalogEntry };

const noAccess = 'Your account does not include this stream. Ask the server’s operator for access.';

export const PriceCell = ({ stream, isReadable }: One & { readonly isReadable: boolean }) => {
  const { live } = useExplorer();
  const { feedId, quoteAsset } = stream;
  const decoded = live.latest(feedId).value?.decoded;
  if (!isReadable)
    return (
      <span class="muted small" title={noAccess}>
        no access
      </span>
    );
  const state = streamStateOf(stream, decoded, live.isEmpty(feedId).value);
  return (
    <span class="price-lines">
      {decoded === undefined ? (
        state === 'loading' && <span class="muted">–</span>
      ) : (
        <Muted
          feedId={feedId}
          title={`${decoded.priceText} ${unitTextOf(decoded.version, decoded.price, quoteAsset)}`}
          decoded={decoded}
          isEnded={state === 'ended'}
        >
          <Exact value={decoded.price} digits={live.digits(feedId).value} />
        </Muted>
      )}
      <StreamStateMark state={state} />
    </span>
  );
};

type MutedProps = {
  readonly feedId: string;
  readonly title: string;
  readonly decoded: DecodedReport;
  readonly isEnded: boolean;
  readonly children: ComponentChildren;
};

/** Mutes an old price. A component of its own, because only it needs the clock; it renders again when the price grows old. */
const Muted = ({ feedId, title, decoded, isEnded, children }: MutedProps) => {
  const { live, clock } = useExplorer();
  const isOld = useComputed(
    () =>
      isEnded ||
      (!(live.state.value === 'live' && isMarketClosed(decoded)) &&
        isOldPrice(clock.nowMs.value - decoded.observationsMs, live.intervalMs(feedId).value)),
  ).value;
  return (
    <span class={isOld ? 'is-old' : ''} title={title}>
      {children}
    </span>
  );
};

export const AgeCell = ({ stream: { feedId } }: One) => {
  const { live, clock } = useExplorer();
  const report = live.latest(feedId).value;
  const intervalMs = live.intervalMs(feedId).value;
  if (report === undefined) return <span class="muted">–</span>;
  const { decoded } = report;
  const ageMs = clock.nowMs.value - decoded.observationsMs;
  return <Freshness ageMs={ageMs} intervalMs={intervalMs} isClosed={isMarketClosed(decoded)} />;
};

/** A component of its own, because only a countdown needs the clock. */
export const StatusCell = ({ stream: { status, expectedDecommissionAt } }: One) => (
  <StatusPill status={status} expectedDecommissionAt={expectedDecommissionAt} nowMs={useExplorer().clock.nowMs.value} />
);
