// What verifies signatures in Node: keccak256 and libsecp256k1 as WebAssembly. No native binding: a thread that is ended while it loads one takes the
// process with it (D202).
import type { SignatureEngine } from '@sealpost/protocol';

/** Loads the engine, once per process or thread. All of ox takes 130 ms to load, so only what verifies does. */
export const openSignatureEngine = async (): Promise<SignatureEngine> => {
  const [{ keccak256 }, { recoverPublicKey }] = await Promise.all([
    import('ox/wasm/Hash').then(({ engine }) => engine()),
    import('ox/wasm/Secp256k1').then(({ engine }) => engine()),
  ]);
  return { keccak256, recoverPublicKey };
};
