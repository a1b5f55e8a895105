// Owns how a report reads on a terminal: one line with time, name, price, bid and ask where there are, and signatures.
import { decodeFullReport, decodeReportBody, type ReportJson, reportSchemas } from '@sealpost/protocol';
import { priceScale } from './market/prices.ts';

/** A price with 18 decimals as text, without the zeros at its end. */
export const formatPrice = (price: bigint): string => {
  const sign = price < 0n ? '-' : '';
  const digits = price < 0n ? -price : price;
  const decimals = `${digits % priceScale}`.padStart(18, '0').replace(/0+$/, '');
  return `${sign}${digits / priceScale}${decimals === '' ? '' : `.${decimals}`}`;
};

/** The line of a report; `name` is its stream's. */
export const renderReport = (report: ReportJson, name: string, nameWidth: number): string => {
  const { body: encoded, signatures } = decodeFullReport(report.fullReport);
  const body = decodeReportBody(encoded);
  const values = new Map(Object.entries(body));
  const headline: { price: string; bid?: string; ask?: string } = reportSchemas[body.version].headline;
  const show = (label: string, field: string | undefined) =>
    field === undefined ? '' : `  ${label} ${formatPrice(BigInt(values.get(field) ?? 0))}`;
  const time = new Date(report.observationsTimestamp * 1_000).toISOString().slice(11, 19);
  const prices = `${show(headline.price, headline.price)}${show('bid', headline.bid)}${show('ask', headline.ask)}`;
  return `${time}  ${name.padEnd(nameWidth)}${prices}  ${signatures.length} signatures`;
};
