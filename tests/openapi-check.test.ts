// The check that every answer passes can fail: each case takes a good answer and spoils one thing.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createOpenApi } from '@sealpost/protocol/openapi';
import { expect, test } from 'vitest';
import { createOpenApiCheck, createOpenApiWatch, type Exchange, requireDocumented } from './support/openapi-check.ts';
import { openCheckingProxy } from './support/proxies/checking-proxy.ts';

const check = createOpenApiCheck();
const feedID = `0x0003${'0'.repeat(60)}`;
const report = { feedID, validFromTimestamp: 1_763_200_000, observationsTimestamp: 1_763_200_000, fullReport: '0x00' };
const etag = `"${'0'.repeat(32)}"`;

const answer = (json: unknown, changes: Partial<Exchange> = {}): Exchange => ({
  method: 'GET',
  target: `/api/v1/reports/latest?feedID=${feedID}`,
  status: 200,
  body: Buffer.from(json === undefined ? '' : JSON.stringify(json)),
  ...changes,
  headers: { 'content-type': 'application/json', 'x-request-id': 'r-1', etag, ...changes.headers },
});
const problem = (code: string, status: number, changes: Partial<Exchange> = {}): Exchange => {
  const { headers = {}, ...rest } = changes;
  return answer(
    { error: 'text', message: 'text', code, requestId: 'r-1' },
    { status, ...rest, headers: { etag: undefined, ...headers } },
  );
};
const bare = { 'content-type': undefined, etag: undefined };

test.each([
  ['a report', answer({ report })],
  ['a doubled leading slash', answer({ report }, { target: '//api/v1/reports/latest?x' })],
  [
    'a compressed body',
    answer(undefined, { body: gzipSync(JSON.stringify({ report })), headers: { 'content-encoding': 'gzip' } }),
  ],
  ['304 without a body', answer(undefined, { status: 304, headers: { 'content-type': undefined } })],
  ['HEAD without a body', answer(undefined, { method: 'HEAD' })],
  ['a preflight', answer(undefined, { method: 'OPTIONS', status: 204, headers: bare })],
  ['a refusal', problem('unauthorized', 401)],
  ['a refusal of HEAD', answer(undefined, { method: 'HEAD', status: 401, headers: { etag: undefined } })],
  ['too many requests', problem('rate_limited', 429, { headers: { 'retry-after': '1' } })],
  ['an unknown path', problem('route_not_found', 404, { target: '/nothing' })],
  ['another method', problem('method_not_allowed', 405, { method: 'POST', headers: { allow: 'GET' } })],
])('openapi check: %s is as documented', (_, exchange) => {
  expect(check(exchange)).toEqual([]);
});

test.each([
  ['a wrong type', answer({ report: { ...report, validFromTimestamp: '1' } }), /validFromTimestamp must be integer/],
  ['a field too many', answer({ report, more: 1 }), /must NOT have additional properties.*more/],
  ['a field too many within', answer({ report: { ...report, price: 1 } }), /\/report must NOT have additional/],
  ['a missing field', answer({}), /must have required property 'report'/],
  ['a pattern', answer({ report: { ...report, feedID: feedID.toUpperCase() } }), /feedID must match pattern/],
  ['null', answer({ report: null }), /\/report must be object/],
  ['no JSON', answer(undefined, { body: Buffer.from('{') }), /is not JSON/],
  [
    'another content type',
    answer({ report }, { headers: { 'content-type': 'text/html' } }),
    /content type is text\/html/,
  ],
  ['a missing header', answer({ report }, { headers: { 'x-request-id': undefined } }), /X-Request-Id is missing/],
  [
    'a missing tag',
    answer({ report }, { target: `/api/v1/reports?feedID=${feedID}&timestamp=1`, headers: { etag: undefined } }),
    /ETag is missing/,
  ],
  ['a malformed header', answer({ report }, { headers: { etag: 'W/"1"' } }), /ETag is "W.*must match pattern/],
  ['a header that is no number', answer({ report }, { headers: { 'ratelimit-limit': 'x' } }), /RateLimit-Limit is "x"/],
  ['a header twice', answer({ report }, { headers: { etag: [etag, etag] } }), /ETag is there more than once/],
  ['a header of other answers', answer({ report }, { headers: { link: '</>' } }), /Link is not documented here/],
  ['429 that does not say when', problem('rate_limited', 429), /Retry-After is missing/],
  [
    '429 of HEAD that does not',
    answer(undefined, { method: 'HEAD', status: 429, headers: bare }),
    /Retry-After is missing/,
  ],
  ['an undocumented status', problem('unauthorized', 403), /status 403 is not documented/],
  ['a documented status elsewhere', problem('unauthorized', 401, { target: '/time' }), /status 401 is not documented/],
  ['a code of other routes', problem('timestamp_out_of_bounds', 400), /code timestamp_out_of_bounds is not documented/],
  ['a body on 304', answer({ report }, { status: 304 }), /body of .* where none is/],
  ['a body on HEAD', answer({ report }, { method: 'HEAD' }), /body of .* where none is/],
  ['405 without Allow', problem('method_not_allowed', 405, { method: 'POST' }), /Allow is missing/],
  ['200 on an unknown path', answer({}, { target: '/nothing' }), /status 200 is not documented/],
  ['200 to another method', answer({ report }, { method: 'POST' }), /status 200 is not documented/],
])('openapi check: %s is found', (_, exchange, what) => {
  expect(check(exchange).join('\n')).toMatch(what);
});

test('openapi check: a keyword that the validator does not know stops it', () => {
  const document = structuredClone(createOpenApi());
  Object.assign(document.components.schemas.Report, { propertys: {} });
  expect(() => createOpenApiCheck(document)(answer({ report }))).toThrow(/unknown keyword: "propertys"/);
});

test('openapi check: a watched listener, and a proxy before one, tell what went out', async () => {
  const openApi = createOpenApiWatch();
  const server = createServer(
    openApi.watch((_, response) => {
      response.writeHead(200, ['Content-Type', 'application/json', 'X-Request-Id', 'r-1']);
      response.write('{"serverTime');
      response.end('":1}');
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const proxy = await openCheckingProxy(() => `http://127.0.0.1:${port}`);
  try {
    const response = await fetch(`${proxy.url}/time`);
    await expect(requireDocumented('GET', '/time', response)).rejects.toThrow(/required property 'serverTimeMs'/);
    expect(await response.json()).toEqual({ serverTime: 1 });
    for (const { report: tell } of [openApi, proxy])
      expect(tell).toThrow(
        /^Answers that .* not allow:\nGET \/time → 200: the body is not as documented: .*serverTimeMs/,
      );
    expect(openApi.report).not.toThrow();
  } finally {
    await proxy.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
