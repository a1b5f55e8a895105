// The entry point `@sealpost/client/export`: reports as rows with exact values, and as CSV or Parquet.
export type { FeedId, ReportJson, SchemaVersion } from '@sealpost/protocol';
export {
  type ColumnKind,
  type ColumnOptions,
  columnsOf,
  type ExportColumn,
  type ExportRow,
  type ExportStream,
  exportRowOf,
  type Value,
} from './columns.ts';
export { createCsv, type Encoder, exportTextOf } from './csv.ts';
export { createParquetEncoder, type ParquetLibrary, requireFit } from './parquet.ts';
