// The card below the chart: the newest reports, or those of a day; and the candles that the chart draws.
import type { Candle } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import { useExplorer } from '../../state/explorer.ts';
import { Exact, Time } from '../../ui/components.tsx';
import { widenDigits } from '../../ui/price/digits.ts';
import { type ListedSpan, spanOf } from '../chart-spans.ts';
import { parseDayStart, readDayChoice, toDayText, writeDayChoice } from './day-address.ts';
import { DayReports } from './day-reports.tsx';
import { ReportTable } from './report-table.tsx';

const reportsMax = 12;

type ReportsProps = {
  readonly feedId: string;
  readonly status: CatalogEntry['status'];
  readonly spans: readonly ListedSpan[];
  readonly candles: readonly Candle[] | undefined;
};

export function StreamReports({ feedId, status, spans, candles }: ReportsProps) {
  const { router, clock } = useExplorer();
  const choice = readDayChoice(router.address.value.query);
  const show = (isByDay: boolean): void => {
    const today = parseDayStart(toDayText(Math.floor(clock.nowMs.peek() / 1_000))) ?? 0;
    const next = isByDay ? ({ day: today, order: 'newest', edge: undefined } as const) : undefined;
    router.pushQuery(writeDayChoice(router.address.peek().query, next));
  };
  return (
    <section class="card stack" aria-labelledby="reports-title">
      <div class="row">
        <h2 id="reports-title">{choice === undefined ? 'Recent reports' : 'Reports by date'}</h2>
        <fieldset class="button-group" aria-label="Which reports">
          <button type="button" aria-pressed={choice === undefined} onClick={() => choice !== undefined && show(false)}>
            Recent
          </button>
          <button type="button" aria-pressed={choice !== undefined} onClick={() => choice === undefined && show(true)}>
            By date
          </button>
        </fieldset>
      </div>
      {choice === undefined ? (
        <RecentReports feedId={feedId} status={status} spans={spans} />
      ) : (
        <DayReports feedId={feedId} choice={choice} />
      )}
      {candles !== undefined && candles.length > 0 && (
        <details>
          <summary>Chart candles as a table</summary>
          <CandleTable candles={candles} />
        </details>
      )}
    </section>
  );
}

const RecentReports = ({ feedId, status, spans }: Omit<ReportsProps, 'candles'>) => {
  const { live } = useExplorer();
  const newest = live.latest(feedId).value;
  const known = spans.length > 0 || newest === undefined ? spans : [spanOf(newest)];
  const shown = known.slice(-reportsMax).reverse();
  if (shown.length > 0) return <ReportTable feedId={feedId} spans={shown} />;
  return (
    <p class="muted">
      {status === 'decommissioned'
        ? 'This stream is decommissioned. None of its reports are left.'
        : 'No reports yet. New ones appear here.'}
    </p>
  );
};

const candleFields = ['Open', 'High', 'Low', 'Close'] as const;

const CandleTable = ({ candles }: { readonly candles: readonly Candle[] }) => {
  const digits = widenDigits(
    undefined,
    candles.flatMap(({ open, high, low, close }) => [open, high, low, close]),
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <section class="table-scroll candle-table" aria-label="Chart candles" tabIndex={0}>
      <table class="small">
        <thead>
          <tr>
            <th scope="col">From</th>
            {candleFields.map((field) => (
              <th key={field} scope="col" class="number">
                {field}
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
                <td key={candleFields[i]} class="number" data-field={candleFields[i]}>
                  <Exact value={value} digits={digits} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};
