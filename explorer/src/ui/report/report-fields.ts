// Describes the fields of a report's body: meaning, type and unit in words, exact integer, readable value. The fields themselves come
// from the protocol's table.
import {
  type Field,
  type FieldUnit,
  fieldsOf,
  type ReportBody,
  type ReportHead,
  type reportSchemas,
  type SchemaVersion,
  timeResolutionOf,
  withoutTrailing,
} from '@sealpost/protocol';
import { formatPrice } from '../format.ts';
import { marketStatusOf } from '../market-status.ts';

/** The readable form of a number; the page formats it. */
export type Reading =
  | { readonly kind: 'decimal'; readonly value: bigint; readonly of: string }
  /** `fraction`: the digits below the millisecond, if any. */
  | { readonly kind: 'time'; readonly ms: number; readonly fraction: string }
  | { readonly kind: 'words'; readonly text: string }
  /** Whole numbers and hashes: the raw value is readable as it is. */
  | { readonly kind: 'plain' };

export type FieldLine = {
  readonly name: string;
  /** The ABI type. */
  readonly type: string;
  readonly unit: FieldUnit;
  /** The unit in a few words. */
  readonly unitText: string;
  /** The meaning of the field in a sentence. */
  readonly about: string;
  /** The integer as it was signed, or hex. */
  readonly raw: string;
  readonly reading: Reading;
};

type FieldName = (typeof reportSchemas)[SchemaVersion]['fields'][number]['name'];

const fieldTexts: Readonly<Record<FieldName, string>> = {
  feedId: 'The report’s stream. The first digits give the timestamp resolution and the schema version.',
  validFromTimestamp: 'The first time at which the price is valid.',
  observationsTimestamp: 'The last time at which the price is valid: when the oracles observed it.',
  nativeFee: 'The fee for verifying the report on-chain, in the chain’s native token.',
  linkFee: 'The fee for verifying the report on-chain, in LINK.',
  expiresAt: 'Contracts reject the report after this time.',
  price: 'The price that the oracles agreed on.',
  benchmarkPrice: 'The price that the oracles agreed on.',
  midPrice: 'The price halfway between bid and ask.',
  mid: 'The price halfway between bid and ask.',
  bid: 'The price that buyers offer.',
  ask: 'The price that sellers ask for.',
  bidPrice: 'The price that buyers offer.',
  askPrice: 'The price that sellers ask for.',
  bestBid: 'The highest price that buyers offer.',
  bestAsk: 'The lowest price that sellers ask for.',
  bidVolume: 'The volume at the bid.',
  askVolume: 'The volume at the ask.',
  lastTradedPrice: 'The price of the last trade.',
  price2: 'The second price of this report.',
  price3: 'The third price of this report.',
  price4: 'The fourth price of this report.',
  price5: 'The fifth price of this report.',
  rate: 'The rate that the oracles agreed on.',
  timestamp: 'When the rate was set.',
  duration: 'The period that the rate covers.',
  exchangeRate: 'The value of one unit of the base asset in the quote asset.',
  marketStatus: 'Whether the market was open.',
  lastUpdateTimestamp: 'When the price last changed at its source.',
  lastSeenTimestampNs: 'When the source last sent data.',
  navPerShare: 'Net asset value of one share.',
  nextNavPerShare: 'Net asset value of one share expected at the next strike.',
  navDate: 'The date of the net asset value.',
  aum: 'Assets under management.',
  ripcord: 'Set when the value must not be used.',
  currentMultiplier: 'Shares per token now.',
  newMultiplier: 'Shares per token after the change.',
  activationDateTime: 'When the new multiplier takes effect.',
  tokenizedPrice: 'The price of one token.',
  expiryTime: 'When the tracked contract expires.',
  firstDayOfNotice: 'The first day on which delivery of the contract can be announced.',
  contractMonth: 'The month of the contract, from 1 for January.',
  goldmanRollPrice:
    'The price during the roll into the next contract, which shifts by 20 % on each business day from the fifth to the ninth.',
  currentBusinessDay: 'The number of the business day in its month.',
  interpolatedGoldmanRollPrice: 'The roll price, interpolated between business days.',
  currentBlockNum: 'The block that the price was observed at.',
  currentBlockHash: 'The hash of that block.',
  validFromBlockNum: 'The first block at which the price is valid.',
  currentBlockTimestamp: 'The time of that block.',
};

const unitTexts: Readonly<Record<FieldUnit, string>> = {
  'feed ID': '32-byte ID of a stream',
  'stream time': 'Unix time in seconds',
  seconds: 'Unix time in seconds',
  nanoseconds: 'Unix time in nanoseconds',
  'native token': 'native token × 10¹⁸',
  LINK: 'LINK × 10¹⁸',
  price: 'price × 10¹⁸',
  amount: 'amount × 10¹⁸',
  ratio: 'ratio × 10¹⁸',
  'market status': 'status code of this schema',
  'paused flag': '0 in use, 1 paused',
  'block number': 'block number',
  'block hash': 'block hash',
  count: 'integer',
};

const unitTextOf = ({ name, unit }: Field, isMs: boolean): string => {
  if (name === 'duration') return 'seconds';
  return unit === 'stream time' && isMs ? 'Unix time in milliseconds' : unitTexts[unit];
};

const scaled: Readonly<Partial<Record<FieldUnit, string>>> = {
  price: '',
  amount: '',
  ratio: '',
  'native token': 'native',
  LINK: 'LINK',
};

/** Units that a field has by its name. */
const namedUnits: Readonly<Record<string, string>> = {
  currentMultiplier: 'shares per token',
  newMultiplier: 'shares per token',
};

const percentDecimals = 16;

/** The text after a field's decimal number; `quoteAsset` from the catalog, undefined if it does not list the stream. */
export function quotedUnitOf({ name, unit, reading }: FieldLine, quoteAsset: string | undefined): string {
  if (reading.kind !== 'decimal') return '';
  if (name === 'rate') return `= ${formatPrice(reading.value, percentDecimals)} %`;
  if (unit === 'price' || name === 'exchangeRate') return quoteAsset ?? '';
  return namedUnits[name] ?? reading.of;
}

const time = (ms: number, fraction = ''): Reading => ({ kind: 'time', ms, fraction });

const readingOf = (
  { name, unit }: Field,
  value: unknown,
  version: SchemaVersion | undefined,
  isMs: boolean,
): Reading => {
  const of = scaled[unit];
  if (typeof value === 'bigint' && of !== undefined) return { kind: 'decimal', value, of };
  if (unit === 'market status' && version !== undefined)
    return { kind: 'words', text: marketStatusOf(version, Number(value)).text };
  if (unit === 'paused flag') return { kind: 'words', text: Number(value) === 0 ? 'In use' : 'Paused: do not use' };
  if (name === 'duration') return { kind: 'words', text: `${value} seconds` };
  if (name === 'activationDateTime' && Number(value) === 0) return { kind: 'words', text: 'No change planned' };
  if (unit === 'nanoseconds' && typeof value === 'bigint')
    return time(Number(value / 1_000_000n), withoutTrailing((value % 1_000_000n).toString().padStart(6, '0'), '0'));
  if (unit === 'stream time') return time(Number(value) * (isMs ? 1 : 1_000));
  return unit === 'seconds' ? time(Number(value) * 1_000) : { kind: 'plain' };
};

/** Every field of a body that is known, in the order of its bytes. */
export function describeFields(body: ReportBody | ReportHead): readonly FieldLine[] {
  const isMs = timeResolutionOf(body.feedId) === 'milliseconds';
  const values = new Map<string, unknown>(Object.entries(body));
  return fieldsOf(body).map((field) => {
    const { name, type, unit } = field;
    const value = values.get(name);
    return {
      name,
      type: type === 'time' ? (isMs ? 'uint64' : 'uint32') : type,
      unit,
      unitText: unitTextOf(field, isMs),
      about: fieldTexts[name as FieldName], // a name of the table
      raw: String(value),
      reading: readingOf(field, value, body.version, isMs),
    };
  });
}
