// Request heads as bytes on a socket, to the real server. The first byte chooses whether the request is signed: then the target that the head names
// is signed as it stands, so that mutated targets get past authentication.
import assert from 'node:assert/strict';
import { type ErrorCode, errorTable, routes, signRequest } from '@sealpost/protocol';
import { exchange, head, type RawAnswer, toLines } from '../../support/raw-http.ts';
import { type FuzzedService, forgetEvents, openFuzzedService } from '../fuzzed-api.ts';
import type { Target } from '../target.ts';

const host = 'Host: sealpost.test';
const close = 'Connection: close';

const headsOf = (feedId: string): readonly string[] => [
  head(`GET /api/v1/reports/latest?feedID=${feedId} HTTP/1.1`, host, close),
  head(`GET /api/v1/reports?feedID=${feedId}&timestamp=1763200010 HTTP/1.1`, host, close),
  head(`GET /api/v1/reports/page?feedID=${feedId}&startTimestamp=1763200000&limit=3 HTTP/1.1`, host, close),
  head(`GET /api/v1/reports/bulk?feedIDs=${feedId}&timestamp=1763200010&missing=true HTTP/1.1`, host, close),
  head(`GET /api/v1/reports/candles?feedID=${feedId}&from=1763200000&to=1763200019&resolution=1 HTTP/1.1`, host, close),
  head(`GET /api/v1/reports/coverage?feedID=${feedId}&from=1763200000&to=1763200019 HTTP/1.1`, host, close),
  head('GET /api/v1/discovery?base_asset=TEST HTTP/1.1', host, close, 'Accept-Encoding: gzip, br;q=0.5'),
  head('HEAD / HTTP/1.1', host, close),
  head('GET /time HTTP/1.0'),
  head('OPTIONS /api/v1/feeds HTTP/1.1', host, close, 'Origin: https://a.test', 'Access-Control-Request-Method: GET'),
  head('GET /status.json HTTP/1.1', host, close, 'If-None-Match: "a", W/"b", *'),
  head('POST /api/v1/feeds HTTP/1.1', host, 'Content-Length: 3', close).concat('abc'),
  head('POST /time HTTP/1.1', host, 'Transfer-Encoding: chunked', close).concat('3\r\nabc\r\n0\r\n\r\n'),
  head(
    `GET /api/v1/ws?feedIDs=${feedId} HTTP/1.1`,
    host,
    'Connection: Upgrade, close',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 12',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ),
];

const words = [
  ...Object.values(routes).map(({ path }) => path),
  ...[
    '\r\n',
    '\n',
    '\r',
    ' ',
    '\t',
    ': ',
    ', ',
    '?',
    '&',
    '%00',
    '%2f',
    '%C3%A9',
    '//',
    '..',
    'HTTP/1.1',
    'HTTP/1.0',
    'HTTP/2.0',
    'GET',
    'HEAD',
    'OPTIONS',
    'CONNECT',
  ],
  ...[
    'Host: a',
    'Content-Length: 0',
    'Content-Length: 5',
    'Transfer-Encoding: chunked',
    'Connection: keep-alive',
    'Upgrade: h2c',
    'Expect: 100-continue',
  ],
  ...[
    'Range: bytes=0-1',
    'Accept: text/html',
    'Accept-Encoding: zstd, gzip;q=0',
    'If-None-Match: *',
    'Last-Event-ID: 1',
    'X-Forwarded-For: 1.2.3.4',
    'Cookie: a=b',
  ],
  ...[
    'Authorization: x',
    'X-Authorization-Timestamp: 1',
    'X-Authorization-Signature-SHA256: 00',
    'X-Cll-Origin: 1',
    'Sec-WebSocket-Protocol: a, a',
  ],
];

/** Signs the target of a head, and puts the headers after its first line. */
const sign = ({ account, nowMs }: FuzzedService, bytes: Buffer): Buffer => {
  const text = bytes.toString('latin1');
  const [, method, target] = /^(\S*) (\S*)/.exec(text) ?? [];
  const end = text.indexOf('\r\n');
  if (method === undefined || target === undefined || end === -1) return bytes;
  const lines = toLines(signRequest({ method, target, userId: account.userId, timestampMs: nowMs() }, account.secret));
  return Buffer.from(`${text.slice(0, end)}\r\n${lines.join('\r\n')}${text.slice(end)}`, 'latin1');
};

const good = [101, 200, 204, 206, 301, 304, 308];

/** The status and code of an answer; throws if it is not one that the documents name. */
const checkAnswer = ({ status, headers, body }: RawAnswer): string => {
  if (status === 100) return '100';
  assert.ok(status < 500, `answered ${status}: ${body.slice(0, 200)}`);
  if (good.includes(status)) return `${status}`;
  // An answer to HEAD has a length and no body.
  if (body === '' || !body.startsWith('{')) return `${status} ${headers['content-type']}`;
  const { code, requestId } = JSON.parse(body) as { code: ErrorCode; requestId: string };
  assert.ok(Object.hasOwn(errorTable, code), `the code ${code} is not documented`);
  assert.equal(errorTable[code].status, status, `${code} has another status`);
  assert.equal(requestId, headers['x-request-id'], 'the request IDs of header and body differ');
  return `${status} ${code}`;
};

export const openRequest = async (): Promise<Target> => {
  const fuzzed = await openFuzzedService();
  const { service, port, feedId } = fuzzed;
  const heads = headsOf(feedId);
  const send = async (bytes: Buffer): Promise<readonly RawAnswer[]> => {
    const options = { halfClose: true, answersMax: 16 };
    // A machine that stands still for as long as the first one waits is not a finding.
    const { answers } = await exchange(port, bytes, options).catch(() => exchange(port, bytes, options));
    return answers;
  };
  return {
    seeds: heads.flatMap((text) => [`s${text}`, `u${text}`]).map((text) => Buffer.from(text, 'latin1')),
    words,
    inputBytesMax: 24_576,
    run: async (input) => {
      const isSigned = input[0] === 0x73;
      const bytes = isSigned ? sign(fuzzed, input.subarray(1)) : input.subarray(1);
      const answers = await send(bytes);
      forgetEvents(fuzzed);
      const statuses = answers.map(checkAnswer);
      const isHead = /^HEAD /.test(bytes.toString('latin1', 0, 5));
      return `${isSigned ? 'signed' : 'open'} ${isHead ? 'HEAD' : ''} ${statuses.slice(0, 3).join(' ')}`;
    },
    check: async () => {
      const { status } = await service.call(`/api/v1/reports/latest?feedID=${feedId}`);
      assert.equal(status, 200, 'a well-behaved request is not answered');
      forgetEvents(fuzzed);
    },
    close: service.close,
  };
};
