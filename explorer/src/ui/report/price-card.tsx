// The price of a report and the time for which it is valid, drawn between the adjacent reports.
import { timeResolutionOf } from '@sealpost/protocol';
import { useExplorer } from '../../state/explorer.ts';
import { Copy, Exact, Pill } from '../components.tsx';
import { formatAge, formatCount, formatPrice } from '../format.ts';
import { marketStatusOf } from '../market-status.ts';
import type { PriceDigits } from '../price/digits.ts';
import { useReportDigits } from '../price/report-digits.ts';
import { unknownFieldsText } from '../price/unknown-fields.ts';
import { Unit } from '../unit.tsx';
import type { ReportReading } from './reading.ts';
import type { VerdictState } from './report-check.ts';
import { ReportTime } from './report-time.tsx';
import { drawSpan, type SpanWindow } from './span-bar.ts';
import { TrustPill } from './verdict.tsx';

export type ReportAround = { readonly previous: SpanWindow | undefined; readonly next: SpanWindow | undefined };

type ValidityProps = {
  readonly report: ReportReading;
  /** The requested second. */
  readonly asked: number | undefined;
  readonly around: ReportAround | undefined;
};

type CardProps = ValidityProps & {
  readonly state: VerdictState;
  readonly isExample: boolean;
};

/** The price is gray until it is verified, and crossed out if it is not. */
export function ReportPrice({ report, asked, around, state, isExample }: CardProps) {
  const { decoded } = report;
  const digits = useReportDigits(report, state);
  if (decoded === undefined)
    return (
      <section class="card price" aria-label="Price">
        <p class="price-text">No price</p>
        <p class="muted">The fields of the report are not known: {unknownFieldsText(report.feedId)}.</p>
        <p>
          <Copy text={report.fullReport} label="Copy the signed report">
            Copy the signed report
          </Copy>
        </p>
        <Validity report={report} asked={asked} around={around} />
      </section>
    );
  const { price, bid, ask, fields } = decoded;
  const market = 'marketStatus' in fields ? marketStatusOf(fields.version, fields.marketStatus) : undefined;
  return (
    <section class={`card price ${isExample ? 'example' : ''}`} aria-label="Price" data-state={state}>
      <div class="row">
        <p class="price-text">
          {state === 'refused' ? (
            <s>
              <Exact value={price} digits={digits} />
            </s>
          ) : (
            <Exact value={price} digits={digits} />
          )}{' '}
          <Unit decoded={decoded} />
        </p>
        {state === 'verified' && <Copy text={formatPrice(price).replaceAll(',', '')} label="Copy exact price" />}
        <TrustPill state={state} isExample={isExample} />
      </div>
      <dl class="price-sides">
        {bid !== undefined && <Side title="Bid" value={bid} digits={digits} />}
        {ask !== undefined && <Side title="Ask" value={ask} digits={digits} />}
        {market !== undefined && (
          <div>
            <dt>Market</dt>
            <dd>
              <Pill
                kind={market.isOpen === undefined || state !== 'verified' ? 'neutral' : market.isOpen ? 'ok' : 'warn'}
              >
                {market.text}
              </Pill>
            </dd>
          </div>
        )}
      </dl>
      <Validity report={report} asked={asked} around={around} />
    </section>
  );
}

type SideProps = { readonly title: string; readonly value: bigint; readonly digits: PriceDigits | undefined };

const Side = ({ title, value, digits }: SideProps) => (
  <div>
    <dt>{title}</dt>
    <dd>
      <Exact value={value} digits={digits} />
    </dd>
  </div>
);

/** The validity of the report, drawn between the adjacent ones. */
const Validity = ({ report: { window, feedId }, asked, around }: ValidityProps) => {
  const { clock } = useExplorer();
  if (window === undefined) return null;
  const { validFromMs, observationsMs, expiresAtMs } = window;
  const unitMs = timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000;
  const own = { fromMs: validFromMs, toMs: observationsMs };
  const askedMs = asked === undefined ? undefined : asked * 1_000;
  const bar = drawSpan(own, around?.previous, around?.next, unitMs, askedMs);
  const lengthMs = observationsMs + unitMs - validFromMs;
  const length = lengthMs < 1_000 ? `${formatCount(lengthMs)} ms` : formatAge(lengthMs);
  const isExpired = expiresAtMs !== undefined && expiresAtMs < clock.nowMs.value;
  return (
    <div class="span">
      <p>
        Valid for <strong>{length}</strong>, both ends included:
      </p>
      <div class="span-bar" aria-hidden="true">
        {bar.parts.map(({ kind, begin, width }) => (
          <span key={begin} class={`span-part ${kind}`} style={{ left: `${begin}%`, width: `${width}%` }} />
        ))}
        {bar.marker !== undefined && lengthMs > unitMs && (
          <span class="span-marker" style={{ left: `${bar.marker}%` }} />
        )}
      </div>
      <dl class="facts small">
        {askedMs !== undefined && lengthMs > unitMs && (
          <>
            <dt>Requested</dt>
            <dd>
              <ReportTime ms={askedMs} />
            </dd>
          </>
        )}
        <dt>Valid from</dt>
        <dd>
          <ReportTime ms={validFromMs} />
        </dd>
        <dt>Valid to</dt>
        <dd>
          <ReportTime ms={observationsMs} />
        </dd>
        {expiresAtMs !== undefined && (
          <>
            <dt>{isExpired ? 'Expired' : 'Expires'}</dt>
            <dd>
              <ReportTime ms={expiresAtMs} />
              {isExpired && <span class="warn">Contracts reject it now.</span>}
            </dd>
          </>
        )}
      </dl>
    </div>
  );
};
