import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHmacKey, hmacHex } from './hmac.ts';

const latin1 = fc
  .array(fc.integer({ min: 0, max: 255 }), { maxLength: 400 })
  .map((codes) => String.fromCharCode(...codes));

test('hmac: it is the HMAC-SHA256 of any key and any latin1 text', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), latin1, (secret, text) => {
      const key = Buffer.from(secret);
      expect(hmacHex(createHmacKey(key), text)).toBe(createHmac('sha256', key).update(text, 'latin1').digest('hex'));
    }),
    { numRuns: 300 },
  );
});

test('hmac: texts of different lengths do not affect each other', () => {
  const key = Buffer.from('key');
  for (const text of ['a'.repeat(60_000), 'b', 'c'.repeat(9_000), '']) {
    expect(hmacHex(createHmacKey(key), text)).toBe(createHmac('sha256', key).update(text, 'latin1').digest('hex'));
  }
});

test('hmac: a text longer than any request is rejected', () => {
  expect(() => hmacHex(createHmacKey(Buffer.from('key')), 'a'.repeat(65_537))).toThrow(RangeError);
});
