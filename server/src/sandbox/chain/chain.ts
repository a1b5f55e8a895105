// A chain for integration tests, a local one or one that the user runs: a JSON-RPC node with the verifier and the example consumer deployed, and signer sets
// registered.
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { setConfigCalldata } from '@sealpost/client/onchain';
import type { Hex, SignerSet } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import * as Address from 'ox/Address';
import * as Hash from 'ox/Hash';
import * as OxHex from 'ox/Hex';
import * as Secp256k1 from 'ox/Secp256k1';
import { settlementBytecode, verifierBytecode } from './bytecode.ts';
import { openEvm } from './evm.ts';
import { createQueue } from './queue.ts';
import { createRpcClient } from './rpc-client.ts';
import { EvmRequestError, type RpcRequest, rpcCodes } from './rpc-outcome.ts';
import { openRpcServer } from './rpc-server.ts';

/** The usual ID of local chains. */
const localChainId = 31_337;

/** The key is known on the local chain only. */
export type ChainAccount = { readonly address: Hex; readonly privateKey?: Hex };

export type Chain = {
  /** JSON-RPC over HTTP; on 127.0.0.1 for the local chain. */
  readonly rpcUrl: string;
  readonly chainId: number;
  /** Address of ReportVerifier. */
  readonly verifier: Hex;
  /** Address of TradeSettlement. */
  readonly consumer: Hex;
  /** The first one owns the verifier. On the local chain, they have 10,000 ether each, and their keys are public. */
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
  const { verifier, consumer, registry, run } = await deployContracts(evm.request, owner, signerSets);
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

/** Deploys the contracts on a chain that the user runs, from the first account that its node signs for, and registers the signer sets. */
export const joinChain = async (rpcUrl: string, signerSets: readonly SignerSet[]): Promise<Chain> => {
  const request = createRpcClient(rpcUrl);
  const accounts = ((await request('eth_accounts')) as readonly Hex[]).map((address) => ({ address })); // of JSON-RPC
  const [owner] = accounts;
  if (owner === undefined) {
    const message = `The node at ${rpcUrl} signs for no account (eth_accounts is empty). Use a development node.`;
    throw new EvmRequestError({ code: rpcCodes.internal, message });
  }
  const chainId = Number(await request('eth_chainId'));
  const { verifier, consumer, registry, run } = await deployContracts(request, owner.address, signerSets);
  const updateSignerSets = (sets: readonly SignerSet[]) => run(() => registry.set(sets));
  return { rpcUrl, chainId, verifier, consumer, accounts, updateSignerSets, close: async () => {} };
};

const deployContracts = async (request: RpcRequest, owner: Hex, signerSets: readonly SignerSet[]) => {
  const verifier = await deploy(request, owner, verifierBytecode);
  const argument = AbiParameters.encode([{ type: 'address' }], [verifier]);
  const consumer = await deploy(request, owner, `${settlementBytecode}${argument.slice(2)}`);
  const { run } = createQueue();
  const registry = createRegistry(request, owner, verifier);
  await registry.set(signerSets);
  return { verifier, consumer, registry, run };
};

const createAccount = (name: string): Required<ChainAccount> => {
  const privateKey = Hash.keccak256(OxHex.fromString(name));
  return { privateKey, address: Address.fromPublicKey(Secp256k1.getPublicKey({ privateKey })) };
};

type Receipt = { readonly contractAddress: Hex; readonly status: Hex };

const receiptEveryMs = 100;
/** Blocks of public test networks take some 12 s. */
const receiptMaxMs = 60_000;

const send = async (request: RpcRequest, transaction: { from: Hex; to?: Hex; data: Hex }): Promise<Receipt> => {
  const hash = await request('eth_sendTransaction', transaction);
  const endMs = performance.now() + receiptMaxMs;
  for (;;) {
    const receipt = (await request('eth_getTransactionReceipt', hash)) as Receipt | null; // null until it is mined
    assert(receipt?.status !== '0x0', 'A transaction of the owner of the chain’s verifier reverted.');
    if (receipt !== null) return receipt;
    assert(performance.now() < endMs, `A transaction was not mined within ${receiptMaxMs / 1_000} s.`);
    await setTimeout(receiptEveryMs);
  }
};

const deploy = async (request: RpcRequest, from: Hex, data: Hex): Promise<Hex> =>
  (await send(request, { from, data })).contractAddress;

const digestWord = [{ type: 'bytes32' }] as const;

/** Keeps the sets of the contract equal to the given ones; what is registered is asked from the contract, which may have been reverted. */
const createRegistry = (request: RpcRequest, owner: Hex, verifier: Hex) => {
  const wanted = new Map<Hex, { readonly set: SignerSet; readonly isRetired: boolean }>();
  const stateOf = async (configDigest: Hex) => {
    const data = `${verifierSelectors.signerSetOf}${configDigest.slice(2)}`;
    const state = (await request('eth_call', { to: verifier, data }, 'latest')) as Hex; // two words: f, retired
    const [f, isRetired] = AbiParameters.decode([{ type: 'uint8' }, { type: 'bool' }], state);
    return { isRegistered: f > 0, isRetired };
  };
  const sync = async (): Promise<void> => {
    for (const [configDigest, { set, isRetired }] of wanted) {
      const state = await stateOf(configDigest);
      if (!state.isRegistered) await send(request, { from: owner, to: verifier, data: setConfigCalldata(set) });
      if (!isRetired || state.isRetired) continue;
      const digest = AbiParameters.encode(digestWord, [configDigest]).slice(2);
      await send(request, { from: owner, to: verifier, data: `${verifierSelectors.deactivateConfig}${digest}` });
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
