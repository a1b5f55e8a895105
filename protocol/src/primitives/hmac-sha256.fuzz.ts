import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hexOf, hmacSha256, sha256, utf8Bytes } from './hmac-sha256.ts';

test('sha256: the vectors of FIPS 180-4', () => {
  expect(hexOf(sha256(utf8Bytes('')))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  expect(hexOf(sha256(utf8Bytes('abc')))).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(hexOf(sha256(utf8Bytes('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq')))).toBe(
    '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
  );
  expect(hexOf(sha256(new Uint8Array(1_000_000).fill(0x61)))).toBe(
    'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0',
  );
});

test('sha256: a message of every length to beyond three blocks has the hash that node:crypto computes', () => {
  for (let length = 0; length <= 200; length += 1) {
    const message = Uint8Array.from({ length }, (_, i) => (i * 31 + length) & 0xff);
    expect(hexOf(sha256(message)), `${length} bytes`).toBe(createHash('sha256').update(message).digest('hex'));
  }
});

test('hmac-sha256: any key and message have the code that node:crypto computes', () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(bytes, bytes, (key, message) => {
      expect(hexOf(hmacSha256(key, message))).toBe(createHmac('sha256', key).update(message).digest('hex'));
    }),
    { numRuns: 300 },
  );
});

test('hmac-sha256: keys of 63 to 65 bytes, where the block ends and the key is hashed first', () => {
  for (const length of [63, 64, 65]) {
    const key = new Uint8Array(length).fill(7);
    expect(hexOf(hmacSha256(key, key))).toBe(createHmac('sha256', key).update(key).digest('hex'));
  }
});
