// The current price of a stream, exactly, with bid, ask, age and market status.
import type { DecodedReport } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { useExplorer } from '../state/explorer.ts';
import type { LiveReport } from '../state/live-prices.ts';
import { reportHref } from '../state/router.ts';
import { Exact, Freshness, Loading, Pill, Time, useTitle } from '../ui/components.tsx';
import { formatAge, formatPrice, splitPrice } from '../ui/format.ts';
import { intervalMsOf } from '../ui/interval.ts';
import { liveTexts } from '../ui/live-texts.ts';
import { useLoaded } from '../ui/loaded.ts';
import { marketStatusOf } from '../ui/market-status.ts';
import { changeOf, formatPercent } from '../ui/price/change.ts';
import { readFirstMs } from '../ui/price/first-report.ts';
import { StreamStateMark, streamStateOf } from '../ui/price/stream-state.tsx';
import { unknownFieldsText } from '../ui/price/unknown-fields.ts';
import { describeOldPrice, isMarketClosed } from '../ui/price-age.ts';
import { unitTextOf } from '../ui/price-unit.ts';
import type { RangeStart, ViewedChange } from './chart/viewed.ts';
import { MarketClosed } from './market-closed.tsx';

/** The state of the live connection; screen readers announce changes. */
export function LivePill() {
  const { live } = useExplorer();
  const [kind, text] = liveTexts[live.state.value];
  const title =
    live.state.value === 'reconnecting' ? 'Connection lost. Missed reports are loaded after reconnecting.' : undefined;
  return (
    <span role="status" class={`live-pill ${live.state.value}`}>
      <Pill kind={kind} {...(title === undefined ? {} : { title })}>
        {text}
      </Pill>
    </span>
  );
}

type StreamPriceProps = {
  readonly stream: CatalogEntry;
  /** The change in the chart's range; undefined if not known. */
  readonly change: ViewedChange | undefined;
};

export function StreamPrice({ stream, change }: StreamPriceProps) {
  const { live, clock } = useExplorer();
  const newest = live.latest(stream.feedId).value;
  const decoded = newest?.decoded;
  const pair = `${stream.baseAsset}/${stream.quoteAsset}`;
  useTitle(decoded === undefined ? pair : `${splitPrice(decoded.price).head} ${pair}`);
  if (newest === undefined) return <NoPrice stream={stream} />;
  if (decoded === undefined) return <UnknownFields newest={newest} />;
  const nowMs = clock.nowMs.value;
  const intervalMs = live.intervalMs(stream.feedId).value ?? intervalMsOf([decoded]);
  const isConnected = live.state.value === 'live';
  const state = streamStateOf(stream, newest, false);
  const ageMs = nowMs - decoded.observationsMs;
  const old = describeOldPrice(ageMs, intervalMs, isConnected, state === 'closed');
  const digits = live.digits(stream.feedId).value;
  return (
    <div class="stream-price">
      <p class={`stream-price-figure ${old === undefined ? '' : 'is-old'}`}>
        <Exact value={decoded.price} digits={digits} />{' '}
        <span class="muted stream-price-unit">{unitTextOf(decoded.version, decoded.price, stream.quoteAsset)}</span>
      </p>
      {state === 'closed' && <MarketClosed stream={stream} />}
      {state === 'ended' && <Ended stream={stream} ageMs={ageMs} />}
      {old !== undefined && (state === 'open' || !isConnected) && (
        <p class="stream-price-old">
          <Pill kind="warn">{old}</Pill>
        </p>
      )}
      {change !== undefined && (
        <Change feedId={stream.feedId} change={change} price={decoded.price} isOld={old !== undefined} />
      )}
      <PriceFacts decoded={decoded} nowMs={nowMs} isEnded={state === 'ended'} isOld={old !== undefined} />
    </div>
  );
}

const Ended = ({ stream, ageMs }: { readonly stream: CatalogEntry; readonly ageMs: number }) => (
  <p class="stream-state">
    <StreamStateMark state="ended" />
    <span>
      {stream.decommissionedAt !== null && (
        <>
          Decommissioned <Time ms={Date.parse(stream.decommissionedAt)} />.{' '}
        </>
      )}
      The last price is {formatAge(ageMs)} old.
    </span>
  </p>
);

/** Instead of a price: why there is none, and the signed report. */
const UnknownFields = ({ newest: { feedId, report, observationsMs } }: { readonly newest: LiveReport }) => (
  <div class="stream-price">
    <p class="stream-state">
      <StreamStateMark state="unknown" />
      <span>
        The fields of the newest report are not known, and so not its price: {unknownFieldsText(feedId)}. The report is
        delivered as it was signed.
      </span>
    </p>
    <p class="row">
      <a class="button" href={reportHref(feedId, report.observationsTimestamp)}>
        Open the signed report
      </a>
      <span class="muted">
        Observed <Time ms={observationsMs} />
      </span>
    </p>
  </div>
);

const NoPrice = ({ stream }: { readonly stream: CatalogEntry }) => {
  const { live } = useExplorer();
  const state = streamStateOf(stream, undefined, live.isEmpty(stream.feedId).value);
  if (state === 'loading' || (state === 'ended' && live.state.value !== 'live'))
    return <Loading label="Waiting for the price" lines={2} />;
  return (
    <p class="stream-state">
      <StreamStateMark state={state} />
      <span>
        {state === 'ended'
          ? 'This stream is decommissioned. None of its reports are left.'
          : 'This stream has not had a report yet. The first one appears here.'}
      </span>
    </p>
  );
};

type ChangeProps = {
  readonly feedId: string;
  readonly change: ViewedChange;
  readonly price: bigint;
  readonly isOld: boolean;
};

const Change = ({ feedId, change: { start, endPrice, words }, price, isOld }: ChangeProps) => {
  const { difference, percent } = changeOf(start.price, endPrice ?? price);
  const kind = isOld ? 'muted' : difference > 0n ? 'ok' : difference < 0n ? 'bad' : 'muted';
  return (
    <p class="stream-price-change">
      <span class={kind}>
        {difference > 0n ? '+' : ''}
        {formatPrice(difference).replace('-', '−')}
        {percent !== undefined && ` (${formatPercent(percent, difference)})`}
      </span>{' '}
      <span class="muted">
        {start.isWhole || endPrice !== undefined ? (
          words
        ) : start.isExact ? (
          <Since ms={start.second * 1_000} />
        ) : (
          <SinceFirst feedId={feedId} start={start} />
        )}
      </span>
    </p>
  );
};

const Since = ({ ms }: { readonly ms: number }) => (
  <>
    since <Time ms={ms} />
  </>
);

/** Since the first report of a candle; until that is known, after the candle's start. */
const SinceFirst = ({ feedId, start }: { readonly feedId: string; readonly start: RangeStart }) => {
  const { session } = useExplorer();
  const client = session.client.value;
  const { second, price } = start;
  const [first] = useLoaded(
    (signal) => readFirstMs(client, { feedId, second, open: price }, signal),
    [client, feedId, second, price],
  );
  if (first.phase === 'ready' && first.value !== undefined) return <Since ms={first.value} />;
  return (
    <>
      after <Time ms={second * 1_000} />
    </>
  );
};

const marketOf = ({ fields, version }: DecodedReport): string | undefined =>
  'marketStatus' in fields ? marketStatusOf(version, fields.marketStatus).text : undefined;

const PriceFacts = ({
  decoded,
  nowMs,
  isEnded,
  isOld,
}: {
  readonly decoded: DecodedReport;
  readonly nowMs: number;
  readonly isEnded: boolean;
  readonly isOld: boolean;
}) => {
  const { live } = useExplorer();
  const digits = live.digits(decoded.feedId).value;
  const { bid, ask, expiresAtMs, observationsMs } = decoded;
  const market = marketOf(decoded);
  const interval = live.intervalMs(decoded.feedId).value ?? intervalMsOf([decoded]);
  return (
    <dl class="stream-figures">
      {bid !== undefined && (
        <Figure name="Bid" isOld={isOld}>
          <Exact value={bid} digits={digits} />
        </Figure>
      )}
      {ask !== undefined && (
        <Figure name="Ask" isOld={isOld}>
          <Exact value={ask} digits={digits} />
        </Figure>
      )}
      {bid !== undefined && ask !== undefined && (
        <Figure name="Spread" isOld={isOld}>
          <Exact value={ask - bid} digits={digits} />
        </Figure>
      )}
      {market !== undefined && <Figure name="Market">{market}</Figure>}
      <Figure name="Observed">
        <Time ms={observationsMs} />
      </Figure>
      <Figure name="Age">
        <Freshness ageMs={nowMs - observationsMs} intervalMs={interval} isClosed={isEnded || isMarketClosed(decoded)} />
      </Figure>
      {expiresAtMs !== undefined && (
        <Figure name="Expires">
          {expiresAtMs > nowMs ? `in ${formatAge(expiresAtMs - nowMs)}` : `${formatAge(nowMs - expiresAtMs)} ago`}
        </Figure>
      )}
    </dl>
  );
};

type FigureProps = { readonly name: string; readonly isOld?: boolean; readonly children: ComponentChildren };

const Figure = ({ name, isOld = false, children }: FigureProps) => (
  <div>
    <dt>{name}</dt>
    <dd class={isOld ? 'is-old' : ''}>{children}</dd>
  </div>
);
