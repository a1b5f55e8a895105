import { errorTable, routes } from '@sealpost/protocol';
import { createOpenApi } from '@sealpost/protocol/openapi';
import { expect, test } from 'vitest';
import { firstValues, routeOf, sentArguments, targetOf } from './arguments.ts';
import { type DocsOperation, readDocument } from './document.ts';

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
