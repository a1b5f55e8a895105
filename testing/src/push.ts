// The body of a pushed report: the price in its main field, everything else by a table of units, overridden by what the test gives.
import {
  encodeReportBody,
  type Field,
  type ReportBody,
  type ReportJson,
  reportSchemas,
  type SchemaVersion,
  type Stream,
  schemaVersionOf,
  timeResolutionOf,
  toReportJson,
} from '@sealpost/protocol';
import type { Network } from '@sealpost/simulator';
import { type EmbeddedSandbox, stepMaxMs } from 'sealpost/sandbox';
import { SandboxError, unexpected } from './errors.ts';
import type { ChosenStream } from './options.ts';
import { type Price, parsePrice } from './prices.ts';
import { type Moment, parseMoment } from './times.ts';

export type PushOptions = {
  /** When the price was observed; sandbox time by default, or the next second where the stream has a report of that. */
  readonly at?: Moment;
  /** First moment that the report is valid for; right after the report before it by default, so that there is no gap. */
  readonly validFrom?: Moment;
  /** The price by default. */
  readonly bid?: Price;
  readonly ask?: Price;
  /** Other fields of the stream's schema by name, such as `{ marketStatus: 1 }`. Prices, amounts and fees have 18 decimals, the others are integers. */
  readonly fields?: Readonly<Record<string, Price>>;
};

const optionNames = ['at', 'validFrom', 'bid', 'ask', 'fields'] as const;

/** Rejects options that do not exist. */
export const checkPushOptions = (options: unknown): void => {
  if (typeof options !== 'object' || options === null)
    throw unexpected('options', options, "an object, for example { at: '2026-03-13T14:30:00Z' }");
  const unknown = Object.keys(options).find((name) => !(optionNames as readonly string[]).includes(name)); // only widens it
  if (unknown !== undefined)
    throw new SandboxError(
      unknown,
      `${unknown} is not an option. Options: ${optionNames.join(', ')}. Fields of the report go into fields.`,
    );
};

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
  const isInteger = typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value));
  const whole = isInteger ? BigInt(value) : -1n;
  const bits = bitsOf(field, unitMs);
  if (whole < 0n || whole >= 2n ** bits) throw unexpected(argument, value, `a whole number of ${bits} bits`);
  return field.type === 'uint32' || field.type === 'time' ? Number(whole) : whole;
};

type Window = { readonly validFromMs: number; readonly observationsMs: number };

/** The units that a stream counts time in. */
export const unitMsOf = ({ feedId }: Stream): number => (timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000);

/** The body of a report with this price. Throws a SandboxError for a field that the schema does not have. */
export const createBody = (
  stream: Stream,
  price: bigint,
  { validFromMs, observationsMs }: Window,
  options: PushOptions,
): ReportBody => {
  const version = schemaVersionOf(stream.feedId) as SchemaVersion; // checked with the options
  const { fields, headline }: { fields: readonly Field[]; headline: { price: string; bid?: string; ask?: string } } =
    reportSchemas[version];
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
  return {
    ...Object.fromEntries(values),
    version,
    feedId: stream.feedId,
    validFromTimestamp: validFromMs / unitMs,
    observationsTimestamp: observationsMs / unitMs,
  } as ReportBody; // a value for each field of the version's row
};

export type PushParts = {
  /** Who signs at a second. */
  readonly networkAt: (second: number) => Network;
  /** Moves sandbox time. */
  readonly moveTo: (ms: number) => Promise<void>;
};

/** Signs a report of a stream and has the node serve it. Time moves to the observation where that is ahead. */
export const pushReport = async (
  node: EmbeddedSandbox,
  { networkAt, moveTo }: PushParts,
  { stream, asked }: ChosenStream,
  price: Price,
  options: PushOptions,
): Promise<ReportJson> => {
  checkPushOptions(options);
  const scaled = parsePrice('price', price);
  const window = windowOf(stream, node, options);
  const body = encodeReportBody(createBody(stream, scaled, window, options));
  const aheadMs = window.observationsMs - node.clock.nowMs();
  if (aheadMs > stepMaxMs) throw unexpected('at', options.at, 'a time at most 31 days ahead of sandbox time');
  if (aheadMs > 0) await moveTo(window.observationsMs);
  const network = networkAt(Math.floor(node.clock.nowMs() / 1_000));
  const round = Math.floor(window.observationsMs / 1_000);
  const report = toReportJson(stream.feedId, window, network.sign(body, round));
  const [result] = await node.ingest([JSON.stringify(report)]);
  if (result?.result === 'refused')
    throw new SandboxError('at', `The report of ${asked} was rejected: ${result.message} (${result.code})`);
  return report;
};

/** The window of the next report: right after the one before it, unless a test says otherwise. */
const windowOf = (stream: Stream, node: EmbeddedSandbox, { at, validFrom }: PushOptions): Window => {
  const unitMs = unitMsOf(stream);
  const lastMs = node.newestMs(stream.feedId);
  const nextMs = lastMs === undefined ? 0 : lastMs + unitMs;
  const whole = (argument: string, moment: Moment): number => {
    const ms = parseMoment(argument, moment);
    if (ms % unitMs !== 0)
      throw unexpected(argument, moment, 'a whole second: reports of this stream have no finer times');
    return ms;
  };
  const nowMs = Math.floor(node.clock.nowMs() / unitMs) * unitMs;
  const observationsMs = at === undefined ? Math.max(nowMs, nextMs) : whole('at', at);
  const isNext = lastMs !== undefined && nextMs <= observationsMs;
  const validFromMs = validFrom === undefined ? (isNext ? nextMs : observationsMs) : whole('validFrom', validFrom);
  if (validFromMs > observationsMs)
    throw unexpected(
      'validFrom',
      validFrom,
      `${new Date(observationsMs).toISOString()}, when the price is observed, or before`,
    );
  return { validFromMs, observationsMs };
};
