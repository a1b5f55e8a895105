import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  checkSkew,
  emptyBodySha256,
  parseSignature,
  parseTimestampMs,
  parseUserId,
  signableTargets,
  signatureOf,
  signRequest,
  stringToSign,
} from './request-signing.ts';
import vectors from './vectors/request-signing.json' with { type: 'json' };

test.each(vectors.cases)('request signing vector: $name', (vector) => {
  const { method, target, userId, timestampMs, secret, body } = vector;
  expect(stringToSign(method, target, vector.bodySha256, userId, timestampMs)).toBe(vector.stringToSign);
  expect(signatureOf({ method, target, body, userId, timestampMs }, secret)).toBe(vector.signature);
});

test('request signing: the vectors have the three published cases and at least twenty others', () => {
  const published = vectors.cases.filter(({ name }) => name.startsWith('published'));
  expect(published.map(({ signature }) => signature)).toEqual([
    'e9b2aa1deb13b2abd078353a5e335b2f50307159ad28b433157d2c74dbab2072',
    '31b48ebdb13802b58978cd89eca0c3c68ddccf85392e703b55942544e7203d3d',
    '37190febe20b6f3662f6abbfa3a7085ad705ac64e88bde8c1a01a635859e6cf7',
  ]);
  expect(vectors.cases.length - published.length).toBeGreaterThanOrEqual(20);
});

test('request signing: the empty body has its well-known hash', () => {
  expect(emptyBodySha256).toBe(createHash('sha256').update('').digest('hex'));
});

test('request signing: the three headers, ready to send', () => {
  const { method, target, userId, timestampMs, secret, signature } = vectors.cases[3] as (typeof vectors.cases)[number]; // the file has more
  expect(signRequest({ method, target, userId, timestampMs }, secret)).toEqual({
    Authorization: userId,
    'X-Authorization-Timestamp': '1763200000123',
    'X-Authorization-Signature-SHA256': signature,
  });
});

test('request signing: agrees with node:crypto on any request', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 120 });
  fc.assert(
    fc.property(
      text,
      text,
      fc.uint8Array({ maxLength: 200 }),
      text,
      fc.nat(),
      (target, userId, body, secret, timestampMs) => {
        const bodyHash = createHash('sha256').update(body).digest('hex');
        const expected = createHmac('sha256', secret)
          .update(`GET ${target} ${bodyHash} ${userId} ${timestampMs}`)
          .digest('hex');
        expect(signatureOf({ method: 'GET', target, body, userId, timestampMs }, secret)).toBe(expected);
      },
    ),
    { numRuns: 300 },
  );
});

test('request signing: a doubled leading slash may be signed either way, nothing else may', () => {
  expect(signableTargets('//api/v1/feeds')).toEqual(['//api/v1/feeds', '/api/v1/feeds']);
  expect(signableTargets('/api/v1/feeds')).toEqual(['/api/v1/feeds']);
  expect(signableTargets('///api')).toEqual(['///api', '//api']);
});

test('Authorization: a bare UUID in any case, kept as sent', () => {
  expect(parseUserId('4C9A8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d')).toBe('4C9A8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d');
  for (const raw of [
    '',
    'Bearer 4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d',
    '4c9a8d1e2f6b4b7a9c3d5e8f7a6b1c2d',
    '{4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d}',
    '4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2g',
    '4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d0',
    '4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d\n',
  ]) {
    expect(() => parseUserId(raw), raw).toThrow(
      expect.objectContaining({
        code: 'malformed_header',
        message: 'Authorization has an incorrect value, expected the bare user ID, a UUID without a scheme word.',
        details: { header: 'Authorization', expected: 'the bare user ID, a UUID without a scheme word' },
      }),
    );
  }
});

test('X-Authorization-Timestamp: exactly 13 decimal digits', () => {
  expect(parseTimestampMs('1763200000123')).toBe(1_763_200_000_123);
  for (const raw of [
    '',
    '1763200000',
    '1763200000123456',
    '1763200000.123',
    '1.763e12',
    '0x19a8b3c4d5e',
    '+763200000123',
    ' 763200000123',
    '17632000001２3',
    '1763200000123, 1763200000123',
    '9'.repeat(40),
  ]) {
    expect(() => parseTimestampMs(raw), raw).toThrow(expect.objectContaining({ code: 'malformed_header' }));
  }
  const expected = 'the current Unix time in milliseconds, 13 decimal digits';
  const problem = (raw: string): unknown => {
    try {
      return parseTimestampMs(raw);
    } catch (error) {
      return (error as Error).message; // what it throws is an error
    }
  };
  expect(problem('1763200000')).toBe(
    `X-Authorization-Timestamp has an incorrect value, expected ${expected} (these are seconds: multiply by 1000).`,
  );
  for (const raw of ['', 'x1763200000', '1763200000x', '17632000001'])
    expect(problem(raw)).toBe(`X-Authorization-Timestamp has an incorrect value, expected ${expected}.`);
});

test('X-Authorization-Signature-SHA256: 64 hex digits in either case', () => {
  expect(parseSignature('AB'.repeat(32))).toBe('ab'.repeat(32));
  for (const raw of ['', 'ab'.repeat(31), 'ab'.repeat(33), `0x${'ab'.repeat(31)}`, 'xy'.repeat(32)]) {
    expect(() => parseSignature(raw)).toThrow(
      expect.objectContaining({
        code: 'malformed_header',
        message: 'X-Authorization-Signature-SHA256 has an incorrect value, expected an HMAC-SHA256 as 64 hex digits.',
      }),
    );
  }
});

test('headers: a wrong value is never repeated, it may be a secret', () => {
  for (const parse of [parseUserId, parseTimestampMs, parseSignature]) {
    try {
      parse('hunter2');
      expect.unreachable();
    } catch (error) {
      expect(JSON.stringify([String(error), error])).not.toContain('hunter2');
    }
  }
});

test.each([0, 4_999, -4_999, 5_000, -5_000])('clock: a difference of %i ms passes', (differenceMs) => {
  checkSkew(1_763_200_000_000 + differenceMs, 1_763_200_000_000);
});

test.each([5_001, -5_001, 60_000, -60_000])(
  'clock: a difference of %i ms is rejected with the server’s time',
  (differenceMs) => {
    expect(() => checkSkew(1_763_200_000_000 + differenceMs, 1_763_200_000_000)).toThrow(
      expect.objectContaining({
        code: 'clock_skew',
        details: expect.objectContaining({ serverTimeMs: 1_763_200_000_000, skewMs: differenceMs }),
      }),
    );
  },
);

test('clock: the deployment sets the tolerance', () => {
  checkSkew(10_000, 0, 10_000);
  expect(() => checkSkew(10_001, 0, 10_000)).toThrow('10001 ms ahead of the server time, at most 10000 ms is accepted');
  expect(() => checkSkew(0, 10_001, 10_000)).toThrow(
    'X-Authorization-Timestamp is 10001 ms behind the server time, at most 10000 ms is accepted. Synchronize the clock and sign again.',
  );
});
