import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recoverPublicKey } from './recover-key.ts';

const { Point } = secp256k1;
const n = Point.Fn.ORDER;

const word = (value: bigint): Uint8Array => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
const signatureOf = (id: number, r: bigint, s: bigint): Uint8Array =>
  Uint8Array.from([id, ...word(r % 2n ** 256n), ...word(s % 2n ** 256n)]);

/** What noble's own recovery returns; undefined where it throws. */
const reference = (signature: Uint8Array, digest: Uint8Array): string | undefined => {
  try {
    const key = secp256k1.Signature.fromBytes(signature, 'recovered').recoverPublicKey(digest);
    return Buffer.from(key.toBytes(false)).toString('hex');
  } catch {
    return undefined;
  }
};

const ours = (signature: Uint8Array, digest: Uint8Array): string | undefined => {
  try {
    return Buffer.from(recoverPublicKey(signature, digest)).toString('hex');
  } catch {
    return undefined;
  }
};

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

test('recover: the key of a signature is the signer’s', () => {
  fc.assert(
    fc.property(bytes32, bytes32, (secret, digest) => {
      fc.pre(secp256k1.utils.isValidSecretKey(secret));
      const signature = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' });
      expect(recoverPublicKey(signature, digest)).toEqual(secp256k1.getPublicKey(secret, false));
    }),
    { numRuns: 40 },
  );
});

test('recover: any bytes give the key that noble’s own recovery gives, or none where it gives none', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1 }), bytes32, bytes32, bytes32, (id, r, s, digest) => {
      const signature = Uint8Array.from([id, ...r, ...s]);
      expect(ours(signature, digest)).toBe(reference(signature, digest));
    }),
    { numRuns: 80 },
  );
});

test('recover: at the bounds of r, s and the digest it agrees with noble’s own', () => {
  const { x } = Point.BASE.toAffine();
  const p = Point.Fp.ORDER;
  const edges = [0n, 1n, 2n, x, n - 1n, n, n + 1n, p - 1n, p, p - n, 2n ** 256n - 1n];
  for (const r of edges)
    for (const s of [0n, 1n, n - 1n, n])
      for (const z of [0n, n, 2n ** 256n - 1n]) {
        const signature = signatureOf(0, r, s);
        expect(ours(signature, word(z)), `r ${r}, s ${s}, z ${z}`).toBe(reference(signature, word(z)));
      }
});

test('recover: a key at infinity, another recovery id, and other lengths are rejected', () => {
  const { x } = Point.BASE.multiply(5n).toAffine();
  const [s, isOdd] = [12_345n, Number(Point.BASE.multiply(5n).toAffine().y & 1n)];
  expect(() => recoverPublicKey(signatureOf(isOdd, x, s), word((s * 5n) % n))).toThrow('infinity');
  const good = signatureOf(isOdd, x, s);
  expect(recoverPublicKey(good, word(1n))).toHaveLength(65);
  for (const id of [2, 3, 27, 255]) expect(() => recoverPublicKey(signatureOf(id, x, s), word(1n))).toThrow(RangeError);
  expect(() => recoverPublicKey(good.subarray(0, 64), word(1n))).toThrow(RangeError);
  expect(() => recoverPublicKey(good, word(1n).subarray(1))).toThrow(RangeError);
});
