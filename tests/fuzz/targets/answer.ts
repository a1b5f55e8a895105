// Answers of a server that may send anything, to every call of the SDK. An input is the number of a call, of a status and of headers, then the body.
import assert from 'node:assert/strict';
import { type Client, createClient, SealpostError } from '@sealpost/client';
import { createMaterial, reportJsonOf } from '../material.ts';
import { shapeOf, type Target } from '../target.ts';

const statuses = [200, 206, 204, 301, 304, 400, 401, 403, 404, 408, 410, 418, 500, 503, 429];
/** Some calls wait and try again as long as they are limited: then they are answered. */
const limitedAnswers = 3;
/** The longest wait that a server may ask for, with the random part on top. */
const waitMsMax = 2 * 3_600_000;
const headerSets: readonly Readonly<Record<string, string>>[] = [
  {},
  { Link: '</api/v1/reports/page>; rel="next"', Date: 'Sun, 16 Nov 2025 10:00:00 GMT', 'X-Request-Id': 'r-1' },
  {
    'Retry-After': '9999999999',
    'RateLimit-Limit': '5',
    'RateLimit-Remaining': '-1',
    'RateLimit-Reset': 'x',
    Date: 'x',
  },
  { Location: 'https://a.test/\u0007', 'Retry-After': 'Sun, 16 Nov 2025 10:00:00 GMT' },
];

type Call = (client: Client, feedId: string, other: string) => Promise<unknown>;

const range = { from: 1_763_200_000, to: 1_763_200_600 };

const calls: readonly Call[] = [
  (client, feedId) => client.latest(feedId),
  (client, feedId) => client.at(feedId, 1_763_200_000),
  (client, feedId, other) => client.bulk([feedId, other], 1_763_200_000),
  (client, feedId, other) => client.latestMany([feedId, other], { timeoutMs: 300 }), // else it waits as long as it is told to
  (client, feedId) => client.page(feedId, 1_763_200_000, 10),
  async (client, feedId) => {
    const found: unknown[] = [];
    for await (const one of client.pages(feedId, { from: 1_763_200_000, to: 1_763_200_600 } as never))
      if (found.push(one) >= 20) break;
    return found;
  },
  (client, feedId) => client.coverage(feedId, range),
  (client, feedId, other) => client.coverageMany([feedId, other], range),
  (client, feedId) => client.candles(feedId, { ...range, resolution: 60 }),
  (client, feedId, other) => client.candlesMany([feedId, other], { ...range, resolution: 60 }),
  (client) => client.feeds(),
  (client) => client.discovery(),
  (client) => client.signers(),
  (client) => client.time(),
  (client) => client.status(),
  (client) => client.latest('ETH/USD'),
];

const bodiesOf = (reports: readonly unknown[], feedId: string): readonly unknown[] => [
  { report: reports[0] },
  { reports },
  { reports: null, missing: [{ feedID: feedId, reason: 'no_data' }] },
  {
    from: 1_763_200_000,
    to: 1_763_200_600,
    seconds: 601,
    covered: 600,
    completeness: 0.99,
    gaps: [{ from: 1, to: 2 }],
  },
  {
    candles: [
      { start: 1_763_200_020, open: '1', high: '-2', low: '3', close: '123456789012345678901234567890', reports: 2 },
    ],
  },
  { streams: [{ feedID: feedId, candles: [], hours: [] }] },
  { feeds: [{ feedID: feedId }] },
  { feeds: [{ feedId, name: 'ETH/USD-Streams-CexPrice', baseAsset: 'ETH', quoteAsset: 'USD', status: 'live' }] },
  { [`0x${'ab'.repeat(32)}`]: { f: 1, addresses: ['1', '2', '3', '4'].map((digit) => `0x${digit.repeat(40)}`) } },
  { serverTimeMs: 1_763_200_000_000 },
  { error: 'No.', message: 'No.', code: 'rate_limited', requestId: 'r', retryAfterSeconds: 1 },
  { error: 'Timestamp out of bounds. Timestamp must be within the last 30 days.' },
];

const printable = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;

export const openAnswer = async (): Promise<Target> => {
  const { reports } = await createMaterial();
  const json = reports.slice(0, 3).map(reportJsonOf);
  const [feedId, other] = [json[0]?.feedID ?? '', json[1]?.feedID ?? ''];
  const run = async (input: Buffer): Promise<string> => {
    const [call = 0, status = 0, headers = 0] = input;
    let requests = 0;
    const client = createClient({
      baseUrl: 'http://a.test',
      userId: 'ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11',
      secret: 'secret',
      retries: 0,
      sleep: async (ms: number, signal: AbortSignal) => {
        assert.ok(ms >= 0 && ms <= waitMsMax, `a call waits for ${ms} ms`);
        await new Promise((resolve) => setImmediate(resolve));
        signal.throwIfAborted();
      },
      nowMs: () => 1_763_200_000_000,
      fetch: async () => {
        requests += 1;
        assert.ok(requests < 500, 'a call sends requests without end');
        const wanted = statuses[status % statuses.length] as number;
        const code = wanted === 429 && requests > limitedAnswers ? 200 : wanted;
        const hasBody = code !== 204 && code !== 304;
        return new Response(hasBody ? Uint8Array.from(input.subarray(3)) : null, {
          status: code,
          headers: headerSets[headers % headerSets.length] as Record<string, string>,
        });
      },
    } as never);
    try {
      const result = await (calls[call % calls.length] as Call)(client, feedId, other);
      return `${call % calls.length} ${Object.keys(Object(result)).join()} ${requests}`;
    } catch (error) {
      if (!(error instanceof SealpostError)) throw error;
      assert.match(error.message, printable, 'a message has control characters');
      assert.ok(error.message.length < 10_000, 'a message repeats the whole answer');
      JSON.stringify(error.toJSON());
      return `${call % calls.length} ${error.code.length > 30 ? 'long' : error.code} ${error.status} ${shapeOf(error.message).slice(0, 40)}`;
    }
  };
  const bodies = bodiesOf(json, feedId).map((body) => Buffer.from(JSON.stringify(body)));
  const seeds = calls.flatMap((_, call) =>
    bodies.flatMap((body, i) =>
      [i > 9 ? 5 : 0, 14].map((status) => Buffer.concat([Uint8Array.of(call, status, i % 4), body])),
    ),
  );
  return {
    seeds,
    words: [
      'report',
      'reports',
      'missing',
      'feeds',
      'candles',
      'streams',
      'code',
      'error',
      'null',
      '[]',
      '{}',
      '\u001b[2J',
    ],
    run,
  };
};
