// A live report as one line for a terminal: time, name, price, bid and ask if it has them, signatures.
import { formatDecimal } from '@sealpost/client';
import { decodeFullReport, decodeReportBody, type ReportJson, reportSchemas } from '@sealpost/protocol';

/** The line of a report; `name` is its stream's. */
export const renderLiveReport = (report: ReportJson, name: string, nameWidth: number): string => {
  const { body: encoded, signatures } = decodeFullReport(report.fullReport);
  const body = decodeReportBody(encoded);
  const values = new Map(Object.entries(body));
  const headline: { price: string; bid?: string; ask?: string } = reportSchemas[body.version].headline;
  const show = (label: string, field: string | undefined) =>
    field === undefined ? '' : `  ${label} ${formatDecimal(BigInt(values.get(field) ?? 0))}`;
  const time = new Date(report.observationsTimestamp * 1_000).toISOString().slice(11, 19);
  const prices = `${show(headline.price, headline.price)}${show('bid', headline.bid)}${show('ask', headline.ask)}`;
  return `${time}  ${name.padEnd(nameWidth)}${prices}  ${signatures.length} signatures`;
};
