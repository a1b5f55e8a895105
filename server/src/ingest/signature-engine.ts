// Chooses what recovers public keys: native libsecp256k1 where the optional package has a binary that loads, WebAssembly elsewhere (D202).
import { createRequire } from 'node:module';
import type { SignatureEngine } from '@sealpost/protocol';

export const signatureEngines = ['native', 'webassembly'] as const;

/** Which engine verifies signatures, and why it is not the native one. */
export type ChosenEngine = {
  readonly name: (typeof signatureEngines)[number];
  /** Null for the native engine. */
  readonly reason: string | null;
};

/** For the operator: the engine that verifies from now on. */
export type EngineChosen = { readonly kind: 'signatureEngine'; readonly engine: ChosenEngine };

/** What is used of the package `secp256k1`. It throws where there is no key. */
type NativeBindings = {
  readonly ecdsaRecover: (
    signature: Uint8Array,
    recoveryId: number,
    digest: Uint8Array,
    isCompressed: boolean,
  ) => Uint8Array;
};

/** The package's `bindings.js` throws if no binary loads. Its main module would recover in JavaScript instead, 15 times slower than WebAssembly. */
const loadNative = (): NativeBindings => createRequire(import.meta.url)('secp256k1/bindings.js');

/** Loads the engines, once per process or thread. Those of ox take 130 ms to load, so only what verifies does. */
export const openSignatureEngine = async (
  load: () => NativeBindings = loadNative,
): Promise<{ readonly engine: SignatureEngine; readonly chosen: ChosenEngine }> => {
  const { keccak256 } = await (await import('ox/wasm/Hash')).engine();
  try {
    const recoverPublicKey = recoverWith(load());
    checkRecovery(recoverPublicKey);
    return { engine: { keccak256, recoverPublicKey }, chosen: { name: 'native', reason: null } };
  } catch (error) {
    const { recoverPublicKey } = await (await import('ox/wasm/Secp256k1')).engine();
    return { engine: { keccak256, recoverPublicKey }, chosen: { name: 'webassembly', reason: firstLineOf(error) } };
  }
};

const recoverWith =
  ({ ecdsaRecover }: NativeBindings): SignatureEngine['recoverPublicKey'] =>
  (signature, digest) => {
    const [id] = signature;
    if (id !== 0 && id !== 1) throw new RangeError('A recovery id is 0 or 1.');
    return ecdsaRecover(signature.subarray(1), id, digest, false);
  };

/** A signature by the private key 1 of 32 bytes 0x01; the key that it yields is the generator of the curve. */
const knownSignature =
  '01747a6c6bd9a8ff0b77a99b8f274f5df5198b5dddc33edd4bc89e459d13dfa6177431bfa016325b8f27491781d1c462999f1dde760560373a517d29161c2df139';
const knownKey =
  '0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8';

/** A binary that loads may still be wrong for this processor: it must recover a known key, and no key where there is none. */
const checkRecovery = (recover: SignatureEngine['recoverPublicKey']): void => {
  const signature = Uint8Array.from(Buffer.from(knownSignature, 'hex'));
  const digest = new Uint8Array(32).fill(1);
  if (Buffer.from(recover(signature, digest)).toString('hex') !== knownKey)
    throw new Error('The native engine recovered a wrong key.');
  let hasRecovered = true;
  try {
    recover(signature.fill(0, 33), digest);
  } catch {
    hasRecovered = false; // s is 0
  }
  if (hasRecovered) throw new Error('The native engine accepted a malformed signature.');
};

const reasonCharactersMax = 200;

const firstLineOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1).join('').slice(0, reasonCharactersMax);
