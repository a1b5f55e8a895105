import { createOpenApi } from '@sealpost/protocol/openapi';
import { expect, test } from 'vitest';
import { type DocsSchema, readDocument } from './document.ts';
import { sampleBody, shortenBody } from './sample-body.ts';
import { bodyForms, limitTexts, schemaRows, typeText } from './schema-rows.ts';

const { schemas, groups } = readDocument(createOpenApi());
const ref = (name: string): DocsSchema => ({ $ref: `#/components/schemas/${name}` });

test('schema rows: fields of a list are below it, with references resolved', () => {
  const rows = schemaRows(ref('PartialReports'), schemas);
  expect(rows.map(({ path, depth }) => [path, depth])).toEqual([
    ['reports', 0],
    ['reports[].feedID', 1],
    ['reports[].validFromTimestamp', 1],
    ['reports[].observationsTimestamp', 1],
    ['reports[].fullReport', 1],
    ['missing', 0],
    ['missing[].feedID', 1],
    ['missing[].reason', 1],
  ]);
  expect(rows[0]).toMatchObject({ type: 'list of Report', isRequired: true });
  expect(rows[5]).toMatchObject({ isRequired: false, about: 'Present when the request has missing=true.' });
});

test('schema rows: null, maps, ranges, values and defaults are said in words', () => {
  const miss = schemaRows(ref('ReportMiss'), schemas);
  expect(miss.find(({ path }) => path === 'next')).toMatchObject({ type: 'Window or null' });
  expect(miss.some(({ path }) => path === 'next.validFromTimestamp')).toBe(true);
  expect(schemaRows(ref('SignerSets'), schemas)[0]).toMatchObject({ name: 'any key', type: 'SignerSet' });
  expect(limitTexts({ type: 'integer', minimum: 1, maximum: 1_000, default: 10 })).toEqual(['1 to 1000', 'default 10']);
  expect(limitTexts({ type: 'string', enum: ['a', 'b'] })).toEqual(['one of a, b']);
  expect(typeText({ type: ['string', 'null'] })).toBe('string or null');
});

test('schema rows: a schema that contains itself ends, and so do its samples', () => {
  const tree: Readonly<Record<string, DocsSchema>> = {
    Tree: { type: 'object', properties: { value: { type: 'integer' }, children: { items: ref('Tree') } } },
    Loop: ref('Loop'),
  };
  expect(schemaRows(ref('Tree'), tree).map(({ path }) => path)).toEqual(['value', 'children']);
  expect(sampleBody(ref('Tree'), tree, { feedIds: [], entries: [] })).toEqual({ value: 0, children: [null] });
  expect(schemaRows(ref('Loop'), tree)).toEqual([]);
});

test('schema rows: a reference that leads nowhere has no rows', () => {
  expect(schemaRows(ref('Missing'), schemas)).toEqual([]);
  expect(sampleBody(ref('Missing'), schemas, { feedIds: [], entries: [] })).toBe(null);
});

test('samples: every answer of the API has one, with a feed ID of the server', () => {
  const feedId = `0x0003${'ab'.repeat(30)}`;
  const streams = { feedIds: [feedId], entries: [] };
  const bodies = groups
    .flatMap(({ operations }) => operations)
    .flatMap(({ answers }) => answers)
    .flatMap(({ schema }) => (schema === undefined ? [] : bodyForms(schema)));
  expect(bodies.length).toBeGreaterThan(12);
  for (const body of bodies) expect(JSON.stringify(sampleBody(body, schemas, streams))).not.toContain('FEED_ID');
  expect(sampleBody(ref('OneReport'), schemas, streams)).toEqual({
    report: {
      feedID: feedId,
      validFromTimestamp: 1_763_199_999,
      observationsTimestamp: 1_763_200_000,
      fullReport: '0x0006f9b553e393ced311551efd30d1decedb63d76ad41737462e2cdbbdff1578',
    },
  });
});

test('samples: a real answer is shortened to the first items and the beginning of long texts', () => {
  const long = `0x${'ab'.repeat(500)}`;
  expect(shortenBody({ reports: [{ fullReport: long }, 2, 3], other: null })).toEqual({
    reports: [{ fullReport: `${long.slice(0, 66)}…` }, 2],
    other: null,
  });
});
