// Recovers the public key of a signature with noble's point arithmetic. noble's own `secp256k1` does the same, but includes signing, DER and
// two hash functions: 6 KB gzipped that a page does not need (D155).
import { Field } from '@noble/curves/abstract/modular.js';
import { weierstrass } from '@noble/curves/abstract/weierstrass.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';

/** SEC 2, section 2.4.1. */
const curve = {
  p: 0xfffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2fn,
  n: 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n,
  h: 1n,
  a: 0n,
  b: 7n,
  Gx: 0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798n,
  Gy: 0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8n,
} as const;

/** Halves the length of every scalar: β is a cube root of 1 modulo p, the vectors are a short basis of its lattice modulo n. */
const endomorphism = {
  beta: 0x7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501een,
  basises: [
    [0x3086d221a7d46bcde86c90e49284eb15n, -0xe4437ed6010e88286f547fa90abfe4c3n],
    [0x114ca50f7a8e2f3f657c1108d9d44cfd8n, 0x3086d221a7d46bcde86c90e49284eb15n],
  ] as [[bigint, bigint], [bigint, bigint]], // the type that noble asks for
};

const Point = /* @__PURE__ */ weierstrass(curve, { Fp: /* @__PURE__ */ Field(curve.p), endo: endomorphism });

const wordBytes = 32;

/**
 * Recovers the uncompressed key (65 bytes) from a signature (recovery id 0 or 1, r, s; 65 bytes) of a 32-byte digest. Throws if r or s is out
 * of range, or if no point on the curve has that r.
 */
export function recoverPublicKey(signature: Uint8Array, digest: Uint8Array): Uint8Array {
  const { Fn, BASE } = Point;
  const [id] = signature;
  if (signature.length !== 1 + 2 * wordBytes || digest.length !== wordBytes || (id !== 0 && id !== 1))
    throw new RangeError('A signature is a recovery id, r and s; a digest has 32 bytes.');
  const r = bytesToNumberBE(signature.subarray(1, 1 + wordBytes));
  const s = bytesToNumberBE(signature.subarray(1 + wordBytes));
  if (!Fn.isValidNot0(r) || !Fn.isValidNot0(s)) throw new RangeError('r or s is out of range.');
  const compressed = signature.slice(0, 1 + wordBytes);
  compressed[0] = 2 + id;
  const inverse = Fn.inv(r);
  // Q = r⁻¹ (s R − z G), by SEC 1, section 4.1.6. Nothing here is secret, so the time may depend on it.
  const minusZ = Fn.create(-bytesToNumberBE(digest) * inverse);
  const key = BASE.mulAddUnsafe(minusZ, Point.fromBytes(compressed), Fn.create(s * inverse));
  if (key.is0()) throw new RangeError('The key would be the point at infinity.');
  return key.toBytes(false);
}
