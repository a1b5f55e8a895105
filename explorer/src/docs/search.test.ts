import { createOpenApi } from '@sealpost/protocol/openapi';
import { expect, test } from 'vitest';
import { readDocument } from './document.ts';
import { parseMarkdown, parseText } from './markdown.ts';
import { searchDocs, searchEntries } from './search.ts';

const entries = searchEntries(readDocument(createOpenApi()));
const find = (query: string) => searchDocs(entries, query).map(({ kind, title }) => `${kind}: ${title}`);

test('search: finds operations by path, parameters, fields, headers, error codes and guides by their text', () => {
  expect(find('reports/latest')[0]).toBe('Operation: GET /api/v1/reports/latest');
  expect(find('clock_skew')[0]).toBe('Error code: clock_skew');
  expect(find('startTimestamp')[0]).toBe('Parameter: startTimestamp');
  expect(find('medianInterval')[0]).toBe('Field: medianIntervalMs');
  expect(find('ratelimit-reset')[0]).toBe('Header: RateLimit-Reset');
  expect(find('hmac-sha256')).toContain('Guide: Authentication');
});

test('search: every word must occur, in any order and case', () => {
  expect(find('LATEST reports')[0]).toBe('Operation: GET /api/v1/reports/latest');
  expect(find('latest zebra')).toEqual([]);
  expect(find('   ')).toEqual([]);
  expect(find('report').length).toBeLessThanOrEqual(12);
});

test('search: every result leads somewhere, and none is listed twice', () => {
  const keys = entries.map(({ anchor, kind, title }) => `${anchor} ${kind} ${title}`);
  expect(new Set(keys).size).toBe(keys.length);
  expect(entries.every(({ anchor }) => /^[\w-]+$/.test(anchor))).toBe(true);
});

test('Markdown: paragraphs, lists and code blocks; what is not marked stays text', () => {
  expect(parseMarkdown('One `two` **three** <b>.\n\n- a\n- `b`\n\n```json\n{\n\n}\n```\n\nEnd.')).toEqual([
    {
      kind: 'paragraph',
      parts: [
        { kind: 'text', text: 'One ' },
        { kind: 'code', text: 'two' },
        { kind: 'text', text: ' ' },
        { kind: 'strong', text: 'three' },
        { kind: 'text', text: ' <b>.' },
      ],
    },
    { kind: 'list', items: [[{ kind: 'text', text: 'a' }], [{ kind: 'code', text: 'b' }]] },
    { kind: 'code', language: 'json', text: '{\n\n}' },
    { kind: 'paragraph', parts: [{ kind: 'text', text: 'End.' }] },
  ]);
  expect(parseText('a ` b')).toEqual([{ kind: 'text', text: 'a ` b' }]);
  expect(parseMarkdown('```\nnever closed')).toEqual([{ kind: 'code', language: '', text: 'never closed' }]);
});
