// The tables below the chart, with the values that the canvas draws: the recent reports, each with its permalink, and the candles.
import type { Candle } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { reportHref } from '../state/router.ts';
import type { Times } from '../state/settings/times.ts';
import { Exact, Time } from '../ui/components.tsx';
import { formatInterval, formatPrice } from '../ui/format.ts';
import { type Span, spanOf } from './chart-spans.ts';

const reportsShown = 12;

export const StreamReports = ({
  feedId,
  status,
  spans,
  candles,
}: {
  readonly feedId: string;
  readonly status: CatalogEntry['status'];
  readonly spans: readonly Span[];
  readonly candles: readonly Candle[] | undefined;
}) => {
  const { live } = useExplorer();
  const newest = live.latest(feedId).value;
  const known = spans.length > 0 || newest === undefined ? spans : [spanOf(newest.decoded)];
  const shown = known.slice(-reportsShown).reverse();
  return (
    <section class="card stack" aria-labelledby="reports-title">
      <h2 id="reports-title">Recent reports</h2>
      {shown.length === 0 ? (
        <p class="muted">
          {status === 'decommissioned'
            ? 'This stream is decommissioned. None of its reports are left.'
            : 'No reports yet. New ones appear here.'}
        </p>
      ) : (
        <ReportTable feedId={feedId} spans={shown} />
      )}
      {candles !== undefined && candles.length > 0 && (
        <details>
          <summary>Chart candles as a table</summary>
          <CandleTable candles={candles} />
        </details>
      )}
    </section>
  );
};

const ReportTable = ({ feedId, spans }: { readonly feedId: string; readonly spans: readonly Span[] }) => {
  const { times } = useExplorer();
  const hasSides = spans.some(({ bid, ask }) => bid !== undefined && ask !== undefined);
  const digits = digitsOf(spans.flatMap(({ price, bid, ask }) => [price, bid, ask]));
  return (
    <div class="table-scroll">
      <table class="small report-table">
        <thead>
          <tr>
            <th scope="col">Observed</th>
            <th scope="col" class="number">
              Valid for
            </th>
            <th scope="col" class="number">
              Price
            </th>
            {hasSides && (
              <>
                <th scope="col" class="number wide-only">
                  Bid
                </th>
                <th scope="col" class="number wide-only">
                  Ask
                </th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {spans.map((span) => (
            <tr key={span.endMs}>
              <td>
                <a href={reportHref(feedId, span.timestamp)} title={times.formatOther(span.observedMs)}>
                  {timeOf(span, times)}
                </a>
              </td>
              <td class="number">{formatInterval(span.endMs - span.startMs)}</td>
              <td class="number">
                <Aligned value={span.price} digits={digits} />
              </td>
              {hasSides && (
                <>
                  <td class="number wide-only">
                    {span.bid !== undefined && <Aligned value={span.bid} digits={digits} />}
                  </td>
                  <td class="number wide-only">
                    {span.ask !== undefined && <Aligned value={span.ask} digits={digits} />}
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};

/** Aligns the decimal points of a column: missing digits are filled with blanks of the same width. */
const Aligned = ({ value, digits }: { readonly value: bigint; readonly digits: number }) => {
  const lacking = digits - fractionDigits(value);
  return (
    <>
      <Exact value={value} />
      {lacking > 0 && (
        <span aria-hidden="true">{`${lacking === digits ? '\u2008' : ''}${'\u2007'.repeat(lacking)}`}</span>
      )}
    </>
  );
};

const fractionDigits = (value: bigint): number => formatPrice(value).split('.')[1]?.length ?? 0;

const digitsOf = (values: readonly (bigint | undefined)[]): number =>
  Math.max(0, ...values.map((value) => (value === undefined ? 0 : fractionDigits(value))));

/** The time of day of the observation: `09:28:17 UTC`. */
const timeOf = ({ observedMs }: Span, times: Times): string => {
  const { clock, zone } = times.split(observedMs);
  return `${clock} ${zone}`;
};

const CandleTable = ({ candles }: { readonly candles: readonly Candle[] }) => {
  const digits = digitsOf(candles.flatMap(({ open, high, low, close }) => [open, high, low, close]));
  return (
    <div class="table-scroll candle-table">
      <table class="small">
        <thead>
          <tr>
            <th scope="col">From</th>
            {['Open', 'High', 'Low', 'Close'].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {candles.toReversed().map(({ timestamp, open, high, low, close }) => (
            <tr key={timestamp}>
              <td>
                <Time ms={timestamp * 1_000} />
              </td>
              {[open, high, low, close].map((value, i) => (
                <td key={['open', 'high', 'low', 'close'][i]} class="number">
                  <Aligned value={value} digits={digits} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};
