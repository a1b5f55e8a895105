import { expect, test } from 'vitest';
import { comeBackMs, createEndpoints, parseBaseUrls, parseWsUrls } from './endpoints.ts';

const [a, b] = ['http://a.test', 'http://b.test'];

test('base URLs: the one that answered stays first, and the first of the list is tried again after 60 s', () => {
  let nowMs = 1_000_000;
  const urls = createEndpoints([a, b], () => nowMs);
  expect(urls.inOrder()).toEqual([a, b]);
  expect(urls.answered(b)).toBe(true);
  expect(urls.inOrder()).toEqual([b, a]);
  expect(urls.answered(b)).toBe(false);
  nowMs += comeBackMs;
  expect(urls.inOrder()).toEqual([a, b]);
  expect(urls.answered(b)).toBe(false); // the first one still does not answer: another while
  expect(urls.inOrder()).toEqual([b, a]);
  nowMs += comeBackMs;
  expect(urls.answered(a)).toBe(true);
  expect(urls.inOrder()).toEqual([a, b]);
});

test('base URLs: a trailing slash and a repetition make no difference', () => {
  expect(parseBaseUrls(undefined, ['https://API.example.org/', 'https://api.example.org', b])).toEqual([
    'https://api.example.org',
    b,
  ]);
  expect(parseBaseUrls(a, undefined)).toEqual([a]);
  expect(parseBaseUrls(`${a}/my/streams/`, undefined)).toEqual([`${a}/my/streams`]);
});

test.each([
  [undefined, undefined],
  [a, [b]],
  [undefined, []],
  ['api.example.org', undefined],
  ['ftp://a.test', undefined],
  ['http://a.test/api/v1', undefined],
  ['http://a.test/?x=1', undefined],
  ['http://user:hidden@a.test', undefined],
  [7, undefined],
])('base URLs: %o and %o are rejected, without being repeated', (baseUrl, baseUrls) => {
  expect(() => parseBaseUrls(baseUrl, baseUrls)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  expect(() => parseBaseUrls(baseUrl, baseUrls)).not.toThrow(/hidden/);
});

test('WebSocket URLs: either scheme works, and the base URLs are the default', () => {
  expect(parseWsUrls('wss://WS.example.org/', undefined, [a])).toEqual(['https://ws.example.org']);
  expect(parseWsUrls(undefined, ['ws://w.test:8080', 'http://w.test:8080', 'https://x.test'], [a])).toEqual([
    'http://w.test:8080',
    'https://x.test',
  ]);
  expect(parseWsUrls('wss://w.test/streams/', undefined, [a])).toEqual(['https://w.test/streams']);
  expect(parseWsUrls(undefined, undefined, [a, b])).toEqual([a, b]);
});

test.each([
  ['wss://a.test', ['wss://b.test']],
  [undefined, []],
  ['ws.example.org', undefined],
  ['wss://a.test/api/v1/ws', undefined],
  ['wss://user:hidden@a.test', undefined],
  [undefined, ['wss://a.test', 7]],
  ['', undefined],
])('WebSocket URLs: %o and %o are rejected, without being repeated', (wsUrl, wsUrls) => {
  expect(() => parseWsUrls(wsUrl, wsUrls, [a])).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  expect(() => parseWsUrls(wsUrl, wsUrls, [a])).not.toThrow(/hidden/);
});
