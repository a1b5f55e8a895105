// What a price is in: the quote asset, or for an interest rate, percent. From the schema and the catalog.
import { reportSchemas, type SchemaVersion } from '@sealpost/protocol';
import { formatPrice } from './format.ts';

const percentDecimals = 16;

/** The text after a price: `USD`, or `= 4.1814 %` after a rate, which is signed as a ratio. Empty if the stream is not known. */
export const unitTextOf = (version: SchemaVersion, price: bigint, quoteAsset: string | undefined): string =>
  reportSchemas[version].headline.price === 'rate' ? `= ${formatPrice(price, percentDecimals)} %` : (quoteAsset ?? '');
