// Reports as a table, each with its permalink; all prices with the same digits.
import { useExplorer } from '../../state/explorer.ts';
import { reportHref } from '../../state/router.ts';
import type { TimeParts } from '../../state/settings/times.ts';
import { Exact } from '../../ui/components.tsx';
import { formatInterval } from '../../ui/format.ts';
import { widenDigits } from '../../ui/price/digits.ts';
import type { ListedSpan } from '../chart-spans.ts';

type TableProps = {
  readonly feedId: string;
  readonly spans: readonly ListedSpan[];
  /** Times on other days than this one have their date: `2026-11-15`, by default today. */
  readonly day?: string;
};

export function ReportTable({ feedId, spans, day }: TableProps) {
  const { times, live, clock } = useExplorer();
  const plainDay = day ?? times.split(clock.nowMs.peek()).day;
  const hasSides = spans.some(({ bid, ask }) => bid !== undefined && ask !== undefined);
  const prices = spans.flatMap(({ price, bid, ask }) => [price, bid, ask]).filter((value) => value !== undefined);
  const digits = widenDigits(live.digits(feedId).value, prices);
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
                  <ObservedTime parts={times.split(span.observedMs)} plainDay={plainDay} />
                </a>
              </td>
              <td class="number">{formatInterval(span.endMs - span.startMs)}</td>
              <td class="number">
                {span.price === undefined ? (
                  <span class="muted">not known</span>
                ) : (
                  <Exact value={span.price} digits={digits} />
                )}
              </td>
              {hasSides && (
                <>
                  <td class="number wide-only">
                    {span.bid !== undefined && <Exact value={span.bid} digits={digits} />}
                  </td>
                  <td class="number wide-only">
                    {span.ask !== undefined && <Exact value={span.ask} digits={digits} />}
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type ObservedProps = { readonly parts: TimeParts; readonly plainDay: string };

/** The time of an observation: `09:28:17 UTC`, or with its date if that is not plain. */
const ObservedTime = ({ parts: { day, clock, zone }, plainDay }: ObservedProps) => (
  <>
    {day !== plainDay && <span class="report-day">{day} </span>}
    <span class="report-clock">
      {clock} {zone}
    </span>
  </>
);
