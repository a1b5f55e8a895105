// The oracles: keys, config digest and signatures, all derived from a seed.
import {
  type Address,
  addressOf,
  encodeFullReport,
  type Hex as HexDigits, // the declarations must not name ox, which CommonJS cannot import
  type NetworkType,
  oraclesMax,
  parseSignerSet,
  reportDigest,
  type Signature,
  type SignatureEngine,
  type SignerSet,
} from '@sealpost/protocol';
import * as Hex from 'ox/Hex';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import { mix } from './market/random.ts';

/** The usual sizes: n oracles, of which f may fail; f + 1 sign each report. */
export const networkProfiles = {
  testnet: { n: 4, f: 1, donId: 3 },
  mainnet: { n: 16, f: 5, donId: 4 },
} as const satisfies Record<NetworkType, { n: number; f: number; donId: number }>;

export type NetworkOptions = {
  readonly seed: string;
  /** `testnet` by default. */
  readonly networkType?: NetworkType | undefined;
  /** Oracles and tolerated faults; by default those of the network type's profile. */
  readonly n?: number | undefined;
  readonly f?: number | undefined;
};

/** A network that signs. */
export type Network = {
  readonly networkType: NetworkType;
  readonly signerSet: SignerSet;
  /** Its WASM engine, for verification. */
  readonly engine: SignatureEngine;
  /** Signs a body by f + 1 oracles, chosen per report; returns the full report. */
  readonly sign: (body: HexDigits, epochAndRound: number) => HexDigits;
};

type Engine = SignatureEngine & Pick<WasmSecp256k1.engine.ReturnType, 'sign' | 'getPublicKey'>;
type Oracle = { readonly privateKey: Uint8Array; readonly address: Address };

const pluginVersion = 1;

/** Compiles the WASM engine and derives the network; the same options give the same keys and the same signatures. */
export async function createNetwork(options: NetworkOptions): Promise<Network> {
  const { seed, networkType = 'testnet' } = options;
  const { n = networkProfiles[networkType].n, f = networkProfiles[networkType].f } = options;
  checkSize(n, f);
  const engine: Engine = { ...(await WasmSecp256k1.engine()), ...(await WasmHash.engine()) };
  const oracles = Array.from({ length: n }, (_, i) => createOracle(engine, `${networkType} oracle ${i} ${seed}`));
  const addresses = oracles.map(({ address }) => address);
  const configHash = hashText(engine, `${networkType} config ${f} ${addresses.join(' ')} ${seed}`);
  // OCR3 config digests of this plugin begin with 0x0009.
  const configDigest = `0x0009${Hex.fromBytes(configHash).slice(6)}` as const;
  return {
    networkType,
    signerSet: parseSignerSet(configDigest, { f, addresses }),
    engine,
    sign: createSign(engine, oracles, f, configDigest, extraHashOf(networkProfiles[networkType].donId)),
  };
}

const checkSize = (n: number, f: number): void => {
  if (!Number.isInteger(f) || f < 0) throw new RangeError(`f is ${f}, expected a whole number from 0 on.`);
  if (!Number.isInteger(n) || n <= 3 * f || n > oraclesMax) {
    throw new RangeError(`n is ${n}, expected more than 3f = ${3 * f} and at most ${oraclesMax} oracles.`);
  }
};

const hashText = (engine: SignatureEngine, text: string): Uint8Array =>
  engine.keccak256(new TextEncoder().encode(`sealpost simulator ${text}`));

// A hash is an invalid private key once in 2^127 times; the engine would reject it.
const createOracle = (engine: Engine, name: string): Oracle => {
  const privateKey = hashText(engine, name);
  return { privateKey, address: addressOf(engine.getPublicKey(privateKey), engine) };
};

const extraHashOf = (donId: number): Hex.Hex =>
  Hex.fromNumber((BigInt(donId) << 32n) | BigInt(pluginVersion), { size: 32 });

const createSign = (
  engine: Engine,
  oracles: readonly Oracle[],
  f: number,
  configDigest: Hex.Hex,
  extraHash: Hex.Hex,
): Network['sign'] => {
  const signBy = (oracle: Oracle, digest: Uint8Array): Signature => {
    const bytes = engine.sign(digest, oracle.privateKey, { prehash: false, extraEntropy: false });
    const hex = Hex.fromBytes(bytes);
    return { v: bytes[0] ?? 0, r: `0x${hex.slice(4, 68)}`, s: `0x${hex.slice(68)}` };
  };
  return (body, epochAndRound) => {
    const context = { configDigest, epochAndRound: Hex.fromNumber(epochAndRound, { size: 32 }), extraHash };
    const digest = reportDigest({ context, body }, engine);
    const signatures = chooseSome(oracles, f + 1, digest).map((oracle) => signBy(oracle, digest));
    return encodeFullReport({ context, body, signatures });
  };
};

// The choice depends on the digest, which covers the config digest and the report.
const chooseSome = <T>(items: readonly T[], count: number, digest: Uint8Array): readonly T[] => {
  const key = new DataView(digest.buffer, digest.byteOffset).getUint32(0);
  const left = [...items];
  return Array.from({ length: count }, (_, i) => left.splice(mix(key, i) % left.length, 1)).flat();
};
