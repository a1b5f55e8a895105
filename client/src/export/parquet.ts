// Rows as Parquet: decimals are DECIMAL(38,18), times TIMESTAMP in microseconds and UTC. Rows are written in groups, so that a file of any size
// needs the memory of one (D186). The library is passed in, so that programs without Parquet do not install it.
import type { ColumnKind, ExportColumn, ExportRow, Value } from './columns.ts';
import type { Encoder } from './csv.ts';

type SchemaElement = {
  readonly name: string;
  readonly type?: 'BYTE_ARRAY' | 'INT64' | 'FIXED_LEN_BYTE_ARRAY';
  readonly converted_type?: 'UTF8' | 'UINT_64' | 'DECIMAL';
  readonly logical_type?: { readonly type: 'TIMESTAMP'; readonly isAdjustedToUTC: boolean; readonly unit: 'MICROS' };
  readonly repetition_type?: 'OPTIONAL';
  readonly num_children?: number;
  readonly type_length?: number;
  readonly precision?: number;
  readonly scale?: number;
};

type ColumnSource = { readonly name: string; readonly data: Value[] };

type ByteBuffer = { index: number; getBytes(): Uint8Array };

type ParquetFile = {
  write(rows: { columnData: ColumnSource[]; rowGroupSize: number }): void;
  finish(): void;
};

/** The parts of the package `hyparquet-writer` that write a file. */
export type ParquetLibrary<B extends ByteBuffer> = {
  readonly ByteWriter: new () => B;
  readonly ParquetWriter: new (options: { writer: B; schema: SchemaElement[] }) => ParquetFile;
};

/** Rows of a group: 2 MB of a file, and some 40 MB of memory while it is written. */
const groupRows = 10_000;

/** What DECIMAL(38,18) holds: 38 digits, 18 of them after the point. */
const decimalMax = 10n ** 38n - 1n;

/** A value does not fit its column. */
class UnfitValueError extends Error {
  override readonly name = 'UnfitValueError';
}

const types: Readonly<Record<ColumnKind, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  digits: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  number: { type: 'INT64' },
  integer: { type: 'INT64', converted_type: 'UINT_64' },
  decimal: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, converted_type: 'DECIMAL', precision: 38, scale: 18 },
  moment: { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } },
};

const schemaOf = (columns: readonly ExportColumn[]): SchemaElement[] => [
  { name: 'report', num_children: columns.length },
  ...columns.map(({ name, kind }): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...types[kind] })),
];

/** Throws unless every value of a row fits its column. */
export function requireFit(columns: readonly ExportColumn[], row: ExportRow): void {
  columns.forEach(({ name, kind }, i) => {
    const value = row[i];
    if (kind !== 'decimal' || typeof value !== 'bigint') return;
    if (value > decimalMax || value < -decimalMax)
      throw new UnfitValueError(`${name} is ${value}, which has more than 38 digits`);
  });
}

const toStored = (kind: ColumnKind, value: Value | undefined): Value =>
  typeof value === 'number' && kind === 'number' ? BigInt(value) : (value ?? null);

/** A Parquet file, compressed with Snappy. Rows must fit: see `requireFit`. */
export function createParquetEncoder<B extends ByteBuffer>(
  library: ParquetLibrary<B>,
  columns: readonly ExportColumn[],
): Encoder<Uint8Array> {
  const buffer = new library.ByteWriter();
  const file = new library.ParquetWriter({ writer: buffer, schema: schemaOf(columns) });
  let rows: ExportRow[] = [];
  const writeGroup = (): void => {
    const columnData = columns.map(({ name, kind }, i): ColumnSource => {
      return { name, data: rows.map((row) => toStored(kind, row[i])) };
    });
    if (rows.length > 0) file.write({ columnData, rowGroupSize: rows.length });
    rows = [];
  };
  const takeBytes = (): Uint8Array => {
    const bytes = buffer.getBytes().slice();
    buffer.index = 0; // written out: the offsets in the file count on
    return bytes;
  };
  return {
    add: (more) => {
      for (const row of more) {
        rows.push(row);
        if (rows.length === groupRows) writeGroup();
      }
      return takeBytes();
    },
    end: () => {
      writeGroup();
      file.finish();
      return takeBytes();
    },
  };
}
