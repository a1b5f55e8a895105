// The engines that recover public keys agree on every edge.
import { portableEngine, type SignatureEngine } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { openSignatureEngine } from './verification.ts';

const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
const prime = 'fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f';
const generatorX = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
const generator = `04${generatorX}483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8`;
const [zero, one, ones] = ['0'.repeat(64), `${'0'.repeat(63)}1`, '01'.repeat(32)] as const;
/** A signature of `ones` by the private key 1. */
const r = '747a6c6bd9a8ff0b77a99b8f274f5df5198b5dddc33edd4bc89e459d13dfa617';
const s = '7431bfa016325b8f27491781d1c462999f1dde760560373a517d29161c2df139';
const highS = (BigInt(`0x${order}`) - BigInt(`0x${s}`)).toString(16);
/** No point of the curve has this x. */
const offCurve = `${'0'.repeat(63)}5`;
/** p − n: an x of r + n is below p only where r is below it. */
const belowMost = (BigInt(`0x${prime}`) - BigInt(`0x${order}`)).toString(16).padStart(64, '0');

const none = 'no key';
const vectors: readonly [name: string, signature: string, digest: string, key: string][] = [
  ['a signature', `01${r}${s}`, ones, generator],
  ['the other half of s, with the other id', `00${r}${highS}`, ones, generator],
  ['r is 0', `00${zero}${s}`, ones, none],
  ['s is 0', `01${r}${zero}`, ones, none],
  ['r is the order', `00${order}${s}`, ones, none],
  ['s is the order', `01${r}${order}`, ones, none],
  ['r is above the order', `00${prime}${s}`, ones, none],
  ['s has all bits', `01${r}${'f'.repeat(64)}`, ones, none],
  ['no point has r', `00${offCurve}${s}`, ones, none],
  ['no point has r, the other id', `01${offCurve}${s}`, ones, none],
  ['recovery id 2', `02${one}${s}`, ones, none],
  ['recovery id 3', `03${one}${s}`, ones, none],
  ['recovery id 2, r is p − n', `02${belowMost}${s}`, ones, none],
  ['recovery id 255', `ff${r}${s}`, ones, none],
  ['the key is the point at infinity', `00${generatorX}${ones}`, ones, none],
  ['the digest is the order, as if it were 0', `00${generatorX}${generatorX}`, order, generator],
  ['the digest is 0', `00${generatorX}${generatorX}`, zero, generator],
];

const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));

const keyOf = ({ recoverPublicKey }: SignatureEngine, signature: Uint8Array, digest: Uint8Array): string => {
  try {
    return Buffer.from(recoverPublicKey(signature, digest)).toString('hex');
  } catch {
    return none;
  }
};

const webAssembly = await openSignatureEngine();
const engines: readonly [string, SignatureEngine][] = [
  ['portable', portableEngine],
  ['WebAssembly', webAssembly],
];

test.each(engines)(
  'signature engine: %s recovers the key of every vector, and none where there is none',
  (_, engine) => {
    for (const [name, signature, digest, key] of vectors)
      expect([name, keyOf(engine, bytes(signature), bytes(digest))]).toEqual([name, key]);
  },
);

test('signature engine: any bytes give the same on WebAssembly as on the portable engine', () => {
  let state = 1;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  };
  for (let i = 0; i < 300; i++) {
    const signature = Uint8Array.from({ length: 65 }, (_, at) => (at === 0 ? next() & 1 : next()));
    const digest = Uint8Array.from({ length: 32 }, next);
    expect(keyOf(webAssembly, signature, digest)).toBe(keyOf(portableEngine, signature, digest));
  }
});
