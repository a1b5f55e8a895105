// The values that fields of a fault may have: each kind of value with its parser, its form in text, its JSON Schema and what an error says is expected.
import { jsonTextOf, oneLine, realDateMs } from '@sealpost/protocol';

export type JsonSchema = { readonly [key: string]: unknown };

/** One field of a fault. `parse` returns undefined for what the field cannot have; `read` turns text of the command line into what `parse` takes. */
export type FaultField<T = unknown, R extends boolean = boolean> = {
  readonly about: string;
  readonly required: R;
  readonly expected: string;
  readonly parse: (value: unknown) => T | undefined;
  readonly read: (text: string) => unknown;
  /** The text that `read` takes, where it is not that of the value itself. */
  readonly write?: (value: unknown) => string;
  readonly schema: JsonSchema;
};

/** The values of some fields: those that are required, and those that may be absent. */
export type FieldValues<F extends Readonly<Record<string, FaultField>>> = {
  readonly [K in keyof F as F[K] extends FaultField<unknown, true> ? K : never]: F[K] extends FaultField<infer T>
    ? T
    : never;
} & {
  readonly [K in keyof F as F[K] extends FaultField<unknown, true> ? never : K]?: F[K] extends FaultField<infer T>
    ? T
    : never;
};

const shownMax = 80;

/** What somebody wrote, as an error shows it: in one line, cut off. */
export function showText(text: string): string {
  const line = oneLine(text);
  return line.length > shownMax ? `${line.slice(0, shownMax)}…` : line;
}

/** The same of a value that cannot be, as JSON. */
export const showValue = (value: unknown): string => showText(jsonTextOf(value));

/** Makes a field that a fault cannot be without. */
export const required = <T>(field: FaultField<T, false>): FaultField<T, true> => ({ ...field, required: true });

const asIs = (text: string): unknown => text;
const asNumber = (text: string): unknown => (/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : text);
/** Neither JSON nor text has a -0. */
const withoutMinusZero = (value: number): number => value + 0;

export const integer = (about: string, min: number, max: number): FaultField<number, false> => ({
  about,
  required: false,
  expected: `a whole number from ${min} to ${max}`,
  parse: (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
      ? withoutMinusZero(value)
      : undefined,
  read: asNumber,
  schema: { type: 'integer', minimum: min, maximum: max },
});

export const number = (about: string, min: number, max: number): FaultField<number, false> => ({
  about,
  required: false,
  expected: `a number from ${min} to ${max}`,
  parse: (value) => (typeof value === 'number' && value >= min && value <= max ? withoutMinusZero(value) : undefined),
  read: asNumber,
  schema: { type: 'number', minimum: min, maximum: max },
});

/** One of a list of numbers, some of which may be ranges. */
export function numberOf(about: string, ranges: readonly (readonly [number, number])[]): FaultField<number, false> {
  const isIn = (value: number): boolean => ranges.some(([min, max]) => value >= min && value <= max);
  const words = ranges.map(([min, max]) => (min === max ? `${min}` : `${min} to ${max}`));
  return {
    about,
    required: false,
    expected: orList(words),
    parse: (value) => (typeof value === 'number' && Number.isInteger(value) && isIn(value) ? value : undefined),
    read: asNumber,
    schema: { anyOf: ranges.map(([minimum, maximum]) => ({ type: 'integer', minimum, maximum })) },
  };
}

export const flag = (about: string): FaultField<boolean, false> => ({
  about,
  required: false,
  expected: 'true or false',
  parse: (value) => (typeof value === 'boolean' ? value : undefined),
  read: (text) => (text === 'true' || text === '' ? true : text === 'false' ? false : text),
  schema: { type: 'boolean' },
});

export const text = (about: string, pattern: RegExp, expected: string): FaultField<string, false> => ({
  about,
  required: false,
  expected,
  parse: (value) => (typeof value === 'string' && pattern.test(value) ? value : undefined),
  read: asIs,
  schema: { type: 'string', pattern: pattern.source },
});

/** Text of any characters. In a line of text, commas, percent signs and control characters are percent-encoded. */
export const longText = (about: string, charactersMax: number): FaultField<string, false> => ({
  about,
  required: false,
  expected: `a text of up to ${charactersMax} characters`,
  parse: (value) => (typeof value === 'string' && value.length <= charactersMax ? value : undefined),
  read: (given) => {
    try {
      return decodeURIComponent(given);
    } catch {
      return given; // a percent sign of its own
    }
  },
  write: (value) => String(value).replace(/[%,\p{Cc}]|^\s|\s$/gu, encodeURIComponent),
  schema: { type: 'string', maxLength: charactersMax },
});

/** Names in one list. */
const namesMax = 100;

/** One name or several; `parse` returns undefined for a name that does not exist, and may return another spelling. A list of one is that name. */
export const names = (
  about: string,
  parseName: (name: string) => string | undefined,
  expected: string,
  item: JsonSchema = { type: 'string', minLength: 1 },
): FaultField<string | readonly string[], false> => ({
  about,
  required: false,
  expected: `${expected}, or a list of them`,
  parse: (value) => {
    if (typeof value === 'string') return parseName(value);
    if (!Array.isArray(value) || value.length === 0 || value.length > namesMax) return undefined;
    const parsed = value.map((name) => (typeof name === 'string' ? parseName(name) : undefined));
    if (!parsed.every((name) => name !== undefined)) return undefined;
    return parsed.length === 1 ? parsed[0] : parsed;
  },
  read: (given) => (given.includes('+') ? given.split('+') : given),
  schema: { anyOf: [item, { type: 'array', items: item, minItems: 1, maxItems: namesMax }] },
});

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const durationPattern = /^(-?\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/;

/** Reads `500ms`, `1.5s`, `10m`, `2h` or `1d` as ms; undefined for anything else. */
export function durationMs(duration: string): number | undefined {
  const [, count, unit = ''] = durationPattern.exec(duration) ?? [];
  return count === undefined ? undefined : Math.round(Number(count) * (unitMs[unit] ?? Number.NaN));
}

/** A duration that was parsed before. */
export function parsedMs(duration: string): number {
  const ms = durationMs(duration);
  if (ms === undefined) throw new Error(`${duration} is not a duration.`);
  return ms;
}

/** A duration in text, between two others; never 0 where `min` is negative. */
export function duration(about: string, min: string, max: string): FaultField<string, false> {
  const [minMs, maxMs] = [parsedMs(min), parsedMs(max)];
  const isFine = (ms: number): boolean => ms >= minMs && ms <= maxMs && !(minMs < 0 && ms === 0);
  return {
    about,
    required: false,
    expected: `a duration from ${min} to ${max}${minMs < 0 ? ', not 0,' : ''} such as 500ms or 10s`,
    parse: (value) => {
      const ms = typeof value === 'string' ? durationMs(value) : undefined;
      return ms !== undefined && isFine(ms) ? String(value) : undefined;
    },
    read: asIs,
    schema: { type: 'string', pattern: durationPattern.source },
  };
}

const datePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** Reads a time of a fault as ms: a date, or a duration after `addedMs`. Undefined for anything else. */
export function momentMs(moment: string, addedMs: number): number | undefined {
  const afterMs = durationMs(moment);
  if (afterMs !== undefined) return afterMs < 0 ? undefined : addedMs + afterMs;
  const ms = datePattern.test(moment) ? realDateMs(moment) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

export const moment = (about: string): FaultField<string, false> => ({
  about,
  required: false,
  expected: 'a date such as 2026-03-13T14:30:00Z, or a duration after the fault is added such as 10s',
  parse: (value) => (typeof value === 'string' && momentMs(value, 0) !== undefined ? value : undefined),
  read: asIs,
  schema: { type: 'string' },
});

/** `a, b or c`. */
export const orList = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
