// The table of requests that no client library sends: name, bytes, the statuses that may come back.
import { head } from './support/raw-http.ts';

/** What a case needs to build its bytes: a target that is readable, and header lines that sign a method and target. */
export type Material = {
  readonly target: string;
  readonly sign: (target: string, method?: string) => readonly string[];
};

export type RawCase = {
  readonly name: string;
  readonly bytes: (material: Material) => string | Buffer;
  /** Each is a whole outcome: the statuses of all answers before the server closes. [] is a close without an answer. */
  readonly outcomes: readonly (readonly number[])[];
  /** The code of the last error. */
  readonly code?: string;
  /** Answers 2xx to anyone. */
  readonly open?: true;
};

const host = 'Host: sealpost.test';
const close = 'Connection: close';
const bad = [[400]] as const;
const gone = [[404]] as const;
const large = [[431]] as const;

/** A signed GET of the readable target with further header lines, and whatever follows the head. */
const signed =
  (lines: readonly string[], body = '') =>
  ({ target, sign }: Material): string =>
    head(`GET ${target} HTTP/1.1`, host, close, ...sign(target), ...lines) + body;

/** A GET of another spelling of the target, signed as it is sent. */
const spelled =
  (spell: (target: string) => string) =>
  ({ target, sign }: Material): string => {
    const sent = spell(target);
    return head(`GET ${sent} HTTP/1.1`, host, close, ...sign(sent));
  };

/** The readable target with another method, signed with it. */
const asked =
  (method: string, ...lines: readonly string[]) =>
  ({ target, sign }: Material): string =>
    head(`${method} ${target} HTTP/1.1`, host, close, ...sign(target, method), ...lines);

/** Signed, one of its header lines sent twice. */
const twice =
  (index: number, spell: (line: string) => string = (line) => line) =>
  ({ target, sign }: Material): string =>
    head(`GET ${target} HTTP/1.1`, host, close, ...sign(target), spell(sign(target)[index] as string)); // there are three

const replaced =
  (from: string, to: string) =>
  (material: Material): string =>
    signed([])(material).replace(from, to);

const ofSeveral = (target: string): string => target.replace('?feedID=', '?feedIDs=');

export const goodCases: readonly RawCase[] = [
  { name: 'a signed request', bytes: signed([]), outcomes: [[200]] },
  { name: 'header names in capitals', bytes: replaced('X-Authorization-T', 'X-AUTHORIZATION-T'), outcomes: [[200]] },
  // The parser takes these for requests, and they are signed or open like any other.
  { name: 'HTTP/2.0 in words', bytes: replaced('HTTP/1.1', 'HTTP/2.0'), outcomes: [[200], [400]] },
  { name: 'HTTP/0.9', bytes: () => 'GET /time\r\n\r\n', outcomes: [[200], [400]], open: true },
  { name: 'HTTP/1.0', bytes: replaced('HTTP/1.1', 'HTTP/1.0'), outcomes: [[200]] },
  {
    name: 'HTTP/1.0 without Host',
    bytes: (m) => replaced('HTTP/1.1', 'HTTP/1.0')(m).replace(`${host}\r\n`, ''),
    outcomes: [[200]],
  },
  { name: 'Content-Length: 0', bytes: signed(['Content-Length: 0']), outcomes: [[200]] },
  { name: 'a doubled leading slash', bytes: spelled((target) => `/${target}`), outcomes: [[200]] },
  { name: 'an expectation', bytes: signed(['Expect: 100-continue']), outcomes: [[200]] },
  { name: 'an expectation that nobody knows', bytes: signed(['Expect: nonsense']), outcomes: [[200]] },
  { name: 'an offer of HTTP/2', bytes: signed(['Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']), outcomes: [[200]] },
  { name: 'several streams', bytes: spelled(ofSeveral), outcomes: [[200]] },
  {
    name: 'several streams, the argument’s name percent-encoded',
    bytes: spelled((target) => ofSeveral(target).replace('feedIDs', '%66eed%49Ds')),
    outcomes: [[200]],
  },
  {
    name: 'names of object members',
    bytes: signed(['__proto__: x', 'constructor: x', 'toString: x']),
    outcomes: [[200]],
  },
  {
    name: 'parameters named like object members',
    bytes: spelled((target) => `${target}&__proto__=1&constructor=2`),
    outcomes: [[200]],
  },
  {
    name: 'another path in headers that proxies invent',
    bytes: () =>
      head('GET /time HTTP/1.1', host, close, 'X-Original-URL: /api/v1/feeds', 'X-Rewrite-URL: /api/v1/feeds'),
    outcomes: [[200]],
    open: true,
  },
  {
    name: 'a tab and spaces around a value',
    bytes: replaced('X-Authorization-Timestamp: ', 'X-Authorization-Timestamp:\t  '),
    outcomes: [[200]],
  },
];

export const badCases: readonly RawCase[] = [
  {
    name: 'one stream and several',
    bytes: spelled((target) => `${target}&feedIDs=`),
    outcomes: bad,
    code: 'malformed_argument',
  },
  {
    name: 'several streams, twice',
    bytes: spelled((target) => `${ofSeveral(target)}&feed%49Ds=1`),
    outcomes: bad,
    code: 'repeated_argument',
  },
  {
    name: 'several streams in bytes that are not UTF-8',
    bytes: spelled((target) => `${ofSeveral(target)}%ff`),
    outcomes: bad,
    code: 'malformed_target',
  },
  { name: 'Authorization twice', bytes: twice(0), outcomes: bad, code: 'repeated_header' },
  { name: 'the timestamp twice', bytes: twice(1), outcomes: bad, code: 'repeated_header' },
  { name: 'the signature twice', bytes: twice(2), outcomes: bad, code: 'repeated_header' },
  {
    name: 'the signature twice, in another case',
    bytes: twice(2, (line) => line.toLowerCase()),
    outcomes: bad,
    code: 'repeated_header',
  },
  {
    name: 'an empty Authorization after a good one',
    bytes: signed(['Authorization:']),
    outcomes: bad,
    code: 'repeated_header',
  },
  { name: 'two hosts', bytes: signed(['Host: elsewhere.test']), outcomes: bad, code: 'repeated_host' },
  {
    name: 'HTTP/1.1 without Host',
    bytes: replaced(`${host}\r\n`, ''),
    outcomes: bad,
    code: 'malformed_target',
  },
  {
    name: 'an open route without Host',
    bytes: () => head('GET /time HTTP/1.1', close),
    outcomes: bad,
    code: 'malformed_target',
  },
  { name: 'the same host twice', bytes: signed([host]), outcomes: bad, code: 'repeated_host' },
  {
    name: 'absolute form',
    bytes: spelled((target) => `http://sealpost.test${target}`),
    outcomes: bad,
    code: 'malformed_target',
  },
  {
    name: 'absolute form of another scheme',
    bytes: spelled((target) => `ftp://sealpost.test${target}`),
    outcomes: bad,
    code: 'malformed_target',
  },
  { name: 'authority form', bytes: spelled(() => 'sealpost.test:80'), outcomes: bad, code: 'malformed_target' },
  { name: 'asterisk form', bytes: spelled(() => '*'), outcomes: bad, code: 'malformed_target' },
  {
    name: 'OPTIONS of the whole server',
    bytes: () => head('OPTIONS * HTTP/1.1', host, close),
    outcomes: bad,
    code: 'malformed_target',
  },
  {
    name: 'CONNECT',
    bytes: () => head('CONNECT sealpost.test:443 HTTP/1.1', host),
    outcomes: [[405]],
    code: 'method_not_allowed',
  },
  { name: 'a fragment', bytes: spelled((target) => `${target}#x`), outcomes: bad, code: 'malformed_target' },
  { name: 'a body', bytes: signed(['Content-Length: 2'], '{}'), outcomes: bad, code: 'unexpected_body' },
  {
    name: 'a chunked body',
    bytes: signed(['Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'),
    outcomes: bad,
    code: 'unexpected_body',
  },
  {
    name: 'an empty chunked body',
    bytes: signed(['Transfer-Encoding: chunked'], '0\r\n\r\n'),
    outcomes: bad,
    code: 'unexpected_body',
  },
  {
    name: 'a body that is expected to be asked for',
    bytes: signed(['Content-Length: 2', 'Expect: 100-continue']),
    outcomes: bad,
    code: 'unexpected_body',
  },
  {
    name: 'a chunk whose size is no number',
    bytes: signed(['Transfer-Encoding: chunked'], 'zz\r\n{}\r\n0\r\n\r\n'),
    outcomes: bad,
  },
  {
    name: 'Content-Length and Transfer-Encoding',
    bytes: signed(['Content-Length: 2', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    outcomes: bad,
  },
  {
    name: 'Transfer-Encoding and Content-Length',
    bytes: signed(['Transfer-Encoding: chunked', 'Content-Length: 2'], '0\r\n\r\n'),
    outcomes: bad,
  },
  { name: 'two lengths', bytes: signed(['Content-Length: 0', 'Content-Length: 0']), outcomes: bad },
  { name: 'a negative length', bytes: signed(['Content-Length: -1']), outcomes: bad },
  { name: 'a length with a sign', bytes: signed(['Content-Length: +2'], '{}'), outcomes: bad },
  { name: 'a length beyond every number', bytes: signed(['Content-Length: 99999999999999999999999']), outcomes: bad },
  {
    name: 'a length of gigabytes',
    bytes: signed(['Content-Length: 9999999999']),
    outcomes: bad,
    code: 'unexpected_body',
  },
  { name: 'another transfer encoding', bytes: signed(['Transfer-Encoding: xchunked']), outcomes: bad },
  { name: 'a null byte in a header', bytes: signed(['X-Other: a\0b']), outcomes: bad },
  { name: 'a null byte in the target', bytes: spelled((target) => `${target}\0`), outcomes: bad },
  { name: 'a carriage return alone', bytes: signed(['X-Other: a\rX-More: b']), outcomes: bad },
  { name: 'line feeds alone', bytes: (m) => signed([])(m).replaceAll('\r\n', '\n'), outcomes: bad },
  { name: 'a folded header', bytes: signed(['X-Other: a\r\n b']), outcomes: bad },
  { name: 'a signature folded into two lines', bytes: replaced('SHA256: ', 'SHA256:\r\n '), outcomes: bad },
  { name: 'a space before the colon', bytes: replaced('Authorization:', 'Authorization :'), outcomes: bad },
  { name: 'a header without a name', bytes: signed([': x']), outcomes: bad },
  { name: 'a header line without a colon', bytes: signed(['nonsense']), outcomes: bad },
  { name: 'a method in small letters', bytes: asked('get'), outcomes: bad },
  { name: 'a method that does not exist', bytes: asked('FETCH'), outcomes: bad },
  { name: 'HTTP/1.2', bytes: replaced('HTTP/1.1', 'HTTP/1.2'), outcomes: bad },
  { name: 'the HTTP/2 preface', bytes: () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', outcomes: bad },
  { name: 'a TLS hello', bytes: () => Buffer.from('16030100a5010000a10303', 'hex'), outcomes: bad },
  {
    name: 'noise',
    bytes: () => Buffer.from(Array.from({ length: 256 }, (_, i) => (i * 167 + 13) % 256)),
    outcomes: bad,
  },
  {
    name: 'a percent sign alone',
    bytes: spelled((target) => `${target}&x=%`),
    outcomes: bad,
    code: 'malformed_target',
  },
  {
    name: 'an encoding that is no UTF-8',
    bytes: spelled((target) => `${target}&x=%ff`),
    outcomes: bad,
    code: 'malformed_target',
  },
  {
    name: 'raw bytes that are no UTF-8',
    bytes: spelled((target) => `${target}&x=\xff`),
    outcomes: bad,
    code: 'malformed_target',
  },
  {
    name: 'a line break in an argument',
    bytes: spelled((target) => `${target.replace('feedID=', 'feedID=%0d%0aX-Injected:1')}`),
    outcomes: bad,
    code: 'malformed_argument',
  },
];

export const lostCases: readonly RawCase[] = [
  {
    name: 'an encoded letter in the path',
    bytes: spelled((target) => target.replace('/api', '/%61pi')),
    outcomes: gone,
  },
  {
    name: 'an encoded capital in the path',
    bytes: spelled((target) => target.replace('/api', '/%41pi')),
    outcomes: gone,
  },
  {
    name: 'an encoded letter in the last part',
    bytes: spelled((target) => target.replace('latest', '%6catest')),
    outcomes: gone,
  },
  {
    name: 'an encoded slash',
    bytes: spelled((target) => target.replace('v1/reports', 'v1%2Freports')),
    outcomes: gone,
  },
  { name: 'encoded dots', bytes: spelled((target) => target.replace('/api', '/time/%2e%2e/api')), outcomes: gone },
  { name: 'dots up', bytes: spelled((target) => target.replace('/api', '/time/../api')), outcomes: gone },
  {
    name: 'dots up from an open route to a closed one',
    bytes: () => head('GET /time/../api/v1/feeds HTTP/1.1', host, close),
    outcomes: gone,
  },
  { name: 'a dot', bytes: spelled((target) => target.replace('/v1', '/./v1')), outcomes: gone },
  { name: 'a doubled slash inside', bytes: spelled((target) => target.replace('/v1', '//v1')), outcomes: gone },
  { name: 'three leading slashes', bytes: spelled((target) => `//${target}`), outcomes: gone },
  { name: 'a trailing slash', bytes: spelled((target) => target.replace('latest?', 'latest/?')), outcomes: gone },
  { name: 'a path in capitals', bytes: spelled((target) => target.replace('/api', '/API')), outcomes: gone },
  { name: 'a path parameter', bytes: spelled((target) => target.replace('latest?', 'latest;v=1?')), outcomes: gone },
  { name: 'an encoded question mark', bytes: spelled((target) => target.replace('?', '%3F')), outcomes: gone },
  { name: 'an encoded null byte', bytes: spelled((target) => target.replace('latest?', 'latest%00?')), outcomes: gone },
  { name: 'backslashes', bytes: spelled((target) => target.replace('/api/v1', '/api\\v1')), outcomes: gone },
  { name: 'a space, encoded', bytes: spelled((target) => target.replace('latest?', 'latest%20?')), outcomes: gone },
  { name: 'the private listener’s paths', bytes: () => head('GET /metrics HTTP/1.1', host, close), outcomes: gone },
];

export const otherCases: readonly RawCase[] = [
  ...['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY'].map(
    (method): RawCase => ({
      name: `the method ${method}`,
      bytes: asked(method),
      // Some Node versions know QUERY, others refuse it as no method at all.
      outcomes: method === 'QUERY' ? [[400], [405]] : [[405]],
      ...(method !== 'QUERY' && { code: 'method_not_allowed' }),
    }),
  ),
  {
    name: 'another method in a header',
    bytes: asked('POST', 'X-HTTP-Method-Override: GET'),
    outcomes: [[405]],
    code: 'method_not_allowed',
  },
  {
    name: 'an upgrade of a path that speaks WebSocket',
    bytes: ({ sign, target }) =>
      head(
        `GET ${socketOf(target)} HTTP/1.1`,
        host,
        'Connection: Upgrade, close',
        'Upgrade: websocket',
        ...sign(socketOf(target)),
      ),
    outcomes: [[426]],
    code: 'upgrade_required',
  },
  {
    name: '2,000 headers',
    bytes: signed(Array.from({ length: 2_000 }, (_, i) => `h${i}: 1`)),
    outcomes: large,
    code: 'head_too_large',
  },
  {
    name: '500 headers that fit',
    bytes: signed(Array.from({ length: 500 }, (_, i) => `h${i}: 1`)),
    outcomes: large,
    code: 'head_too_large',
  },
  {
    name: 'a header of 64 KB',
    bytes: signed([`X-Other: ${'x'.repeat(65_536)}`]),
    outcomes: large,
    code: 'head_too_large',
  },
  {
    name: 'a header name of 64 KB',
    bytes: signed([`${'x'.repeat(65_536)}: 1`]),
    outcomes: large,
    code: 'head_too_large',
  },
  {
    name: 'a request line of 64 KB',
    bytes: spelled((target) => `${target}&x=${'x'.repeat(65_536)}`),
    outcomes: large,
    code: 'head_too_large',
  },
  { name: 'a method of 64 KB', bytes: asked('G'.repeat(65_536)), outcomes: bad },
  {
    name: 'a good request, then a bad one',
    bytes: (m) => signed([])(m).replace(`${close}\r\n`, '') + replaced('HTTP/1.1', 'HTTP/1.2')(m),
    outcomes: [[200], [200, 400]],
  },
  { name: 'a request after one that says close', bytes: (m) => signed([])(m) + signed([])(m), outcomes: [[200]] },
  {
    name: 'a request hidden in a body',
    bytes: (m) => {
      const hidden = signed([])(m);
      return signed([`Content-Length: ${hidden.length}`], hidden)(m);
    },
    outcomes: bad,
    code: 'unexpected_body',
  },
];

const socketOf = (target: string): string => target.replace('/reports/latest?feedID=', '/ws?feedIDs=');
