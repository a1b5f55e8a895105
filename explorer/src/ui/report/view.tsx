// One report, read or pasted: price and validity, verdict, fields and bytes, verifier arguments, "Copy as".
import { timeResolutionOf } from '@sealpost/protocol';
import { useMemo } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { Copy, Exact, Pill } from '../components.tsx';
import { formatAge, formatCount, formatPrice } from '../format.ts';
import { marketStatusOf } from '../market-status.ts';
import { createByteLink } from './byte-link.ts';
import { checkingForms, readingForms } from './copy-as.ts';
import { ReportCopyAs } from './copy-as-box.tsx';
import { ReportDump } from './dump.tsx';
import { ReportFieldTable } from './field-table.tsx';
import { ReportPayload } from './payload.tsx';
import type { Claim } from './proof.ts';
import type { ReadReport } from './reading.ts';
import { ReportTime } from './report-time.tsx';
import { drawSpan, type SpanWindow } from './span.ts';
import { ReportVerdict } from './verdict.tsx';
import '../../styles/report.css';
import { Unit } from '../unit.tsx';

export type ReportAround = { readonly previous: SpanWindow | undefined; readonly next: SpanWindow | undefined };

type ViewProps = {
  readonly report: ReadReport;
  /** The fields of the response around it, to compare with what was signed. */
  readonly claim?: Claim | undefined;
  /** The requested second. */
  readonly asked?: number;
  readonly around?: ReportAround | undefined;
};

/** A report with its verdict. `asked` is set if the server has the report, so that "Copy as" can read it from there. */
export const ReportView = ({ report, claim, asked, around }: ViewProps) => {
  const link = useMemo(createByteLink, [report]);
  const { origin } = window.location;
  const forms =
    asked === undefined
      ? checkingForms(origin, report.fullReport)
      : readingForms(origin, report.feedId, report.decoded?.observationsTimestamp ?? asked);
  return (
    <div class="report">
      <div class="report-top">
        <PriceCard report={report} asked={asked} around={around} />
        <ReportVerdict report={report} claim={claim} link={link} />
      </div>
      <div class="report-middle">
        <ReportFieldTable report={report} link={link} />
        <ReportDump report={report} link={link} />
      </div>
      <div class="report-bottom">
        <ReportPayload fullReport={report.fullReport} />
        <ReportCopyAs title="Copy as" forms={forms} />
      </div>
    </div>
  );
};

type CardProps = Pick<ViewProps, 'report' | 'around'> & { readonly asked: number | undefined };

const PriceCard = ({ report, asked, around }: CardProps) => {
  const { decoded } = report;
  if (decoded === undefined)
    return (
      <section class="card price" aria-label="Price">
        <p class="price-text">No price</p>
        <p class="muted">
          This page cannot decode the report’s schema: {report.schema}. Its signatures can still be verified.
        </p>
      </section>
    );
  const { price, bid, ask, fields } = decoded;
  const market = 'marketStatus' in fields ? marketStatusOf(fields.version, fields.marketStatus) : undefined;
  return (
    <section class="card price" aria-label="Price">
      <div class="row">
        <p class="price-text">
          <Exact value={price} /> <Unit decoded={decoded} />
        </p>
        <Copy text={formatPrice(price).replaceAll(',', '')} label="Copy exact price" />
      </div>
      <dl class="price-sides">
        {bid !== undefined && <Side title="Bid" value={bid} />}
        {ask !== undefined && <Side title="Ask" value={ask} />}
        {market !== undefined && (
          <div>
            <dt>Market</dt>
            <dd>
              <Pill kind={market.isOpen === undefined ? 'neutral' : market.isOpen ? 'ok' : 'warn'}>{market.text}</Pill>
            </dd>
          </div>
        )}
      </dl>
      <Validity report={report} asked={asked} around={around} />
    </section>
  );
};

const Side = ({ title, value }: { readonly title: string; readonly value: bigint }) => (
  <div>
    <dt>{title}</dt>
    <dd>
      <Exact value={value} />
    </dd>
  </div>
);

/** The validity of the price, drawn between the adjacent reports. */
const Validity = ({ report: { decoded }, asked, around }: CardProps) => {
  const { clock } = useExplorer();
  if (decoded === undefined) return null;
  const { validFromMs, observationsMs, expiresAtMs, feedId } = decoded;
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
