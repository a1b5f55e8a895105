// A local chain for integration tests: a JSON-RPC node with the verifier and the example consumer deployed, and signer sets registered.
import assert from 'node:assert/strict';
import { setConfigCalldata } from '@sealpost/client/onchain';
import type { Hex, SignerSet } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import * as Address from 'ox/Address';
import * as Hash from 'ox/Hash';
import * as OxHex from 'ox/Hex';
import * as Secp256k1 from 'ox/Secp256k1';
import { settlementBytecode, verifierBytecode } from './bytecode.ts';
import { type Evm, openEvm } from './evm.ts';
import { createQueue } from './queue.ts';
import { openRpcServer } from './rpc-server.ts';

/** The usual ID of local chains. */
const localChainId = 31_337;

export type ChainAccount = { readonly address: Hex; readonly privateKey: Hex };

export type Chain = {
  /** JSON-RPC over HTTP, on 127.0.0.1. */
  readonly rpcUrl: string;
  readonly chainId: number;
  /** Address of ReportVerifier. */
  readonly verifier: Hex;
  /** Address of TradeSettlement. */
  readonly consumer: Hex;
  /** Accounts with 10,000 ether each; the first one owns the verifier. Their keys are public. */
  readonly accounts: readonly ChainAccount[];
  /** Registers sets that are new, and retires registered ones that are not in the list. A retired set cannot come back. */
  readonly updateSignerSets: (signerSets: readonly SignerSet[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type ChainOptions = {
  /** 0 for any free port. */
  readonly port: number;
  /** Sets that are not retired. */
  readonly signerSets: readonly SignerSet[];
  /** The time of blocks, in ms; the machine's clock by default. */
  readonly nowMs?: () => number;
};

const accountCount = 5;

/** Selectors of ReportVerifier; a test compares them with its ABI. */
export const verifierSelectors = { signerSetOf: '0xd22c4a77', deactivateConfig: '0x0f672ef4' } as const;

/** Starts the node, deploys the contracts and registers the signer sets. */
export const startChain = async ({ port, signerSets, nowMs = Date.now }: ChainOptions): Promise<Chain> => {
  const accounts = Array.from({ length: accountCount }, (_, i) => createAccount(`sealpost sandbox account ${i}`));
  const evm = await openEvm({
    chainId: localChainId,
    privateKeys: accounts.map(({ privateKey }) => privateKey),
    addresses: accounts.map(({ address }) => address),
    nowMs,
  });
  const owner = (accounts[0] as ChainAccount).address; // there are five
  const verifier = await deploy(evm, owner, verifierBytecode);
  const argument = AbiParameters.encode([{ type: 'address' }], [verifier]);
  const consumer = await deploy(evm, owner, `${settlementBytecode}${argument.slice(2)}`);
  const { run } = createQueue();
  const registry = createRegistry(evm, owner, verifier);
  await registry.set(signerSets);
  const server = await openRpcServer({
    port,
    answer: async (method, params) => {
      // A block of a caller's own time would be ahead of the clock, and so would all after it.
      const outcome = await evm.answer(method, method === 'evm_mine' ? [] : params);
      // A snapshot may be older than the newest signer set.
      if (method === 'evm_revert') await run(registry.sync);
      return outcome;
    },
  });
  return {
    rpcUrl: server.url,
    chainId: localChainId,
    verifier,
    consumer,
    accounts,
    updateSignerSets: (sets) => run(() => registry.set(sets)),
    close: server.close,
  };
};

const createAccount = (name: string): ChainAccount => {
  const privateKey = Hash.keccak256(OxHex.fromString(name));
  return { privateKey, address: Address.fromPublicKey(Secp256k1.getPublicKey({ privateKey })) };
};

type Receipt = { readonly contractAddress: Hex; readonly status: Hex };

const send = async (evm: Evm, transaction: { from: Hex; to?: Hex; data: Hex }): Promise<Receipt> => {
  const hash = await evm.request('eth_sendTransaction', transaction);
  const receipt = (await evm.request('eth_getTransactionReceipt', hash)) as Receipt; // EDR mines it before it answers
  assert(receipt.status === '0x1', 'A transaction of the local chain’s owner reverted.');
  return receipt;
};

const deploy = async (evm: Evm, from: Hex, data: Hex): Promise<Hex> =>
  (await send(evm, { from, data })).contractAddress;

const digestWord = [{ type: 'bytes32' }] as const;

/** Keeps the sets of the contract equal to the given ones; what is registered is asked from the contract, which may have been reverted. */
const createRegistry = (evm: Evm, owner: Hex, verifier: Hex) => {
  const wanted = new Map<Hex, { readonly set: SignerSet; readonly isRetired: boolean }>();
  const stateOf = async (configDigest: Hex) => {
    const data = `${verifierSelectors.signerSetOf}${configDigest.slice(2)}`;
    const state = (await evm.request('eth_call', { to: verifier, data }, 'latest')) as Hex; // two words: f, retired
    const [f, isRetired] = AbiParameters.decode([{ type: 'uint8' }, { type: 'bool' }], state);
    return { isRegistered: f > 0, isRetired };
  };
  const sync = async (): Promise<void> => {
    for (const [configDigest, { set, isRetired }] of wanted) {
      const state = await stateOf(configDigest);
      if (!state.isRegistered) await send(evm, { from: owner, to: verifier, data: setConfigCalldata(set) });
      if (!isRetired || state.isRetired) continue;
      const digest = AbiParameters.encode(digestWord, [configDigest]).slice(2);
      await send(evm, { from: owner, to: verifier, data: `${verifierSelectors.deactivateConfig}${digest}` });
    }
  };
  const set = async (sets: readonly SignerSet[]): Promise<void> => {
    for (const one of sets) setConfigCalldata(one); // throws before anything is sent
    for (const [configDigest, one] of wanted)
      if (!sets.some((other) => other.configDigest === configDigest))
        wanted.set(configDigest, { ...one, isRetired: true });
    for (const one of sets)
      if (!wanted.has(one.configDigest)) wanted.set(one.configDigest, { set: one, isRetired: false });
    await sync();
  };
  return { set, sync };
};
