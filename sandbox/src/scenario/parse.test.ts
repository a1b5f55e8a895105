import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { root } from '../../../tests/support/source-tree.ts';
import { eventRow, eventTypes } from './event-table.ts';
import { parseEvent, parseScenario } from './parse.ts';
import { scenarioSchema } from './schema.ts';

const schemaFiles = ['docs', 'sandbox/schemas'].map((folder) => join(root, folder, 'sandbox-scenario.schema.json'));
const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(scenarioSchema());

const errorOf = (value: unknown): string | undefined => {
  try {
    parseScenario(value);
    return undefined;
  } catch (error) {
    return String((error as Error).message);
  }
};

/** A value of each field, by its name. */
const samples: Readonly<Record<string, unknown>> = {
  streams: ['ETH/USD'],
  price: 1.5,
  percent: 30,
  percentPerHour: -2.5,
  factor: 0,
  for: '10m',
  over: '0s',
  hold: '1h',
  recover: '2d',
  state: 'closed',
  in: '90s',
  recovery: 'backfill',
  fault: { kind: 'latency', delay: '200ms', probability: 0.1 },
  what: 'faults',
  id: 'f1',
  speed: 60,
  stream: 'ETH/USD',
  bid: '-1.4',
  ask: '1.6',
  observedAt: 1_773_412_200.25,
  validFrom: '2026-03-13T14:30:00Z',
  fields: { marketStatus: 1, volume: '2.5' },
};

test('scenario: the published schema is that of the table', async () => {
  const format = ['format', '--stdin-file-path=docs/schema.json'];
  const input = JSON.stringify(scenarioSchema());
  const text = execFileSync('node_modules/.bin/biome', format, { cwd: root, encoding: 'utf8', input });
  const hint = 'Out of date. To write it again: npx vitest run sandbox/src/scenario --update';
  for (const file of schemaFiles) await expect(text, hint).toMatchFileSnapshot(file);
});

test('scenario: schema and parser accept every field of every event, and reject each that is missing, wrong or unknown', () => {
  for (const type of eventTypes.filter((one) => eventRow(one).runtime === undefined)) {
    const { fields } = eventRow(type);
    const whole: Record<string, unknown> = { at: '10m', type };
    for (const name of Object.keys(fields)) whole[name] = type === 'push' && name === 'price' ? '1.5' : samples[name];
    const both = (event: unknown): readonly [boolean, boolean] => {
      const document = { events: [event] };
      return [validate(document), errorOf(document) === undefined];
    };
    expect([type, both(whole)]).toEqual([type, [true, true]]);
    expect([type, both({ ...whole, unknown: 1 })]).toEqual([type, [false, false]]);
    for (const name of ['at', ...Object.keys(fields)]) {
      const isRequired = name === 'at' || fields[name]?.required === true;
      const { [name]: _, ...rest } = whole;
      expect([type, name, both(rest)]).toEqual([type, name, [!isRequired, !isRequired]]);
      for (const wrong of [null, [], {}, '', true, -1e9])
        expect([type, name, wrong, both({ ...whole, [name]: wrong })]).toEqual([type, name, wrong, [false, false]]);
    }
  }
});

test('scenario: a value that is nested too deeply to be printed is an error of its field', () => {
  const nested: unknown = JSON.parse(`{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
  expect(() => parseScenario(nested)).toThrow('name: is [object Array], expected a text of up to 200 characters.');
});

test('scenario: an error names the path of the field and what may be there', () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [[], 'is [], expected a scenario, which is an object.'],
    [
      { speeds: 1 },
      'speeds: is not a field here. Fields: at, $schema, name, about, seed, speed, past, streams, events.',
    ],
    [{ speed: 0 }, 'speed: is 0, expected a number from 0.01 to 10000.'],
    [
      { at: 'soon' },
      'at: is "soon", expected a date of a whole second such as 2026-03-13T14:30:00Z, or Unix seconds, from 2000 to 2100.',
    ],
    [{ streams: [] }, 'streams: is [], expected a list of 1 to 1000 streams.'],
    [{ streams: ['ETH/USD', 'eth/usd'] }, 'streams[1]: is the same stream as streams[0].'],
    [{ streams: ['FOO/USD=1', 'foo/usd=2'] }, 'streams[1]: is the same stream as streams[0].'],
    [{ streams: ['FOO/USD'] }, 'streams[0]: FOO/USD is not a simulated asset. Give it a price: FOO/USD=1.'],
    [
      { streams: [{ pair: 'FOO/USD', price: -1 }] },
      'streams[0].price: is -1, expected a number from 1e-9 to 1000000000.',
    ],
    [{ events: {} }, 'events: is {}, expected a list of up to 10000 events.'],
    [{ events: [{ at: '1s', type: 'pause' }, 7] }, 'events[1]: is 7, expected an object with the field type.'],
    [{ events: [{ at: '1s', type: 'step', by: '1s' }] }, 'events[0].type: is "step", expected one of level, jump, '],
    [{ events: [{ at: '1.5s', type: 'pause' }] }, 'events[0].at: is "1.5s", expected a duration after the start'],
    [{ events: [{ type: 'pause' }] }, 'events[0].at: is missing, expected a duration'],
    [
      { events: [{ at: '1s', type: 'jump', streams: 'ETH/USD' }] },
      'events[0].percent: is missing, expected a number from -99.9 to 10000.',
    ],
    [
      { events: [{ at: '1s', type: 'fault', fault: { kind: 'status', status: 99 } }] },
      'events[0].fault.status: status is 99, expected 200 to 203, 205 to 303 or 305 to 599.',
    ],
  ];
  for (const [value, message] of cases) expect(errorOf(value)).toContain(message);
  expect(parseEvent({ type: 'step', by: '10s' })).toEqual({ type: 'step', by: '10s' });
  expect(() => parseEvent({ type: 'step', by: '10s', at: '5s' })).toThrow('at: is not a field here. Fields: by.');
  expect(() => parseEvent({ type: 'resume', at: '5s' }, '[1]')).toThrow('[1].at: is not a field here. Fields: none.');
  expect(errorOf(JSON.parse('{"__proto__":{"events":1}}'))).toContain('__proto__: is not a field here');
  expect(errorOf({ [`a\n${'b'.repeat(200)}`]: 1 })).toMatch(/^a b{78}…: is not a field here/);
});

test('scenario: every example is valid, by the parser and by the schema', () => {
  const folder = join(root, 'examples/scenarios');
  const files = readdirSync(folder);
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    const document = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    expect([file, errorOf(document)]).toEqual([file, undefined]);
    expect([file, validate(document)]).toEqual([file, true]);
  }
});

test('scenario: a date that does not exist is rejected', () => {
  const eventAt = (at: string) =>
    errorOf({ at: '2026-02-01T00:00:00Z', events: [{ at, type: 'clear', what: 'faults' }] });
  expect(eventAt('2026-02-28T00:00:00Z')).toBeUndefined();
  expect(eventAt('2026-02-30T00:00:00Z')).toContain('is "2026-02-30T00:00:00Z", expected a duration');
  expect(errorOf({ at: '2026-02-30T00:00:00Z', events: [] })).toContain('expected a date of a whole second');
});
