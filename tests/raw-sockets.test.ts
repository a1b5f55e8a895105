// The read API over raw sockets: whatever bytes come, no 5xx, no route without its authentication, and the service goes on.
import { connect } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { badCases, goodCases, lostCases, type Material, otherCases, type RawCase } from './raw-requests.ts';
import { countOf, seedOf, tally } from './support/full-count.ts';
import { createRandom } from './support/random.ts';
import { type Exchange, exchange, head, type RawAnswer, toLines } from './support/raw-http.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
const nowMs = now * 1_000;
const [feedId, other] = [secondStream(1), secondStream(2)];
const target = `/api/v1/reports/latest?feedID=${feedId}`;
let service: Service;
let port: number;
let reader: Credentials;
/** Begun before all else, because the server waits for seconds: the other tests run meanwhile. */
let slowHead: Promise<Exchange>;

beforeAll(async () => {
  service = await openService([testStream(feedId), testStream(other)], signerSets, () => nowMs);
  await service.append([feedId, other].map((id) => report(id, now - 1, now - 1)));
  reader = await service.addAccount(['public']);
  port = Number(new URL(service.url).port);
  slowHead = exchange(port, 'GET /time HTTP/1.1\r\nHost: a\r\n');
});
afterAll(() => service.close());

const sign = (signed: string, method = 'GET'): readonly string[] =>
  toLines(signRequest({ method, target: signed, userId: reader.userId, timestampMs: nowMs }, reader.secret));
const material: Material = { target, sign };
/** The same bytes without authentication, and with a signature that is wrong in its last digit. */
const strangers: readonly Material[] = [
  { target, sign: () => ['X-A: a', 'X-B: b', 'X-C: c'] },
  {
    target,
    sign: (signed, method) =>
      sign(signed, method).map((line) => line.replace(/[0-9a-f]$/, (digit) => (digit === '0' ? '1' : '0'))),
  },
];

const statusesOf = (answers: readonly RawAnswer[]): readonly number[] => answers.map(({ status }) => status);

// Random: a counter would tell every client how many requests the others send.
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const expectToldErrors = (answers: readonly RawAnswer[]): void => {
  for (const { status, headers, body } of answers) {
    expect(status).toBeLessThan(500);
    expect(headers['x-request-id']).toMatch(uuid);
    if (status < 400) continue;
    const { code, error, message, requestId } = JSON.parse(body);
    expect(requestId).toBe(headers['x-request-id']);
    expect([code, error]).toEqual([expect.stringMatching(/^[a-z_]+$/), message]);
    expect(headers['cache-control']).toBe('no-store');
  }
};

const expectGoesOn = async (): Promise<void> => {
  const { answers } = await exchange(port, head(`GET ${target} HTTP/1.1`, 'Host: a', ...sign(target)), {
    answersMax: 1,
  });
  expect(statusesOf(answers)).toEqual([200]);
};

describe.each([
  ['good requests of all kinds', goodCases],
  ['requests that are refused', badCases],
  ['other spellings of a path', lostCases],
  ['other methods, sizes and orders', otherCases],
] as const)('raw sockets: %s', (_, cases: readonly RawCase[]) => {
  test.each(cases)('$name', async ({ bytes, outcomes, code, open }) => {
    const { answers, rest } = await exchange(port, bytes(material));
    expect(rest).toBe('');
    expect(outcomes).toContainEqual(statusesOf(answers));
    expectToldErrors(answers);
    if (code !== undefined) expect(JSON.parse(answers.at(-1)?.body ?? '{}').code).toBe(code);
    for (const stranger of strangers) {
      const refused = (await exchange(port, bytes(stranger))).answers;
      expectToldErrors(refused);
      if (!open) expect(refused.filter(({ status }) => status < 400)).toEqual([]);
    }
    await expectGoesOn();
  });
});

const changes = countOf(1_000, 100_000);
const atOnce = 20;

test(`raw sockets: one changed byte of what is signed never reads anything, ${changes} times`, async () => {
  const seed = seedOf(20_251_115);
  const roll = createRandom(seed);
  const lines = sign(target);
  const original = Buffer.from(head(`GET ${target} HTTP/1.1`, 'Host: sealpost.test', 'Connection: close', ...lines));
  // Method, target, user id, timestamp and signature are signed. Host, other headers, the version, the case of header names and
  // spaces around values are not, and the hex digits of a signature count in either case.
  const parts = ['GET', target, ...lines.map((line) => line.slice(line.indexOf(': ') + 2))];
  const spans = parts.map((part) => {
    const from = original.indexOf(part);
    return { from, to: from + part.length };
  });
  const mutate = () => {
    const at = roll(original.length);
    const bytes = Buffer.from(original);
    while (bytes[at] === original[at]) bytes[at] = roll(4) === 0 ? (original[at] ?? 0) ^ 0x20 : roll(256);
    const part = spans.findIndex(({ from, to }) => at >= from && at < to);
    const onlyCase =
      part === 4 && String.fromCharCode(bytes[at] ?? 0).toLowerCase() === String.fromCharCode(original[at] ?? 0);
    return { at, bytes, signed: part !== -1 && !onlyCase };
  };
  const counts = { refused: 0, outside: 0 };
  const runOne = async (): Promise<void> => {
    const { at, bytes, signed } = mutate();
    // Our side is closed after writing: bytes that no longer are a whole request are not waited for.
    const { answers } = await exchange(port, bytes, { halfClose: true });
    const context = `seed ${seed}, byte ${at} is now ${bytes[at]}`;
    for (const { status } of answers) expect(status, context).toBeLessThan(500);
    if (signed)
      expect(
        answers.filter(({ status }) => status < 400),
        context,
      ).toEqual([]);
    counts[signed ? 'refused' : 'outside'] += 1;
  };
  for (let done = 0; done < changes; done += atOnce) await Promise.all(Array.from({ length: atOnce }, runOne));
  tally({ 'rejected, in what is signed': counts.refused, 'in what is not': counts.outside });
  expect(counts.refused).toBeGreaterThan(changes / 2);
  await expectGoesOn();
});

describe('raw sockets: connections', () => {
  const get = (path: string, ...lines: readonly string[]): string =>
    head(`GET ${path} HTTP/1.1`, 'Host: a', ...sign(path), ...lines);

  test('requests in a row are answered in their order, whichever is ready first', async () => {
    // The first is read from the store and waits, the second is answered from memory.
    const paths = [`/api/v1/reports?feedID=${other}&timestamp=${now - 1}`, target, '/api/v1/feeds', target];
    const { answers } = await exchange(port, paths.map((path) => get(path)).join(''), { answersMax: 4 });
    expect(statusesOf(answers)).toEqual([200, 200, 200, 200]);
    expect(answers.map(({ body }) => JSON.parse(body).report?.feedID)).toEqual([other, feedId, undefined, feedId]);
  });

  test('a client that closes its side after asking is still answered', async () => {
    expect(statusesOf((await exchange(port, get(target), { halfClose: true })).answers)).toEqual([200]);
  });

  test.each([
    ['nothing', ''],
    ['half a request line', 'GET /ti'],
    ['half a head', 'GET /time HTTP/1.1\r\nHost:'],
    ['half a body', `${head('GET /time HTTP/1.1', 'Host: a', 'Content-Length: 100')}x`],
  ])('a client that sends %s and leaves is refused or closed', async (_, bytes) => {
    const { answers } = await exchange(port, bytes, { halfClose: true });
    expect([[], [400]]).toContainEqual(statusesOf(answers));
    expectToldErrors(answers);
    await expectGoesOn();
  });

  test('a client that resets in the middle harms nobody', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write('GET /time HTTP/1.1\r\nHo', () => socket.resetAndDestroy()),
      );
      socket.on('close', () => resolve());
      socket.on('error', () => {});
    });
    await expectGoesOn();
  });

  test('a head that never ends is answered 408 and closed', async () => {
    const { answers } = await slowHead;
    expect(statusesOf(answers)).toEqual([408]);
    expectToldErrors(answers);
  });

  test.each([
    ['never comes', [], 'Content-Length: 100'],
    ['never ends', ['1\r\nx\r\n'.repeat(100)], 'Transfer-Encoding: chunked'],
    // Once more, because a busy machine may take these 4 s for other things.
  ])('a body that %s is refused, and its connection closed at once', { retry: 2 }, async (_, chunks, framing) => {
    const startedMs = performance.now();
    const { answers } = await exchange(port, head('POST /time HTTP/1.1', 'Host: a', framing) + chunks.join(''));
    expect(answers.map(({ status, headers }) => [status, headers.connection])).toEqual([[400, 'close']]);
    expect(performance.now() - startedMs).toBeLessThan(4_000); // node's own time-out takes 8 s
  });
});
