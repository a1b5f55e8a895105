// The cells of a row that change live: price, change, trend, spread, age, and the countdown to a stream's end.
import { computed } from '@preact/signals';
import type { CatalogEntry } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { Exact, Freshness, StatusPill } from '../ui/components.tsx';
import { formatAge, formatPrice } from '../ui/format.ts';
import { changeOf, formatPercent } from '../ui/price/change.ts';
import { formatSpread, spreadOf } from '../ui/price/spread.ts';
import { StreamStateMark, streamStateOf } from '../ui/price/stream-state.tsx';
import { isMarketClosed, isMutedPrice } from '../ui/price-age.ts';
import { isRate, percentDecimals, unitTextOf } from '../ui/price-unit.ts';
import { Trend } from './trend.tsx';

type One = { readonly stream: CatalogEntry };

const noAccess = 'Your account does not include this stream. Ask the server’s operator for access.';

const Nothing = ({ title }: { readonly title?: string | undefined }) => (
  <span class="muted" {...(title === undefined ? {} : { title })}>
    –
  </span>
);

export function PriceCell({ stream, isReadable }: One & { readonly isReadable: boolean }) {
  const { live } = useExplorer();
  const { feedId, quoteAsset } = stream;
  const newest = live.latest(feedId).value;
  const decoded = newest?.decoded;
  const move = useMove(feedId, decoded?.price);
  if (!isReadable)
    return (
      <span class="muted small" title={noAccess}>
        no access
      </span>
    );
  const state = streamStateOf(stream, newest, live.isEmpty(feedId).value);
  return (
    <span class="price-lines">
      {decoded === undefined ? (
        state === 'loading' && <Nothing />
      ) : (
        <Muted
          feedId={feedId}
          title={`${decoded.priceText} ${unitTextOf(decoded.version, decoded.price, quoteAsset)}`}
          isEnded={state === 'ended'}
          move={move}
        >
          {isRate(decoded.version) ? (
            <>
              <Exact value={decoded.price} decimals={percentDecimals} /> %
            </>
          ) : (
            <Exact value={decoded.price} digits={live.digits(feedId).value} />
          )}
        </Muted>
      )}
      <StreamStateMark state={state} />
    </span>
  );
}

type Move = {
  readonly feedId: string;
  readonly price: bigint | undefined;
  readonly text: string;
  readonly parity: number;
};

/** Where the price went at its last change: `up-0`, `up-1`, `down-0` or `down-1`; the number changes so that the flash starts again. */
const useMove = (feedId: string, price: bigint | undefined): string => {
  const last = useRef<Move>({ feedId, price, text: '', parity: 0 });
  const { current } = last;
  if (current.feedId !== feedId || current.price === undefined || price === undefined)
    last.current = { feedId, price, text: '', parity: 0 }; // a row shows other streams over time
  else if (current.price !== price) {
    const parity = 1 - current.parity;
    last.current = { feedId, price, text: `${price > current.price ? 'up' : 'down'}-${parity}`, parity };
  }
  return last.current.text;
};

type MutedProps = {
  readonly feedId: string;
  readonly title: string;
  readonly isEnded: boolean;
  readonly move: string;
  readonly children: ComponentChildren;
};

/** Whether a stream's newest price is muted, and what is computed from it. The component renders again only when that changes, not with the clock. */
const useIsMuted = (feedId: string): boolean => {
  const { live, clock } = useExplorer();
  // Of this stream: a row shows other streams over time.
  return useMemo(
    () =>
      computed(() => {
        const decoded = live.latest(feedId).value?.decoded;
        if (decoded === undefined) return false;
        const ageMs = clock.nowMs.value - decoded.observationsMs;
        const isConnected = live.state.value === 'live';
        return isMutedPrice(ageMs, live.intervalMs(feedId).value, isConnected, isMarketClosed(decoded));
      }),
    [feedId],
  ).value;
};

const Muted = ({ feedId, title, isEnded, move, children }: MutedProps) => {
  const isOld = useIsMuted(feedId);
  return (
    <span class={isOld || isEnded ? 'price-now is-old' : `price-now ${move}`} title={title}>
      {children}
    </span>
  );
};

/** Instead of a day: why there is none. */
const NoDay = ({ feedId }: { readonly feedId: string }) => {
  const { days } = useExplorer();
  if (!days.areSupported.value) return <Nothing title="This server does not offer candles of many streams." />;
  const phase = days.phaseOf(feedId).value;
  if (phase !== 'failed') return <Nothing title={phase === 'loaded' ? 'No prices in the last 24 h.' : undefined} />;
  return (
    <span class="muted not-loaded" role="img" aria-label="Not loaded" title="Could not be loaded. Retrying every 15 s.">
      ↻
    </span>
  );
};

/** The change since 24 h ago, or since the first report after it. */
export function ChangeCell({ stream: { feedId, status } }: One) {
  const { live, days, times } = useExplorer();
  const isMuted = useIsMuted(feedId) || status === 'decommissioned';
  const price = live.latest(feedId).value?.decoded?.price;
  const day = days.of(feedId).value;
  if (day === undefined) return <NoDay feedId={feedId} />;
  if (price === undefined) return <Nothing />;
  const { difference, percent } = changeOf(day.first, price);
  const kind = isMuted || difference === 0n ? 'muted' : difference > 0n ? 'ok' : 'bad';
  const exact = `${difference > 0n ? '+' : ''}${formatPrice(difference).replace('-', '−')}`;
  // Candles of an hour do not say when in it the first report was.
  const since = day.isToTheMinute ? 'since' : 'since the first report after';
  return (
    <span class="change-lines" title={`${exact} ${since} ${times.format(day.sinceMs)}`}>
      <span class={kind}>{percent === undefined ? exact : formatPercent(percent, difference)}</span>
      {!day.isWhole && (
        <span class="muted small">
          {day.isToTheMinute ? 'since' : 'after'} {times.split(day.sinceMs).clock.slice(0, 5)}
        </span>
      )}
    </span>
  );
}

export function TrendCell({ stream: { feedId, status } }: One) {
  const { days, live } = useExplorer();
  const isMuted = useIsMuted(feedId) || status === 'decommissioned';
  const day = days.of(feedId).value;
  if (day === undefined) return <NoDay feedId={feedId} />;
  return <Trend day={day} digits={live.digits(feedId).value} isMuted={isMuted} />;
}

export function SpreadCell({ stream: { feedId, status } }: One) {
  const { live } = useExplorer();
  const isMuted = useIsMuted(feedId) || status === 'decommissioned';
  const decoded = live.latest(feedId).value?.decoded;
  const spread = spreadOf(decoded);
  if (decoded?.bid === undefined || decoded.ask === undefined || spread === undefined)
    return <Nothing title={decoded === undefined ? undefined : 'Reports of this stream have no bid and ask.'} />;
  const { bid, ask } = decoded;
  return (
    <span class={isMuted ? 'spread is-old' : 'spread'} title={`Bid ${formatPrice(bid)}, ask ${formatPrice(ask)}`}>
      {formatSpread(spread, ask === bid)}
    </span>
  );
}

export function AgeCell({ stream: { feedId, status } }: One) {
  const { live, clock } = useExplorer();
  const report = live.latest(feedId).value;
  const intervalMs = live.intervalMs(feedId).value;
  if (report === undefined) return <Nothing />;
  const { decoded, observationsMs } = report;
  const ageMs = clock.nowMs.value - observationsMs;
  if (status === 'decommissioned') return <span class="muted">{formatAge(ageMs)}</span>;
  const isClosed = decoded !== undefined && isMarketClosed(decoded);
  return <Freshness ageMs={ageMs} intervalMs={intervalMs} isClosed={isClosed} isShort />;
}

/** A component of its own, because only a countdown needs the clock. */
export const StatusCell = ({ stream: { status, expectedDecommissionAt } }: One) => (
  <StatusPill status={status} expectedDecommissionAt={expectedDecommissionAt} nowMs={useExplorer().clock.nowMs.value} />
);
