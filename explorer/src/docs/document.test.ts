import { errorTable, routes } from '@sealpost/protocol';
import { createOpenApi } from '@sealpost/protocol/openapi';
import { expect, test } from 'vitest';
import { catalogEntry } from '../state/catalog-entry.fixture.ts';
import { firstValues, headerProblem, routeOf, sentArguments, targetOf } from './arguments.ts';
import { type DocsOperation, readDocument } from './document.ts';
import { pickStreams } from './streams.ts';

const docs = readDocument(createOpenApi());
const operations = docs.groups.flatMap((group) => group.operations);
const operationOf = (id: string): DocsOperation =>
  operations.find((operation) => operation.id === id) ?? expect.unreachable();

test('docs: every path of the API is an operation of one group, under an anchor of its own', () => {
  expect(operations.map(({ path }) => path).toSorted()).toEqual(
    [...new Set(Object.values(routes).map(({ path }) => path))].toSorted(),
  );
  const anchors = [...docs.guides, ...docs.groups, ...operations].map(({ id }) => id);
  expect(new Set(anchors).size).toBe(anchors.length);
  expect(docs.errors.map(({ code }) => code)).toEqual(Object.keys(errorTable));
});

test('docs: the description is a lead and guides', () => {
  expect(docs.lead).toBe('Signed price reports over a read-only HTTP API, with a catalog of streams.');
  expect(docs.guides.map(({ id }) => id)).toContain('time-and-validity');
  expect(docs.guides.every(({ text }) => text !== '' && !text.includes('## '))).toBe(true);
});

test('docs: an operation says who may call it and how, and which answers are its own', () => {
  expect(operationOf('reportAt')).toMatchObject({ method: 'GET', auth: 'required', transport: 'http', hasHead: true });
  expect(operationOf('reportAt').answers.map(({ status }) => status)).toEqual(['200', '304', '404']);
  expect(operationOf('reportAt').answers[0]?.headers.find(({ name }) => name === 'X-Request-Id')?.about).toMatch(
    /Quote it/,
  );
  expect(operationOf('reportAt').refusals.find(({ status }) => status === '401')?.codes).toEqual([
    'unauthorized',
    'stream_not_accessible',
  ]);
  expect(operationOf('discovery').auth).toBe('optional');
  expect(operationOf('time').auth).toBe('none');
  expect(operationOf('origins')).toMatchObject({ method: 'HEAD', hasHead: false });
  expect(operationOf('socket').transport).toBe('websocket');
  expect(operationOf('reportStream').transport).toBe('events');
});

const streams = { feedIds: ['0xaa', '0xbb', '0xcc'], entries: [] };

test('docs: a form begins with streams of the server and times that have reports', () => {
  const values = firstValues(operationOf('reportBulk'), streams, 1_000_000);
  expect(values).toEqual({ feedIDs: '0xaa,0xbb', timestamp: '999990', missing: '' });
  expect(targetOf(operationOf('reportBulk'), sentArguments(operationOf('reportBulk'), values))).toBe(
    '/api/v1/reports/bulk?feedIDs=0xaa,0xbb&timestamp=999990',
  );
});

test('docs: the WebSocket in milliseconds begins with streams in milliseconds, if there are any', () => {
  const milliseconds = `0x1003${'a'.repeat(60)}`;
  const mixed = { feedIds: [...streams.feedIds, milliseconds], entries: [] };
  expect(firstValues(operationOf('socketMs'), mixed, 1_000_000).feedIDs).toBe(milliseconds);
  expect(firstValues(operationOf('socket'), mixed, 1_000_000).feedIDs).toBe('0xaa,0xbb');
  expect(firstValues(operationOf('socketMs'), streams, 1_000_000).feedIDs).toBe('0xaa,0xbb');
});

test('docs: a stream in milliseconds is among the samples, wherever it is in the catalog', () => {
  const entries = Array.from({ length: 60 }, (_, i) =>
    catalogEntry({ feedId: `0x${i === 59 ? 1 : 0}003${String(i).padStart(60, '0')}` }),
  );
  const { feedIds } = pickStreams({ phase: 'ready', streams: entries, readable: new Set(), hidden: new Set() });
  expect(feedIds).toHaveLength(50);
  expect(feedIds.at(-1)).toBe(entries[59]?.feedId);
});

test('docs: a header that the browser refuses is named, with the character', () => {
  expect(headerProblem('If-None-Match', ' "x" ')).toBe(undefined);
  expect(headerProblem('If-None-Match', '“x”')).toBe(
    'If-None-Match cannot be sent: a header cannot contain “ (U+201C). Use ASCII characters, such as straight quotes.',
  );
  expect(headerProblem('Last-Event-ID', '1日本')).toMatch(/^Last-Event-ID cannot be sent: .* 日 /);
});

test('docs: of a path with two forms, the form begins with one stream, and the arguments choose the other', () => {
  const latest = operationOf('reportLatest');
  const sent = sentArguments(latest, firstValues(latest, streams, 1_000_000));
  expect(sent).toEqual({ feedID: '0xaa' });
  expect(routeOf(latest, sent)).toBe('reportLatest');
  expect(routeOf(latest, { feedIDs: '0xaa' })).toBe('reportLatestMany');
});

test('docs: a target is spelled as the browser sends it', () => {
  const target = targetOf({ path: '/x' }, { a: "it's 1 & 2", b: 'ä,b' });
  expect(target).toBe('/x?a=it%27s%201%20%26%202&b=%C3%A4,b');
  const url = new URL(target, 'http://127.0.0.1');
  expect(url.pathname + url.search).toBe(target);
});
