// The JSON Schema (2020-12) of scenarios, from the tables. docs/sandbox-scenario.schema.json is this text.
import { specsMax } from '@sealpost/simulator';
import type { FaultField, JsonSchema } from '../faults/fields.ts';
import { eventMoment, eventRow, eventTypes, faultDefinition } from './event-table.ts';
import { eventsMax, scenarioFields, startField, streamFields } from './parse.ts';

const describe = ({ schema, about }: FaultField): JsonSchema => ({ ...schema, description: about });

const objectOf = (rows: Readonly<Record<string, FaultField>>): JsonSchema => {
  const required = Object.entries(rows).flatMap(([name, field]) => (field.required ? [name] : []));
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(rows).map(([name, field]) => [name, describe(field)])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
};

const eventSchema = (type: (typeof eventTypes)[number]): JsonSchema => {
  const { about, fields } = eventRow(type);
  const rows = { at: { ...eventMoment('When it happens: after the start, or at a date.'), required: true }, ...fields };
  const { properties, required } = objectOf(rows) as { properties: JsonSchema; required: readonly string[] }; // as made above
  return {
    type: 'object',
    title: type,
    description: about,
    properties: { type: { const: type }, ...properties },
    required: ['type', ...required],
    additionalProperties: false,
  };
};

/** The whole schema. */
export const scenarioSchema = (): JsonSchema => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://raw.githubusercontent.com/sealpost/sealpost/main/docs/sandbox-scenario.schema.json',
  title: 'Sealpost sandbox scenario',
  description: 'What happens in a sandbox: sealpost sandbox --scenario FILE.',
  type: 'object',
  properties: {
    ...(objectOf({ ...scenarioFields, at: startField }).properties as JsonSchema), // as made above
    streams: {
      description: 'The catalog: names of simulated assets, or objects.',
      type: 'array',
      items: { anyOf: [{ type: 'string', minLength: 1 }, { $ref: '#/$defs/stream' }] },
      minItems: 1,
      maxItems: specsMax,
    },
    events: {
      description: 'What happens, in any order.',
      type: 'array',
      items: { $ref: '#/$defs/event' },
      maxItems: eventsMax,
    },
  },
  additionalProperties: false,
  $defs: {
    stream: objectOf(streamFields),
    event: { oneOf: eventTypes.filter((type) => eventRow(type).runtime === undefined).map(eventSchema) },
    fault: faultDefinition(),
  },
});
