// The table of scenario events: what each does, and its fields. The parser, the JSON Schema, `sealpost sandbox set` and the documentation are derived
// from it or compared with it.
import { realDateMs } from '@sealpost/protocol';
import {
  durationMs,
  type FaultField,
  type FieldValues,
  type JsonSchema,
  names,
  number,
  required,
  text,
} from '../faults/fields.ts';
import { commonFields } from '../faults/kinds.ts';
import { FaultError, faultSchema, parseFault } from '../faults/parse.ts';
import { parseMoment } from '../push/body.ts';
import { SandboxError } from '../push/errors.ts';
import { parsePrice } from '../push/prices.ts';

export type EventRow = {
  readonly about: string;
  readonly fields: Readonly<Record<string, FaultField>>;
  /** The field that `sandbox set TYPE VALUE` gives. */
  readonly main?: string;
  /** Only for a running sandbox: a file cannot have it. */
  readonly runtime?: true;
};

/** A field of a scenario: as a fault's, but an error may be deeper in it. */
export class FieldError extends Error {
  override readonly name = 'FieldError';
  /** Below the field, such as `.status` or `[2]`; empty for the field itself. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

const durationPattern = /^(\d{1,9})([smhd])$/;

/** Reads `90s`, `10m`, `2h` or `1d` as seconds; undefined for anything else. */
export function durationSeconds(text: string): number | undefined {
  const ms = durationPattern.test(text) ? durationMs(text) : undefined;
  return ms === undefined ? undefined : ms / 1_000;
}

const datePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.0+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Reads a date of a whole second, or Unix seconds, as seconds; undefined for anything else. */
export function dateSeconds(value: string | number): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 0 ? value : undefined;
  if (/^\d{1,10}$/.test(value)) return Number(value);
  const ms = datePattern.test(value) ? realDateMs(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000);
}

const asIs = (text: string): unknown => text;

/** A duration of whole seconds. */
export function wholeDuration(about: string, min: string, max: string): FaultField<string, false> {
  const [minSeconds = 0, maxSeconds = 0] = [durationSeconds(min), durationSeconds(max)];
  return {
    about,
    required: false,
    expected: `a duration of whole seconds from ${min} to ${max} such as 90s, 10m or 2h`,
    parse: (value) => {
      const seconds = typeof value === 'string' ? durationSeconds(value) : undefined;
      return seconds !== undefined && seconds >= minSeconds && seconds <= maxSeconds ? String(value) : undefined;
    },
    read: asIs,
    schema: { type: 'string', pattern: durationPattern.source },
  };
}

/** When an event is: a duration after the start, or a date. */
export const eventMoment = (about: string): FaultField<string, false> => ({
  about,
  required: false,
  expected: 'a duration after the start such as 90s or 10m, or a date such as 2026-03-13T14:30:00Z',
  parse: (value) => {
    if (typeof value !== 'string') return undefined;
    const isDate = datePattern.test(value) && dateSeconds(value) !== undefined;
    return isDate || durationSeconds(value) !== undefined ? value : undefined;
  },
  read: asIs,
  schema: { type: 'string', anyOf: [{ pattern: durationPattern.source }, { pattern: datePattern.source }] },
});

export const choice = (about: string, values: readonly string[]): FaultField<string, false> => ({
  about,
  required: false,
  expected: `one of ${values.join(', ')}`,
  parse: (value) => (typeof value === 'string' && values.includes(value) ? value : undefined),
  read: asIs,
  schema: { type: 'string', enum: values },
});

const streamName = (name: string): string | undefined =>
  name.trim() !== '' && name.length <= 200 ? name.trim() : undefined;

const someStreams = (about: string): FaultField<string | readonly string[], false> =>
  names(about, streamName, 'a pair such as ETH/USD, a stream name or a feed ID');

const streams = required(someStreams('The streams, by pair, name or feed ID.'));

/** Text: a JSON number would pass through a float. */
const decimal = (about: string): FaultField<string, false> => ({
  about,
  required: false,
  expected: 'a decimal as text such as "4200.55" with at most 18 decimals',
  parse: (value) => (typeof value === 'string' && isReadable(() => parsePrice('', value)) ? value : undefined),
  read: asIs,
  schema: { type: 'string', pattern: '\\d' },
});

/** When a report was observed, or is valid from: not an event's moment, since streams may count milliseconds. */
const reportMoment = (about: string): FaultField<string | number, false> => ({
  about,
  required: false,
  expected: 'a date such as 2026-03-13T14:30:00Z, or Unix seconds',
  parse: (value) =>
    (typeof value === 'string' || typeof value === 'number') && isReadable(() => parseMoment('', value))
      ? value
      : undefined,
  read: (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : text),
  schema: {
    anyOf: [
      { type: 'string', pattern: '^\\d{4}-' },
      { type: 'number', minimum: 0 },
    ],
  },
});

const isReadable = (read: () => unknown): boolean => {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof SandboxError) return false;
    throw error;
  }
};

const reportFields: FaultField<Readonly<Record<string, string | number>>, false> = {
  about: 'Other fields of the schema by name.',
  required: false,
  expected: 'an object such as {"marketStatus":1}',
  parse: (value) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    const isFine =
      isObject &&
      Object.keys(value).length > 0 &&
      Object.values(value).every((one) => typeof one === 'string' || typeof one === 'number');
    return isFine ? (value as Readonly<Record<string, string | number>>) : undefined; // just checked
  },
  read: (text) => {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  },
  schema: { type: 'object', minProperties: 1, additionalProperties: { type: ['string', 'number'] } },
};

const lasting = wholeDuration('How long it lasts; until it is cleared where absent.', '1s', '365d');
const percentOf = (about: string, min: number, max: number) => required(number(about, min, max));
const price = required(number('The price, in units of the quote asset.', 1e-9, 1e9));
const excursion = {
  over: wholeDuration('How long it takes to get there; at once where absent.', '0s', '30d'),
  hold: wholeDuration('How long it stays there.', '0s', '30d'),
  recover: wholeDuration('How long it takes to get back; never where absent.', '0s', '30d'),
} as const;

/** The JSON Schema of a fault is in the document once. */
const faultReference: JsonSchema = { anyOf: [{ $ref: '#/$defs/fault' }, { type: 'string', minLength: 1 }] };
export const faultDefinition = faultSchema;

const fault: FaultField<unknown, true> = {
  about: 'The fault.',
  required: true,
  expected: 'a fault',
  parse: (value) => {
    try {
      return parseFault(value);
    } catch (error) {
      if (error instanceof FaultError) throw new FieldError(`.${error.field}`, error.message);
      throw error;
    }
  },
  read: asIs,
  schema: faultReference,
};

const none = {} as const;

/** Every type of event. */
const eventTable = {
  level: {
    about: 'Sets the price; it moves on from there.',
    main: 'price',
    fields: { streams, price },
  },
  jump: {
    about: 'Changes the price at once; it moves on from there.',
    main: 'percent',
    fields: { streams, percent: percentOf('By how much, such as -20 or 15.', -99.9, 10_000) },
  },
  drift: {
    about: 'Makes the price rise or fall steadily.',
    main: 'percentPerHour',
    fields: {
      streams,
      percentPerHour: percentOf('Percent of the price at the start, per hour.', -10_000, 10_000),
      for: lasting,
    },
  },
  volatility: {
    about: 'Multiplies how much the price fluctuates; 0 keeps it where it is.',
    main: 'factor',
    fields: { streams, factor: required(number('1 is normal.', 0, 1_000)), for: lasting },
  },
  crash: {
    about: 'Makes the price fall, stay low, and recover.',
    main: 'percent',
    fields: { streams, percent: percentOf('How far it falls.', 0.001, 99.9), ...excursion },
  },
  depeg: {
    about: 'Moves the price to another one, keeps it there, and moves it back.',
    main: 'price',
    fields: { streams, price, ...excursion },
  },
  freeze: {
    about: 'Repeats the last price: reports keep coming, with the same values.',
    fields: { streams, for: lasting },
  },
  push: {
    about: 'Signs a report with exactly these values. From then on the stream has only pushed reports, until `clear`.',
    main: 'price',
    fields: {
      stream: required(
        text('The stream, by pair, name or feed ID.', /\S/, 'a pair such as ETH/USD, a stream name or a feed ID'),
      ),
      price: required(decimal('The price.')),
      bid: decimal('The price where absent.'),
      ask: decimal('The price where absent.'),
      observedAt: reportMoment('When the price was observed; when it is pushed where absent.'),
      validFrom: reportMoment('First moment that it is valid for; after the report before where absent.'),
      fields: reportFields,
    },
  },
  market: {
    about: 'Opens or closes a market, whatever its hours.',
    main: 'state',
    fields: {
      streams,
      state: required(choice('`hours` goes back to the hours of the market.', ['open', 'closed', 'hours'])),
      for: lasting,
    },
  },
  decommission: {
    about: 'Ends streams: no more reports, and the catalog says so.',
    fields: {
      streams,
      in: wholeDuration(
        'Announces it in the catalog, and does it after this long; at once where absent.',
        '1s',
        '365d',
      ),
    },
  },
  rotate: { about: 'Registers a new signer set, which signs from then on, and retires the old one.', fields: none },
  outage: {
    about: 'No reports for a while.',
    main: 'for',
    fields: {
      streams: someStreams('The streams; all where absent.'),
      for: required(wholeDuration('How long.', '1s', '1d')),
      recovery: choice('Whether the missing reports are delivered late, all at the end; `gap` where absent.', [
        'gap',
        'backfill',
      ]),
    },
  },
  stop: { about: 'Streams stop without notice.', fields: { streams, for: lasting } },
  gap: {
    about: 'Streams have no reports for a while, and never get them.',
    main: 'for',
    fields: { streams, for: required(wholeDuration('How long.', '1s', '365d')) },
  },
  fault: { about: 'Sets a fault of the API, the live connections or the reports.', main: 'fault', fields: { fault } },
  remove: {
    about: 'Removes one fault.',
    main: 'id',
    fields: { id: required({ ...commonFields.id, about: 'The ID of the fault.' }) },
  },
  clear: {
    about:
      'Ends faults; price effects, forced market states, outages, stops and pushes. Decommissioned streams stay so.',
    main: 'what',
    fields: { what: choice('What to end; everything where absent.', ['everything', 'faults', 'streams']) },
  },
  speed: {
    about: 'Sets how fast time runs.',
    main: 'speed',
    fields: { speed: required(number('Sandbox seconds per second.', 0.01, 10_000)) },
  },
  pause: { about: 'Stops time, until you resume it.', fields: none },
  resume: { about: 'Lets time run again.', fields: none, runtime: true },
  step: {
    about: 'Advances time, paused or not, and waits until the reports are there.',
    main: 'by',
    fields: { by: required(wholeDuration('By how much.', '1s', '31d')) },
    runtime: true,
  },
} as const satisfies Readonly<Record<string, EventRow>>;

export type EventType = keyof typeof eventTable;

export const eventTypes = Object.keys(eventTable) as readonly EventType[]; // the table's own keys

/** A row without its exact type. */
export const eventRow = (type: EventType): EventRow => eventTable[type];

/** An event of one type, in its JSON form; without `at` it is at once. */
export type EventOf<T extends EventType> = { readonly type: T; readonly at?: string } & FieldValues<
  (typeof eventTable)[T]['fields']
>;

export type ScenarioEvent = { readonly [T in EventType]: EventOf<T> }[EventType];
