// The list of streams as CSV, by RFC 4180, with exact values. Loaded when the user exports.

import { formatDecimal } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import { reportSchemas } from '@sealpost/protocol';
import type { Day } from '../state/days.ts';
import type { LiveReport } from '../state/live-prices.ts';
import { changeOf } from '../ui/price/change.ts';
import { spreadOf } from '../ui/price/spread.ts';

/** A row of the list with what is known of it. */
export type CsvRow = {
  readonly stream: CatalogEntry;
  readonly latest: LiveReport | undefined;
  readonly day: Day | undefined;
  /** When the first report of the day was observed. */
  readonly firstMs: number | undefined;
};

const isoOf = (ms: number | undefined): string => (ms === undefined ? '' : new Date(ms).toISOString());
const decimal = (value: bigint | undefined, decimals = 18): string =>
  value === undefined ? '' : formatDecimal(value, decimals);

/** An interest rate is a ratio, whatever the catalog's quote asset. */
const unitOf = ({ quoteAsset }: CatalogEntry, latest: LiveReport | undefined): string =>
  latest?.decoded !== undefined && reportSchemas[latest.decoded.version].headline.price === 'rate'
    ? 'ratio'
    : quoteAsset;

const changeIn = ({ latest, day }: CsvRow) =>
  latest?.decoded === undefined || day === undefined ? undefined : changeOf(day.first, latest.decoded.price);

/** The columns of the file. Times are in UTC; numbers have a point and no separators. */
const fileColumns: Readonly<Record<string, (row: CsvRow) => string>> = {
  feed_id: ({ stream }) => stream.feedId,
  name: ({ stream }) => stream.name,
  pair: ({ stream }) => `${stream.baseAsset}/${stream.quoteAsset}`,
  asset_name: ({ stream }) => stream.assetName,
  asset_class: ({ stream }) => stream.assetClass,
  feed_type: ({ stream }) => stream.feedType,
  attribute_type: ({ stream }) => stream.attributeType,
  schema: ({ stream }) => stream.schemaVersion,
  status: ({ stream }) => stream.status,
  price: ({ latest }) => decimal(latest?.decoded?.price),
  unit: ({ stream, latest }) => unitOf(stream, latest),
  bid: ({ latest }) => decimal(latest?.decoded?.bid),
  ask: ({ latest }) => decimal(latest?.decoded?.ask),
  spread_bps: ({ latest }) => decimal(spreadOf(latest?.decoded), 2),
  valid_from: ({ latest }) => isoOf(latest?.validFromMs),
  observed_at: ({ latest }) => isoOf(latest?.observationsMs),
  change: (row) => decimal(changeIn(row)?.difference),
  change_percent: (row) => decimal(changeIn(row)?.percent, 6),
  change_since: (row) => (changeIn(row) === undefined ? '' : isoOf(row.firstMs)),
};

const number = /^-?[0-9]+(\.[0-9]+)?$/;

/** A field: quoted if it must be. Spreadsheets run text that begins like a formula, so an apostrophe goes before it. */
const field = (text: string): string => {
  const safe = /^[=+\-@\t\r]/.test(text) && !number.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** A head line and a line for each stream; lines end with CR LF. */
export function toCsv(rows: readonly CsvRow[]): string {
  const fields = Object.values(fileColumns);
  const lines = [Object.keys(fileColumns), ...rows.map((row) => fields.map((read) => read(row)))];
  return lines.map((line) => `${line.map(field).join(',')}\r\n`).join('');
}

/** Lets the browser download a text as a file. */
export function saveText(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000); // some browsers read it after the click
}
