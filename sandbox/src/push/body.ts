// The body of a pushed report: the price in its main field, everything else by a table of units, overridden by what the test gives.
import {
  encodeReportBody,
  type FeedId,
  type Field,
  type Hex,
  isSchemaVersion,
  type ReportBody,
  realDateMs,
  reportSchemas,
  schemaVersionOf,
  timeResolutionOf,
} from '@sealpost/protocol';
import type { Window } from '@sealpost/server/store/store';
import { clockMaxMs } from '../clock.ts';
import { SandboxError, unexpected } from './errors.ts';
import { type Price, parsePrice } from './prices.ts';

/** A date, `'2026-03-13T14:30:00Z'`, or Unix seconds, as reports have them. */
export type Moment = Date | string | number;

const dated = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const msOf = (value: unknown): number => {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value * 1_000;
  return typeof value === 'string' && dated.test(value) ? realDateMs(value) : Number.NaN;
};

/** A moment in ms. */
export function parseMoment(argument: string, value: unknown): number {
  const ms = msOf(value);
  if (Number.isInteger(ms) && ms >= 0 && ms <= clockMaxMs) return ms;
  throw unexpected(argument, value, "a Date, a date such as '2026-03-13T14:30:00Z', or Unix seconds, before 2106");
}

/** The stream of a pushed report, with its name for errors. */
export type PushedStream = { readonly feedId: FeedId; readonly name: string };

export type PushOptions = {
  /** When the price was observed; sandbox time by default, or the next second where the stream has a report of that. */
  readonly at?: Moment;
  /** First moment that the report is valid for; right after the report before it by default, so that there is no gap. */
  readonly validFrom?: Moment;
  /** The price by default. */
  readonly bid?: Price;
  readonly ask?: Price;
  /** Other fields of the stream's schema by name, such as `{ marketStatus: 1 }`. Prices, amounts and fees have 18 decimals, the others are integers; those may be text. */
  readonly fields?: Readonly<Record<string, Price>>;
};

const optionNames = ['at', 'validFrom', 'bid', 'ask', 'fields'] as const;

/** Rejects options that do not exist. */
export function checkPushOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null)
    throw unexpected('options', options, "an object, for example { at: '2026-03-13T14:30:00Z' }");
  const unknown = Object.keys(options).find((name) => !(optionNames as readonly string[]).includes(name)); // only widens it
  if (unknown !== undefined)
    throw new SandboxError(
      unknown,
      `${unknown} is not an option. Options: ${optionNames.join(', ')}. Fields of the report go into fields.`,
    );
}

/** How long contracts accept a report. */
const expiryMs = 30 * 86_400_000;
const one = 10n ** 18n;

/** Fields that a test sets by other means. */
const fixed = ['feedId', 'validFromTimestamp', 'observationsTimestamp'];

/** Values that the unit alone does not tell. */
const byName: Readonly<Record<string, bigint | number>> = {
  currentMultiplier: one,
  newMultiplier: 0n,
  activationDateTime: 0,
  duration: 86_400,
  contractMonth: 12,
  currentBusinessDay: 1,
};

const marketOpen = 2;

const defaultOf = (
  { name, type, unit }: Field,
  price: bigint,
  observationsMs: number,
  unitMs: number,
): bigint | number => {
  const named = byName[name];
  if (named !== undefined) return named;
  switch (unit) {
    case 'price':
    case 'ratio':
      return price;
    case 'stream time':
      return (observationsMs + expiryMs) / unitMs; // the expiry: the others are fixed
    case 'seconds':
      return type === 'uint64' ? BigInt(Math.floor(observationsMs / 1_000)) : Math.floor(observationsMs / 1_000);
    case 'nanoseconds':
      return BigInt(observationsMs) * 1_000_000n;
    case 'native token':
      return one / 10_000n;
    case 'LINK':
      return one / 50n;
    case 'market status':
      return marketOpen;
    case 'paused flag':
      return 0;
    default:
      return 0n;
  }
};

const isScaled = ({ unit }: Field): boolean => ['price', 'ratio', 'amount', 'native token', 'LINK'].includes(unit);
const bitsOf = ({ type }: Field, unitMs: number): bigint => {
  if (type === 'time') return unitMs === 1 ? 53n : 32n; // 64 bits that a number can hold, or seconds
  return type === 'uint64' ? 64n : type === 'uint192' ? 192n : 32n;
};

/** A value of a field, as the codec takes it. */
const parseField = (field: Field, unitMs: number, argument: string, value: unknown): bigint | number => {
  if (isScaled(field)) {
    const scaled = parsePrice(argument, value);
    if (field.type === 'uint192' && scaled < 0n) throw unexpected(argument, value, 'no negative value');
    return scaled;
  }
  const isInteger =
    typeof value === 'bigint' ||
    (typeof value === 'number' && Number.isSafeInteger(value)) ||
    (typeof value === 'string' && /^\d{1,20}$/.test(value)); // JSON has no integers above 2^53
  const whole = isInteger ? BigInt(value) : -1n;
  const bits = bitsOf(field, unitMs);
  if (whole < 0n || whole >= 2n ** bits) throw unexpected(argument, value, `a whole number of ${bits} bits`);
  return field.type === 'uint32' || field.type === 'time' ? Number(whole) : whole;
};

/** The units that a stream counts time in. */
export const unitMsOf = ({ feedId }: PushedStream): number => (timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000);

/** Older reports have no price. */
const schemaMin = 2;
/** How versions that this release does not know are laid out: the head, which all versions share, and a price. */
const unknownLayout = 2;

/** The body of a report with this price. Throws a SandboxError for a field that the schema does not have. */
export function createBody(
  stream: PushedStream,
  price: bigint,
  { validFromMs, observationsMs }: Window,
  options: PushOptions,
): Hex {
  const version = schemaVersionOf(stream.feedId);
  if (version < schemaMin)
    throw new SandboxError('stream', `${stream.name} has schema version ${version}, of which no report can be made.`);
  const layout = isSchemaVersion(version) ? version : unknownLayout;
  const { fields, headline }: { fields: readonly Field[]; headline: { price: string; bid?: string; ask?: string } } =
    reportSchemas[layout];
  const given = new Map<string, readonly [argument: string, value: unknown]>([[headline.price, ['price', price]]]);
  for (const side of ['bid', 'ask'] as const) {
    if (options[side] === undefined) continue;
    const name = headline[side];
    if (name === undefined)
      throw new SandboxError(side, `${side} is given, but reports of ${stream.name} (schema ${version}) have none.`);
    given.set(name, [side, options[side]]);
  }
  const settable = fields.map(({ name }) => name).filter((name) => !fixed.includes(name));
  for (const [name, value] of Object.entries(options.fields ?? {})) {
    const argument = `fields.${name}`;
    if (!settable.includes(name))
      throw new SandboxError(
        argument,
        `${argument} is not a field of ${stream.name} (schema ${version}). Fields: ${settable.join(', ')}.`,
      );
    if (given.has(name))
      throw new SandboxError(argument, `${argument} is given twice, as ${given.get(name)?.[0]} too.`);
    given.set(name, [argument, value]);
  }
  const unitMs = unitMsOf(stream);
  const values = fields.map((field) => {
    const own = given.get(field.name);
    return [
      field.name,
      own === undefined ? defaultOf(field, price, observationsMs, unitMs) : parseField(field, unitMs, ...own),
    ];
  });
  const [resolution, rest] = [stream.feedId.slice(0, 3), stream.feedId.slice(6)];
  const body = encodeReportBody({
    ...Object.fromEntries(values),
    version: layout,
    feedId: `${resolution}${layout.toString(16).padStart(3, '0')}${rest}`,
    validFromTimestamp: validFromMs / unitMs,
    observationsTimestamp: observationsMs / unitMs,
  } as ReportBody); // a value for each field of the version's row
  return `0x${stream.feedId.slice(2)}${body.slice(stream.feedId.length)}`;
}
