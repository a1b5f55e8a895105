// Rows as text: NDJSON and CSV. Every value is exact: decimals are decimal text, times ISO 8601 in UTC.
import { formatDecimal } from '@sealpost/client';
import { toJsonLine } from '../../formats.ts';
import type { ExportColumn, ExportRow, Value } from './columns.ts';

/** Turns rows into bytes; what it holds back comes with later rows, or at the end. */
export type Encoder = {
  readonly add: (rows: readonly ExportRow[]) => Uint8Array | string;
  readonly end: () => Uint8Array | string;
};

/** A time in microseconds as ISO 8601, with three digits after the second, or six. */
const formatMoment = (microseconds: bigint, isFine: boolean): string => {
  const iso = new Date(Number(microseconds / 1_000n)).toISOString();
  return isFine ? iso.replace('Z', `${microseconds % 1_000n}`.padStart(3, '0').concat('Z')) : iso;
};

const textOf = ({ kind, isFine = false }: ExportColumn, value: string | number | bigint): string => {
  if (kind === 'decimal') return formatDecimal(value as bigint); // by its kind
  if (kind === 'moment') return formatMoment(value as bigint, isFine); // by its kind
  return String(value);
};

const jsonOf = (column: ExportColumn, value: Value | undefined): string | number | null => {
  if (value === null || value === undefined || typeof value === 'number') return value ?? null;
  return textOf(column, value);
};

/** One JSON object per line; numbers above 2^53 and decimals are strings. */
export const createNdjson = (columns: readonly ExportColumn[]): Encoder => ({
  add: (rows) =>
    rows
      .map((row) => toJsonLine(Object.fromEntries(columns.map((one, i) => [one.name, jsonOf(one, row[i])]))))
      .join(''),
  end: () => '',
});

/** Characters that make a spreadsheet take a text for a formula. */
const formula = /^[=+\-@\t\r]/;

/** A text by RFC 4180; one that a spreadsheet would run as a formula begins with an apostrophe. */
const quote = (raw: string): string => {
  const safe = formula.test(raw) ? `'${raw}` : raw;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

const cellOf = (column: ExportColumn, value: Value | undefined): string => {
  if (value === null || value === undefined) return '';
  return column.kind === 'text' ? quote(String(value)) : textOf(column, value);
};

/** A header, then one line per report; empty cells are values that a report does not have. */
export const createCsv = (columns: readonly ExportColumn[]): Encoder => {
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
};
