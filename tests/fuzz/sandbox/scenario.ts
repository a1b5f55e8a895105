// Scenario files of the sandbox. The reference is the JSON Schema that editors use, which is generated from the same tables.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCatalog } from '@sealpost/simulator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { compileEvent, secondOfEvent } from '../../../sandbox/src/scenario/compile.ts';
import { eventTypes } from '../../../sandbox/src/scenario/event-table.ts';
import { parseEvent, parseScenario, type Scenario, ScenarioError } from '../../../sandbox/src/scenario/parse.ts';
import { scenarioSchema } from '../../../sandbox/src/scenario/schema.ts';
import { listFiles, root } from '../../support/source-tree.ts';
import { outcomeOf, requireSame, shapeOf, type Target } from '../target.ts';

const words = [
  ...eventTypes,
  ...[
    'at',
    'for',
    'over',
    'hold',
    'streams',
    'percent',
    'price',
    'factor',
    'fault',
    'speed',
    'seed',
    'past',
    'kind',
    'pair',
  ],
  ...[
    'ETH/USD',
    'BTC/USD',
    '1s',
    '-1s',
    '10m',
    '1.5h',
    '7d',
    '0s',
    '999999999d',
    '2026-03-13T14:30:00Z',
    '2026-02-30T00:00:00Z',
  ],
  ...['status=503,count=2', 'gap,for=10s', 'SPX/USD', 'Foo/USD=12', 'EquityPrice', 'open', 'closed', 'backfill'],
];

const startSecond = Date.UTC(2026, 2, 13) / 1_000;

export const openScenario = async (): Promise<Target> => {
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const isValid = ajv.compile(scenarioSchema());
  const catalog = createCatalog('testnet');
  const seeds = listFiles('.json')
    .filter((path) => path.startsWith('examples/scenarios/'))
    .map((path) => readFileSync(join(root, path)));

  const compile = ({ at = startSecond, events }: Scenario): void => {
    for (const [i, event] of events.entries())
      outcomeOf(
        () => compileEvent(event, secondOfEvent(event, at, `events[${i}]`), catalog, `events[${i}]`),
        [ScenarioError],
      );
  };

  const run = (input: Buffer): string => {
    let value: unknown;
    try {
      value = JSON.parse(input.toString());
    } catch {
      return 'not JSON';
    }
    outcomeOf(() => parseEvent(value), [ScenarioError]);
    const read = outcomeOf(() => parseScenario(value), [ScenarioError]);
    if ('error' in read) {
      assert.ok(read.error.message.length < 4_000, 'an error repeats the whole input');
      return shapeOf(read.error.message.replace(/\[\d+\]/, ''));
    }
    // The schema is for editors and knows less than the parser: it must accept all that the parser accepts.
    assert.ok(isValid(value), `the schema rejects an accepted scenario: ${isValid.errors?.[0]?.schemaPath}`);
    requireSame(
      parseScenario(JSON.parse(JSON.stringify(read.value))),
      read.value,
      'a parsed scenario is parsed to another one',
    );
    compile(read.value);
    return `accepted ${Object.keys(read.value).join()} ${[...new Set(read.value.events.map(({ type }) => type))].sort().join()}`;
  };
  return { seeds, words, json: 'value', run };
};
