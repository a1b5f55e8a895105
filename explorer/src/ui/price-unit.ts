// What a price is in: the quote asset, or for an interest rate, percent. From the schema and the catalog.
import { isSchemaVersion, reportSchemas, type SchemaVersion, schemaVersionOf } from '@sealpost/protocol';
import { formatPrice } from './format.ts';

/** The decimals of a rate in percent. */
export const percentDecimals = 16;

/** Whether a schema's price is an interest rate. */
export const isRate = (version: SchemaVersion): boolean => reportSchemas[version].headline.price === 'rate';

/** Whether a stream's price is an interest rate, by the schema in its feed ID. */
export function isRateStream(feedId: string): boolean {
  const version = schemaVersionOf(feedId);
  return isSchemaVersion(version) && isRate(version);
}

/** The text after a price: `USD`, or `= 4.1814 %` after a rate, which is signed as a ratio. Empty if the stream is not known. */
export const unitTextOf = (version: SchemaVersion, price: bigint, quoteAsset: string | undefined): string =>
  isRate(version) ? `= ${formatPrice(price, percentDecimals)} %` : (quoteAsset ?? '');
