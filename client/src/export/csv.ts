// Rows as CSV, and values as text, exactly: decimals are decimal text, times ISO 8601 in UTC.
import { formatDecimal } from '../decode.ts';
import type { ExportColumn, ExportRow, Value } from './columns.ts';

/** Turns rows into bytes; what it holds back comes with later rows, or at the end. */
export type Encoder<T extends Uint8Array | string = Uint8Array | string> = {
  readonly add: (rows: readonly ExportRow[]) => T;
  readonly end: () => T;
};

/** A time in microseconds as ISO 8601, with three digits after the second, or six. */
const formatMoment = (microseconds: bigint, isFine: boolean): string => {
  const iso = new Date(Number(microseconds / 1_000n)).toISOString();
  return isFine ? iso.replace('Z', `${microseconds % 1_000n}`.padStart(3, '0').concat('Z')) : iso;
};

/** A value as text, exactly. */
export function exportTextOf({ kind, isFine = false }: ExportColumn, value: string | number | bigint): string {
  if (kind === 'decimal') return formatDecimal(value as bigint); // by its kind
  if (kind === 'moment') return formatMoment(value as bigint, isFine); // by its kind
  return String(value);
}

/** Characters that make a spreadsheet take a text for a formula. */
const formula = /^[=+\-@\t\r]/;

/** A text by RFC 4180; one that a spreadsheet would run as a formula begins with an apostrophe. */
const quote = (raw: string): string => {
  const safe = formula.test(raw) ? `'${raw}` : raw;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

const cellOf = (column: ExportColumn, value: Value | undefined): string => {
  if (value === null || value === undefined) return '';
  return column.kind === 'text' ? quote(String(value)) : exportTextOf(column, value);
};

/** A header, then one line per report; empty cells are values that a report does not have. */
export function createCsv(columns: readonly ExportColumn[]): Encoder<string> {
  let header = `${columns.map(({ name }) => name).join(',')}\n`;
  const takeHeader = (): string => {
    const taken = header;
    header = '';
    return taken;
  };
  return {
    add: (rows) =>
      takeHeader() + rows.map((row) => `${columns.map((one, i) => cellOf(one, row[i])).join(',')}\n`).join(''),
    end: takeHeader,
  };
}
