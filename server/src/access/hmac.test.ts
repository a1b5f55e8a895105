import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHmacKey, hmacHex } from './hmac.ts';

const latin1 = fc
  .array(fc.integer({ min: 0, max: 255 }), { maxLength: 400, size: 'max' })
  .map((codes) => String.fromCharCode(...codes));

test('hmac: it is the HMAC-SHA256 of any key and any latin1 text', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200, size: 'max' }), latin1, (secret, text) => {
      const key = Buffer.from(secret);
      expect(hmacHex(createHmacKey(key), text)).toBe(createHmac('sha256', key).update(text, 'latin1').digest('hex'));
    }),
    { numRuns: 300 },
  );
});

test.each([0, 31, 32, 33, 63, 64, 65, 128])(
  'hmac: a key of %i bytes is padded or hashed as the standard says',
  (length) => {
    const key = Buffer.alloc(length, 0xa7);
    expect(hmacHex(createHmacKey(key), 'text')).toBe(createHmac('sha256', key).update('text').digest('hex'));
  },
);

test('hmac: texts of different lengths do not affect each other', () => {
  const key = Buffer.from('key');
  for (const text of ['a'.repeat(60_000), 'b', 'c'.repeat(9_000), '']) {
    expect(hmacHex(createHmacKey(key), text)).toBe(createHmac('sha256', key).update(text, 'latin1').digest('hex'));
  }
});

test('hmac: a text longer than any request is rejected', () => {
  const key = Buffer.from('key');
  const longest = 'a'.repeat(65_536);
  expect(hmacHex(createHmacKey(key), longest)).toBe(createHmac('sha256', key).update(longest).digest('hex'));
  expect(() => hmacHex(createHmacKey(key), `${longest}a`)).toThrow(
    new RangeError('A text of 65537 characters is not signed.'),
  );
});
