// The Parquet encoder of the client with its library, loaded by those who use it (D186).
import { createParquetEncoder, type Encoder, type ExportColumn } from '@sealpost/client/export';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';

export const createParquet = (columns: readonly ExportColumn[]): Encoder =>
  createParquetEncoder({ ByteWriter, ParquetWriter }, columns);
