// Rows as NDJSON. Every value is exact: decimals are decimal text, times ISO 8601 in UTC.
import { type Encoder, type ExportColumn, exportTextOf, type Value } from '@sealpost/client/export';
import { toJsonLine } from '../../formats.ts';

const jsonOf = (column: ExportColumn, value: Value | undefined): string | number | null => {
  if (value === null || value === undefined || typeof value === 'number') return value ?? null;
  return exportTextOf(column, value);
};

/** One JSON object per line; numbers above 2^53 and decimals are strings. */
export const createNdjson = (columns: readonly ExportColumn[]): Encoder => ({
  add: (rows) =>
    rows
      .map((row) => toJsonLine(Object.fromEntries(columns.map((one, i) => [one.name, jsonOf(one, row[i])]))))
      .join(''),
  end: () => '',
});
