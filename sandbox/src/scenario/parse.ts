// Reads scenarios and events from JSON by the tables. An error names the path of the field, such as `events[3].at`.
import { kindNames, parseSpecName, type StreamSpec, specsMax } from '@sealpost/simulator';
import { speedBounds } from '../clock.ts';
import { type FaultField, integer, number, showText, showValue, text } from '../faults/fields.ts';
import {
  choice,
  dateSeconds,
  type EventType,
  eventMoment,
  eventRow,
  eventTypes,
  FieldError,
  type ScenarioEvent,
  wholeDuration,
} from './event-table.ts';

/** A scenario that cannot be: where, and what is expected there. */
export class ScenarioError extends Error {
  override readonly name = 'ScenarioError';
  /** Such as `events[3].at`; empty for the whole document. */
  readonly path: string;

  constructor(path: string, message: string) {
    const shown = showText(path); // names of fields are in it, whatever they are
    super(shown === '' ? message : `${shown}: ${message}`);
    this.path = shown;
  }
}

/** Events of one scenario at most. */
export const eventsMax = 10_000;

/** A scenario, in its JSON form. */
export type Scenario = {
  readonly name?: string;
  readonly about?: string;
  readonly seed?: string;
  /** Unix seconds. */
  readonly at?: number;
  readonly speed?: number;
  readonly past?: string;
  readonly streams?: readonly StreamSpec[];
  readonly events: readonly ScenarioEvent[];
};

type Fields = Readonly<Record<string, unknown>>;

const toFields = (value: unknown, path: string, what: string): Fields => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields; // just checked
  throw new ScenarioError(path, `is ${showValue(value)}, expected ${what}.`);
};

const below = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** Reads the fields of an object by their rows; others are rejected. */
const readFields = (
  given: Fields,
  rows: Readonly<Record<string, FaultField>>,
  path: string,
): Record<string, unknown> => {
  for (const name of Object.keys(given))
    if (!Object.hasOwn(rows, name))
      throw new ScenarioError(
        below(path, name),
        `is not a field here. Fields: ${Object.keys(rows).join(', ') || 'none'}.`,
      );
  const read: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(rows)) {
    if (given[name] === undefined && !field.required) continue;
    read[name] = readField(given[name], field, below(path, name));
  }
  return read;
};

const readField = (value: unknown, field: FaultField, path: string): unknown => {
  if (value === undefined) throw new ScenarioError(path, `is missing, expected ${field.expected}.`);
  try {
    const parsed = field.parse(value);
    if (parsed !== undefined) return parsed;
  } catch (error) {
    if (error instanceof FieldError) throw new ScenarioError(`${path}${error.path}`, error.message);
    throw error;
  }
  throw new ScenarioError(path, `is ${showValue(value)}, expected ${field.expected}.`);
};

const at = eventMoment('When it happens: after the start, or at a date.');

/** Reads one event. Without `at` it is for a running sandbox, which may have every type. */
export function parseEvent(value: unknown, path = '', isRuntime = true): ScenarioEvent {
  const { type, ...given } = toFields(value, path, 'an object with the field type');
  const allowed = eventTypes.filter((one) => isRuntime || eventRow(one).runtime === undefined);
  if (!allowed.some((one) => one === type)) {
    const what = type === undefined ? 'is missing' : `is ${showValue(type)}`;
    throw new ScenarioError(below(path, 'type'), `${what}, expected one of ${allowed.join(', ')}.`);
  }
  const known = type as EventType; // just looked up
  const { fields, runtime } = eventRow(known);
  const rows = runtime ? fields : { at: isRuntime ? at : { ...at, required: true }, ...fields };
  return { type: known, ...readFields(given, rows, path) } as ScenarioEvent; // every field was parsed by the row that its type is derived from
}

const printable = /^[^\p{Cc}]{1,200}$/u;

/** The fields of a scenario besides its lists. */
export const scenarioFields = {
  $schema: text('Where the schema is, for editors.', /^.{0,500}$/, 'a URL'),
  name: text('A name for people.', printable, 'a text of up to 200 characters'),
  about: text('What it is for.', /^[\s\S]{0,2000}$/, 'a text of up to 2000 characters'),
  seed: text(
    'What prices, keys, credentials and faults are derived from.',
    printable,
    'a text of up to 200 characters',
  ),
  speed: number('Sandbox seconds per second.', speedBounds.min, speedBounds.max),
  past: wholeDuration('History before the start.', '0s', '7d'),
} as const satisfies Readonly<Record<string, FaultField>>;

/** When a scenario starts: now where it says nothing. */
export const startField: FaultField<number, false> = {
  about: 'When it starts: a date or Unix seconds; now where absent.',
  required: false,
  expected: 'a date of a whole second such as 2026-03-13T14:30:00Z, or Unix seconds, from 2000 to 2100',
  parse: (value) => {
    const seconds = typeof value === 'string' || typeof value === 'number' ? dateSeconds(value) : undefined;
    return seconds !== undefined && seconds >= startBounds.min && seconds <= startBounds.max ? seconds : undefined;
  },
  read: (given) => given,
  schema: {
    anyOf: [
      { type: 'string', format: 'date-time' },
      { type: 'integer', minimum: Date.UTC(2000) / 1_000, maximum: Date.UTC(2100) / 1_000 },
    ],
  },
};

const startBounds = { min: Date.UTC(2000) / 1_000, max: Date.UTC(2100) / 1_000 } as const;

/** The fields of a stream that is given as an object. */
export const streamFields = {
  pair: {
    ...text('Base and quote asset.', /^[A-Za-z0-9.]{1,20}\/[A-Za-z0-9.]{1,20}$/, 'a pair such as ETH/USD'),
    required: true,
  },
  kind: choice('Its kind, which defines schema, interval and market hours; CexPrice where absent.', kindNames),
  assetName: text('The name of the asset.', printable, 'a text of up to 200 characters'),
  price: number('The price that it fluctuates around; required for an asset that is not simulated.', 1e-9, 1e9),
  volatilityPerDay: number('Standard deviation of a day’s return: 0.03 is 3 %.', 0, 10),
  spreadBps: number('Mean spread in basis points.', 0, 5_000),
  decimals: integer('Decimals of its prices.', 0, 18),
  intervalSeconds: integer('Seconds between reports.', 1, 3_600),
  hidden: {
    about: 'Whether only accounts with an entitlement see it.',
    required: false,
    expected: 'true or false',
    parse: (value: unknown) => (typeof value === 'boolean' ? value : undefined),
    read: (given: string) => given === 'true',
    schema: { type: 'boolean' },
  },
} as const satisfies Readonly<Record<string, FaultField>>;

/** Reads one stream: a name, or an object. */
const parseStream = (value: unknown, path: string): StreamSpec => {
  if (typeof value !== 'string') {
    const read = readFields(toFields(value, path, 'a pair such as ETH/USD, or an object'), streamFields, path);
    const named = specOf(`${read.pair}${read.price === undefined ? '' : '=1'}`, path);
    return { kind: named.kind, ...read, pair: named.pair } as StreamSpec; // every field was parsed by its row
  }
  return specOf(value, path);
};

const specOf = (name: string, path: string): StreamSpec => {
  try {
    return parseSpecName(name);
  } catch (error) {
    if (error instanceof RangeError) throw new ScenarioError(path, error.message);
    throw error;
  }
};

/** Reads a list of streams; each is in it once. */
export function parseStreams(value: unknown, path: string): readonly StreamSpec[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > specsMax)
    throw new ScenarioError(path, `is ${showValue(value)}, expected a list of 1 to ${specsMax} streams.`);
  const specs = value.map((one, i) => parseStream(one, `${path}[${i}]`));
  specs.forEach(({ pair, kind }, i) => {
    const isSame = (other: StreamSpec) => other.pair.toLowerCase() === pair.toLowerCase() && other.kind === kind;
    const first = specs.findIndex(isSame);
    if (first < i) throw new ScenarioError(`${path}[${i}]`, `is the same stream as ${path}[${first}].`);
  });
  return specs;
}

/** Reads a scenario. */
export function parseScenario(value: unknown): Scenario {
  const { events = [], streams, ...given } = toFields(value, '', 'a scenario, which is an object');
  const rows = { at: startField, ...scenarioFields };
  const { $schema: _, ...read } = readFields(given, { ...rows, ...listRows }, '');
  if (!Array.isArray(events) || events.length > eventsMax)
    throw new ScenarioError('events', `is ${showValue(events)}, expected a list of up to ${eventsMax} events.`);
  return {
    ...read,
    ...(streams !== undefined && { streams: parseStreams(streams, 'streams') }),
    events: events.map((event, i) => parseEvent(event, `events[${i}]`, false)),
  };
}

/** Named in the error about an unknown field, and read apart. */
const list = (about: string): FaultField<never, false> => ({
  about,
  required: false,
  expected: 'a list',
  parse: () => undefined,
  read: (given) => given,
  schema: {},
});
const listRows = { streams: list('The catalog.'), events: list('What happens.') };
