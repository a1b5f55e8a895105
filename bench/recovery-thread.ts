// One thread that does nothing but recover public keys: the rate that no verified ingest can exceed.
import { parentPort } from 'node:worker_threads';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';

const { keccak256 } = await WasmHash.engine();
const { sign, recoverPublicKey } = await WasmSecp256k1.engine();
const digest = keccak256(Uint8Array.of(1));
const signature = sign(digest, keccak256(Uint8Array.of(2)), { prehash: false, extraEntropy: false });

parentPort?.on('message', (count: number) => {
  for (let i = 0; i < count; i++) recoverPublicKey(signature, digest);
  parentPort?.postMessage('done');
});
