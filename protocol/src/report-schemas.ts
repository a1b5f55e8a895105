// The table of report schemas: version → fields in ABI order, with their units. Types are derived from it, and the codec in report.ts
// uses it: a new version is one row here and one vector (D17).
import type { FeedId } from './feed-id.ts';

/** ABI type of a field. `time` is uint32 seconds or uint64 milliseconds, by the feed ID's time resolution. */
export type FieldType = 'bytes32' | 'time' | 'uint32' | 'uint64' | 'uint192' | 'int192';

/** The unit of a field; `price`, `amount`, `ratio` and the fees have 18 decimals. */
export type FieldUnit =
  | 'feed ID'
  | 'stream time'
  | 'seconds'
  | 'nanoseconds'
  | 'native token'
  | 'LINK'
  | 'price'
  | 'amount'
  | 'ratio'
  | 'market status'
  | 'paused flag'
  | 'block number'
  | 'block hash'
  | 'count';

export type Field = { readonly name: string; readonly type: FieldType; readonly unit: FieldUnit };

const field = <N extends string, T extends FieldType>(
  name: N,
  type: T,
  unit: FieldUnit,
): { readonly name: N; readonly type: T; readonly unit: FieldUnit } => ({ name, type, unit });

const feedIdField = field('feedId', 'bytes32', 'feed ID');
const observationsField = field('observationsTimestamp', 'time', 'stream time');
const marketStatusField = field('marketStatus', 'uint32', 'market status');
const lastUpdateField = field('lastUpdateTimestamp', 'uint64', 'nanoseconds');
const lastSeenField = field('lastSeenTimestampNs', 'uint64', 'nanoseconds');
const ripcordField = field('ripcord', 'uint32', 'paused flag');
const navDateField = field('navDate', 'uint64', 'nanoseconds');
const price = <N extends string>(name: N) => field(name, 'int192', 'price');

/** The fields that every version but the first starts with. */
export const headFields = [
  feedIdField,
  field('validFromTimestamp', 'time', 'stream time'),
  observationsField,
  field('nativeFee', 'uint192', 'native token'),
  field('linkFee', 'uint192', 'LINK'),
  field('expiresAt', 'time', 'stream time'),
] as const;

type SchemaRow = {
  readonly title: string;
  /** The field of the main price, and of bid and ask if the schema has them. */
  readonly headline: { readonly price: string; readonly bid?: string; readonly ask?: string };
  readonly fields: readonly Field[];
};

/** Every schema version, by number. */
export const reportSchemas = {
  1: {
    title: 'Block-based price',
    headline: { price: 'benchmarkPrice', bid: 'bid', ask: 'ask' },
    fields: [
      feedIdField,
      observationsField,
      price('benchmarkPrice'),
      price('bid'),
      price('ask'),
      field('currentBlockNum', 'uint64', 'block number'),
      field('currentBlockHash', 'bytes32', 'block hash'),
      field('validFromBlockNum', 'uint64', 'block number'),
      field('currentBlockTimestamp', 'uint64', 'seconds'),
    ],
  },
  2: { title: 'Single price', headline: { price: 'price' }, fields: [...headFields, price('price')] },
  3: {
    title: 'Crypto advanced',
    headline: { price: 'price', bid: 'bid', ask: 'ask' },
    fields: [...headFields, price('price'), price('bid'), price('ask')],
  },
  4: {
    title: 'Real-world asset',
    headline: { price: 'price' },
    fields: [...headFields, price('price'), marketStatusField],
  },
  5: {
    title: 'Interest rate',
    headline: { price: 'rate' },
    fields: [
      ...headFields,
      field('rate', 'int192', 'ratio'),
      field('timestamp', 'uint32', 'seconds'),
      field('duration', 'uint32', 'seconds'),
    ],
  },
  6: {
    title: 'Five prices',
    headline: { price: 'price' },
    fields: [...headFields, price('price'), price('price2'), price('price3'), price('price4'), price('price5')],
  },
  7: {
    title: 'Exchange rate',
    headline: { price: 'exchangeRate' },
    fields: [...headFields, field('exchangeRate', 'int192', 'ratio')],
  },
  8: {
    title: 'Real-world asset, standard',
    headline: { price: 'midPrice' },
    fields: [...headFields, lastUpdateField, price('midPrice'), marketStatusField],
  },
  9: {
    title: 'Net asset value',
    headline: { price: 'navPerShare' },
    fields: [...headFields, price('navPerShare'), navDateField, field('aum', 'int192', 'amount'), ripcordField],
  },
  10: {
    title: 'Tokenized asset',
    headline: { price: 'price' },
    fields: [
      ...headFields,
      lastUpdateField,
      price('price'),
      marketStatusField,
      field('currentMultiplier', 'int192', 'ratio'),
      field('newMultiplier', 'int192', 'ratio'),
      field('activationDateTime', 'uint32', 'seconds'),
      price('tokenizedPrice'),
    ],
  },
  11: {
    title: 'Real-world asset, advanced',
    headline: { price: 'mid', bid: 'bid', ask: 'ask' },
    fields: [
      ...headFields,
      price('mid'),
      lastSeenField,
      price('bid'),
      field('bidVolume', 'int192', 'amount'),
      price('ask'),
      field('askVolume', 'int192', 'amount'),
      price('lastTradedPrice'),
      marketStatusField,
    ],
  },
  12: {
    title: 'Net asset value, next',
    headline: { price: 'navPerShare' },
    fields: [...headFields, price('navPerShare'), price('nextNavPerShare'), navDateField, ripcordField],
  },
  13: {
    title: 'Top of book',
    headline: { price: 'lastTradedPrice', bid: 'bestBid', ask: 'bestAsk' },
    fields: [
      ...headFields,
      price('bestAsk'),
      price('bestBid'),
      field('askVolume', 'uint64', 'count'),
      field('bidVolume', 'uint64', 'count'),
      price('lastTradedPrice'),
    ],
  },
  // In beta, and changed twice: earlier layouts are not decoded (D246).
  14: {
    title: 'Futures',
    headline: { price: 'midPrice', bid: 'bidPrice', ask: 'askPrice' },
    fields: [
      ...headFields,
      price('midPrice'),
      price('bidPrice'),
      price('askPrice'),
      field('expiryTime', 'uint64', 'seconds'),
      field('firstDayOfNotice', 'uint64', 'seconds'),
      lastSeenField,
      marketStatusField,
      field('contractMonth', 'uint32', 'count'),
      price('goldmanRollPrice'),
      field('currentBusinessDay', 'uint32', 'count'),
      price('interpolatedGoldmanRollPrice'),
    ],
  },
} as const satisfies Record<number, SchemaRow>;

/** A version in the table. */
export type SchemaVersion = keyof typeof reportSchemas;

/** The fields that were read of a body, in the order of its words. */
export const fieldsOf = ({ version }: ReportBody | ReportHead): readonly Field[] =>
  version === undefined ? headFields : reportSchemas[version].fields;

/** Whether a version is in the table. */
export const isSchemaVersion = (version: number): version is SchemaVersion => Object.hasOwn(reportSchemas, version);

// uint32 and times fit a double exactly; everything wider is a bigint, so that no price passes through a float.
type FieldValue<F extends Field> = F['name'] extends 'feedId'
  ? FeedId
  : F['type'] extends 'bytes32'
    ? `0x${string}`
    : F['type'] extends 'time' | 'uint32'
      ? number
      : bigint;

type FieldOf<V extends SchemaVersion> = (typeof reportSchemas)[V]['fields'][number];

/** The decoded body of one version: its fields by name, and the version, which discriminates the union. */
export type ReportBodyOf<V extends SchemaVersion> = { readonly version: V } & {
  readonly [F in FieldOf<V> as F['name']]: FieldValue<F>;
};

/** The decoded body of any version. */
export type ReportBody = { [V in SchemaVersion]: ReportBodyOf<V> }[SchemaVersion];

/** All that can be read of a body whose schema, or layout, is not in the table (D246). */
export type ReportHead = {
  readonly version: undefined;
  /** Why the other fields cannot be read. */
  readonly problem: string;
} & {
  readonly [F in (typeof headFields)[number] as F['name']]: FieldValue<F>;
};
