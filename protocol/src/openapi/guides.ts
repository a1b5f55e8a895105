// The description of the OpenAPI document: what a new user needs before the first request, as Markdown with a heading for each guide.
// Paragraphs, lists, `code`, code blocks and bold only, which is all that the explorer's page at /docs renders.
import { limits } from '../limits.ts';
import { authHeaders, emptyBodySha256, signatureOf, skewMaxMs, stringToSign } from '../request-signing.ts';
import type { DocumentedBounds } from './document.ts';

/** Markdown: a lead, then `## ` sections. */
export const describeApi = (bounds: DocumentedBounds): string =>
  [
    'Signed price reports over a read-only HTTP API, with a catalog of streams.',
    section('Requests', requests),
    section('Authentication', authentication()),
    section('Errors', errors),
    section('Rate limits', rateLimits(bounds)),
    section('Time and validity', time(bounds)),
    section('Live reports', live),
  ].join('\n\n');

const section = (title: string, blocks: readonly string[]): string => [`## ${title}`, ...blocks].join('\n\n');

const list = (...items: readonly string[]): string => items.map((item) => `- ${item}`).join('\n');

const block = (language: string, ...lines: readonly string[]): string =>
  [`\`\`\`${language}`, ...lines, '```'].join('\n');

const number = (value: number): string => value.toLocaleString('en-US');

const requests = [
  'All requests are GET or HEAD and have no body. HEAD answers like GET, without the body. Answers are JSON in UTF-8.',
  'Unknown arguments are ignored; a missing, malformed or repeated one is an error that names it. An unknown path is 404 `route_not_found`, another method 405 `method_not_allowed`, and OPTIONS returns 204 for browsers.',
  'New codes and response fields may appear; ignore those you do not know.',
];

/** A case of `vectors/request-signing.json`. */
const signingCase = {
  method: 'GET',
  target:
    '/api/v1/reports?feedID=0x000359843a543ee2fe414dc14c7e7920ef10f4372990b79d6361cdc0dd1ba782&timestamp=1763199999',
  userId: '4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d',
  timestampMs: 1_763_200_000_123,
} as const;
const signingSecret = 'sealpost-vector-secret';

const authentication = (): readonly string[] => {
  const { method, target, userId, timestampMs } = signingCase;
  return [
    'A signed request carries three headers:',
    list(
      `\`${authHeaders.userId}\`: the bare user ID, a UUID without a scheme word.`,
      `\`${authHeaders.timestamp}\`: the time of signing in Unix milliseconds, 13 decimal digits.`,
      `\`${authHeaders.signature}\`: the signature, 64 hex digits.`,
    ),
    'The signature is the lower-case hex HMAC-SHA256, keyed by the UTF-8 bytes of the secret, of this string, joined by single spaces:',
    block('text', 'METHOD target SHA256_HEX(body) userId timestampMs'),
    'The target is path, `?` and query exactly as sent. The body is empty, so its hash is always the one below. With this request and the secret `' +
      `${signingSecret}\`, the string to sign is:`,
    block('text', stringToSign(method, target, emptyBodySha256, userId, timestampMs)),
    'and the request:',
    block(
      'http',
      `${method} ${target} HTTP/1.1`,
      `${authHeaders.userId}: ${userId}`,
      `${authHeaders.timestamp}: ${timestampMs}`,
      `${authHeaders.signature}: ${signatureOf(signingCase, signingSecret)}`,
    ),
    `The signed time may differ from the server's clock, which \`/time\` returns, by ${number(skewMaxMs)} ms unless the server is configured otherwise. Sign each attempt again. \`sealpost sign METHOD TARGET\` prints a signed request for curl.`,
  ];
};

const errors = [
  'All errors have the same body. Branch on its `code`, show its `message`, and quote its `requestId`, which is also in the header `X-Request-Id`.',
  'Retry codes that are marked so, and answers without a code of 500 and above, with exponential back-off and not before `Retry-After`. Change the request before you retry any other 4xx.',
];

const rateLimits = ({ requestsPerSecond }: DocumentedBounds): readonly string[] => [
  `An account has ${requestsPerSecond > 0 ? `${number(requestsPerSecond)} requests per second` : 'no limit'} on each route by default; routes do not share. The limit is a token bucket that refills continuously, so a burst of the whole limit is fine. A request costs one token unless its operation says otherwise.`,
  'Authenticated answers have `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. Above the limit the answer is 429 `rate_limited`, with `Retry-After`. Requests without authentication count per IP address.',
];

const time = ({ retentionDays }: DocumentedBounds): readonly string[] => [
  'A report is valid from `validFromTimestamp` to `observationsTimestamp`, both included, in Unix seconds. The windows of a stream are contiguous; after an outage there is a gap.',
  'The report at a time is the one whose window contains it, never the nearest: outside its window, a price is wrong. If there is none, the answer is 404 `report_not_found` with the reason and the neighbors.',
  `Reports of the last ${number(retentionDays)} days can be read; an older time is 400 \`timestamp_out_of_bounds\`. Feed IDs that begin with \`0x1\` are of streams with timestamps in milliseconds; the milliseconds are in the report's bytes.`,
];

const reportKeys = (ms: '' | 'Ms', digits: string): string =>
  `"feedID":"0x0003…","validFromTimestamp${ms}":1763199999${digits},"observationsTimestamp${ms}":1763200000${digits},"fullReport":"0x0006…"`;

const live = [
  'There are two ways to receive reports as they arrive. Both need the three headers.',
  '**WebSocket.** One binary message in UTF-8 JSON for each report that is newer than the last. `/api/v2/ws` has times in milliseconds:',
  block('json', `{"report":{${reportKeys('', '')}}}`, `{"report":{${reportKeys('Ms', '000')}}}`),
  '**Event stream.** Server-sent events, for browsers and for clients that resume without a gap: send the last `id` as `Last-Event-ID`. Late reports are included. A line that begins with a colon is a keep-alive, every 10 seconds:',
  block('text', 'id: x1Yk0bqVQ6mTn2JtG0l5Ww', `data: {${reportKeys('', '')}}`),
  'If the reports after an ID are no longer kept, the first event is `event: missed`: read pages for what came before it.',
  `WebSockets and event streams count together: an account has at most ${limits.socketsPerAccount} open unless the server is configured otherwise, and the next one gets 429 \`too_many_sockets\`.`,
];
