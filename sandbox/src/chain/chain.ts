// A chain for integration tests, a local one or one that the user runs: a JSON-RPC node with the verifier and the example consumer deployed, and signer sets
// registered.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { setConfigCalldata } from '@sealpost/client/onchain';
import type { Hex, SignerSet } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import * as Address from 'ox/Address';
import * as Hash from 'ox/Hash';
import * as OxHex from 'ox/Hex';
import * as Secp256k1 from 'ox/Secp256k1';
import { settlementBytecode, verifierBytecode } from './bytecode.ts';
import { createRequest, lostChain, openEvm, RpcError, type RpcRequest } from './evm.ts';

export type Chain = {
  /** JSON-RPC over HTTP; on 127.0.0.1 for the local chain. */
  readonly rpcUrl: string;
  readonly chainId: number;
  /** Address of ReportVerifier. */
  readonly verifier: Hex;
  /** Address of TradeSettlement. */
  readonly consumer: Hex;
  /** The first one owns the verifier. On the local chain, they have 10,000 ether each, and their keys are public. */
  readonly accounts: readonly { readonly address: Hex; readonly privateKey?: Hex }[];
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

/** The largest contract is 48 KB as hex; 100 calls with reports are 600 KB. */
const bodyLengthMax = 1_048_576;
const connectionsMax = 100;
const idleMaxMs = 60_000;
const answerMaxMs = 30_000;
const receiptEveryMs = 100;
/** Blocks of public test networks take some 12 s. */
const receiptMaxMs = 60_000;
/** Selectors of ReportVerifier; a test compares them with its ABI. */
export const verifierSelectors = { signerSetOf: '0xd22c4a77', deactivateConfig: '0x0f672ef4' } as const;

/** Starts the node, deploys the contracts and registers the signer sets. */
export async function startChain({ port, signerSets, nowMs = Date.now }: ChainOptions): Promise<Chain> {
  const accounts = [0, 1, 2, 3, 4].map((i) => {
    const privateKey = Hash.keccak256(OxHex.fromString(`sealpost sandbox account ${i}`));
    return { privateKey, address: Address.fromPublicKey(Secp256k1.getPublicKey({ privateKey })) };
  });
  const evm = openEvm(accounts, nowMs);
  const server = createServer();
  const close = async () => {
    evm.close();
    server.close();
    server.closeAllConnections();
  };
  try {
    const contracts = await openContracts(createRequest('The local chain', evm.answer), signerSets);
    const answer = async (text: string) => {
      const answered = await evm.answer(text);
      // A new chain has no contracts, and a snapshot may be older than the newest signer set.
      if (answered === lostChain || text.includes('evm_revert')) await contracts.update();
      return answered;
    };
    server.on('request', (request, response) => reply(request, response, answer).catch(() => response.destroy()));
    server.maxConnections = connectionsMax;
    server.timeout = idleMaxMs;
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const rpcUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
    return { ...contracts, rpcUrl, accounts, updateSignerSets: contracts.update, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Deploys the contracts on a chain that the user runs, from the first account that its node signs for, and registers the signer sets. */
export async function joinChain(rpcUrl: string, signerSets: readonly SignerSet[]): Promise<Chain> {
  const headers = { 'content-type': 'application/json' };
  const request = createRequest(rpcUrl, async (body) => {
    const signal = AbortSignal.timeout(answerMaxMs);
    return (await fetch(rpcUrl, { method: 'POST', headers, body, signal })).text();
  });
  const contracts = await openContracts(request, signerSets);
  return { ...contracts, rpcUrl, updateSignerSets: contracts.update, close: async () => {} };
}

/** Pages of this machine may call the chain, as a page under development does. Every browser sends the origin of a page with a POST. */
const localOrigin = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

type Reply = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: (text: string) => Promise<string>,
) => Promise<unknown>;
const reply: Reply = async (request, response, answer) => {
  const { origin } = request.headers;
  if (origin !== undefined && !localOrigin.test(origin)) return response.writeHead(403).end();
  if (origin !== undefined) {
    response.setHeader('access-control-allow-origin', origin).setHeader('vary', 'origin');
    response.setHeader('access-control-allow-headers', 'content-type');
  }
  if (request.method !== 'POST') return response.writeHead(request.method === 'OPTIONS' ? 204 : 405).end();
  let text = '';
  for await (const chunk of request.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (text.length > bodyLengthMax) return response.writeHead(413, { connection: 'close' }).end();
  }
  const answered = await answer(text);
  return response.writeHead(200, { 'content-type': 'application/json' }).end(answered);
};

type Receipt = { readonly contractAddress: Hex; readonly status: Hex };

/** Deploys the contracts from the first account, and keeps the sets of the verifier equal to the newest list. */
const openContracts = async (request: RpcRequest, signerSets: readonly SignerSet[]) => {
  const accounts = ((await request('eth_accounts')) as readonly Hex[]).map((address) => ({ address })); // of JSON-RPC
  const from = accounts[0]?.address;
  if (from === undefined)
    throw new RpcError('The node signs for no account (eth_accounts is empty). Use a development node.');
  const send = async (to: Hex | undefined, data: Hex): Promise<Hex> => {
    const hash = await request('eth_sendTransaction', { from, to, data });
    for (const endMs = performance.now() + receiptMaxMs; ; await setTimeout(receiptEveryMs)) {
      const receipt = (await request('eth_getTransactionReceipt', hash)) as Receipt | null; // null until it is mined
      assert(receipt?.status !== '0x0', 'A transaction of the owner of the chain’s verifier reverted.');
      if (receipt !== null) return receipt.contractAddress;
      assert(performance.now() < endMs, `A transaction was not mined within ${receiptMaxMs / 1_000} s.`);
    }
  };
  const deploy = async () => {
    const verifier = await send(undefined, verifierBytecode);
    const argument = AbiParameters.encode([{ type: 'address' }], [verifier]).slice(2);
    return { verifier, consumer: await send(undefined, `${settlementBytecode}${argument}`) };
  };
  const { verifier, consumer } = await deploy();
  const known = new Map<Hex, Hex>();
  let wanted: readonly Hex[] = [];
  /** What is registered is asked from the contract, which may have been reverted. */
  const sync = async (): Promise<void> => {
    if ((await request('eth_getCode', verifier, 'latest')) === '0x') await deploy(); // a new chain: at the same addresses
    for (const [configDigest, calldata] of known) {
      const data = `${verifierSelectors.signerSetOf}${configDigest.slice(2)}`;
      const state = (await request('eth_call', { to: verifier, data }, 'latest')) as Hex; // two words: f, retired
      const [f, isRetired] = AbiParameters.decode([{ type: 'uint8' }, { type: 'bool' }], state);
      if (f === 0) await send(verifier, calldata);
      if (isRetired || wanted.includes(configDigest)) continue;
      await send(verifier, `${verifierSelectors.deactivateConfig}${configDigest.slice(2)}`);
    }
  };
  let last: Promise<void> = Promise.resolve();
  const update = async (sets?: readonly SignerSet[]): Promise<void> => {
    const found = sets?.map((set) => [set.configDigest, setConfigCalldata(set)] as const) ?? []; // throws before anything is sent
    for (const [configDigest, calldata] of found) known.set(configDigest, calldata);
    if (sets !== undefined) wanted = sets.map(({ configDigest }) => configDigest);
    last = last.catch(() => {}).then(sync);
    return last;
  };
  await update(signerSets);
  return { chainId: Number(await request('eth_chainId')), verifier, consumer, accounts, update };
};
