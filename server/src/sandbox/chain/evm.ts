// An EVM with JSON-RPC in this process: EDR, an optional package that `sandbox --chain` needs (D177). Blocks are dated by the clock of the caller.
import { createFilters } from './filters.ts';
import { readAllLogs } from './logs.ts';
import { createQueue } from './queue.ts';
import { checkParams, gasMax } from './rpc-bounds.ts';
import { EvmRequestError, type RpcOutcome, type RpcRequest, rpcCodes } from './rpc-outcome.ts';

/** The only version whose interface this file knows; `peerDependencies` has the same one. */
const edrPackage = '@nomicfoundation/edr@0.13.0';

/** EDR is not installed, or not for this platform; the message says what to install. */
export class EvmMissingError extends Error {
  override readonly name = 'EvmMissingError';
}

export type Evm = {
  /** Answers a JSON-RPC call. */
  readonly answer: (method: string, params: unknown) => Promise<RpcOutcome>;
  /** Returns the result of a call; throws `EvmRequestError`. */
  readonly request: RpcRequest;
};

export type EvmOptions = {
  readonly chainId: number;
  /** Private keys of accounts that hold ether, and that `eth_sendTransaction` signs for. */
  readonly privateKeys: readonly string[];
  /** Their addresses. */
  readonly addresses: readonly string[];
  /** The time of new blocks, in ms; never goes back. */
  readonly nowMs: () => number;
};

/** As on Ethereum: if the newest block is older than this, a read gets a new one first. */
const blockSecondsMax = 12;
const etherOfAccount = 10_000n * 10n ** 18n;
/** Methods that make a block, or change which is the newest. */
const mining = /^(eth_send|evm_)/;

/** Starts an empty chain. */
export const openEvm = async (options: EvmOptions): Promise<Evm> => {
  const provider = await createProvider(options);
  const ask = async (method: string, params: unknown): Promise<RpcOutcome> => {
    const call = { jsonrpc: '2.0', id: 1, method, params: adaptParams(params) };
    const { data } = await provider.handleRequest(JSON.stringify(call));
    return toOutcome(typeof data === 'string' ? JSON.parse(data) : data);
  };
  /** Of the same call: it does not wait for the queue. */
  const fetch: RpcRequest = async (method, ...params) => resultOf(await ask(method, params));
  const newest = async (): Promise<bigint> => BigInt(String(await fetch('eth_blockNumber')));
  const filters = createFilters(fetch);
  const seconds = () => Math.floor(options.nowMs() / 1_000);
  let blockSeconds = seconds();
  let isDated = false;
  /** EDR counts time on by the machine's clock; the next block gets ours instead. */
  const dateBlock = async (): Promise<void> => {
    if (isDated && seconds() <= blockSeconds) return;
    blockSeconds = Math.max(blockSeconds, seconds());
    await ask('evm_setNextBlockTimestamp', [blockSeconds]);
    isDated = true;
  };
  const mine = async (method: string, params: unknown): Promise<RpcOutcome> => {
    await dateBlock();
    isDated = false;
    return ask(method, params);
  };
  const read = async (method: string, params: unknown): Promise<RpcOutcome> => {
    if (seconds() - blockSeconds >= blockSecondsMax) await mine('evm_mine', []);
    await dateBlock();
    if (method === 'eth_getLogs')
      return outcomeOf(async () => readAllLogs(fetch, Object(requireList(params)[0]), await newest()));
    if (filters.has(method)) return outcomeOf(async () => filters.answer(method, requireList(params), await newest()));
    return ask(method, params);
  };
  const { run } = createQueue();
  // EDR has one call at a time: a date is for the block of the same call.
  const answer = async (method: string, params: unknown): Promise<RpcOutcome> => {
    const problem = checkParams(method, params);
    if (problem !== undefined) return { error: { code: rpcCodes.invalidParams, message: problem } };
    return run(async () => {
      const outcome = await (mining.test(method) ? mine : read)(method, params);
      if (method === 'evm_revert') filters.reverted(await newest());
      return outcome;
    });
  };
  return { answer, request: async (method, ...params) => resultOf(await answer(method, params)) };
};

/** `checkParams` looks at the fields of filters in a list, and leaves what is none. */
const requireList = (params: unknown): readonly unknown[] => {
  if (Array.isArray(params)) return params;
  throw new EvmRequestError({ code: rpcCodes.invalidParams, message: 'Params are a list.' });
};

const resultOf = (outcome: RpcOutcome): unknown => {
  if ('error' in outcome) throw new EvmRequestError(outcome.error);
  return outcome.result;
};

const outcomeOf = async (read: () => Promise<unknown>): Promise<RpcOutcome> => {
  try {
    return { result: await read() };
  } catch (error) {
    if (!(error instanceof EvmRequestError)) throw error;
    const { code, message } = error;
    return { error: { code, message } };
  }
};

/**
 * Where EDR differs from other nodes: it runs a call with any gas that is asked for, where they lower it to their limit, and refuses one that has its bytes
 * as both `data` and `input`, which they take if the two are equal. cast sends both.
 */
const adaptParams = (params: unknown): unknown => {
  if (!Array.isArray(params) || typeof params[0] !== 'object' || params[0] === null) return params;
  const [{ gas, input, ...call }, ...others] = params;
  if (gas === undefined && input === undefined) return params;
  const bytes = input !== undefined && input !== call.data && { input };
  return [{ ...call, ...bytes, ...(gas !== undefined && { gas: capGas(gas) }) }, ...others];
};

const capGas = (gas: unknown): string => {
  const isSmall = typeof gas === 'string' && /^0x0*[0-9a-f]{1,6}$/i.test(gas) && Number(gas) <= gasMax;
  return isSmall ? gas : `0x${gasMax.toString(16)}`;
};

/** Errors as other nodes return them: what a call reverted with is `data` itself, not a field of it. */
const toOutcome = (response: { readonly result?: unknown; readonly error?: unknown }): RpcOutcome => {
  if (response.error === undefined) return { result: response.result ?? null };
  const { code, message, data } = Object(response.error);
  const reverted = typeof data === 'string' ? data : Object(data).data;
  const failure = { code: typeof code === 'number' ? code : -32_000, message: String(message) };
  return { error: typeof reverted === 'string' ? { ...failure, data: reverted } : failure };
};

type Edr = typeof import('@nomicfoundation/edr');

/** Loads EDR; throws `EvmMissingError`. */
export const loadEdr = async (load: () => Promise<Edr> = () => import('@nomicfoundation/edr')): Promise<Edr> => {
  try {
    return await load();
  } catch (cause) {
    const isMissing = Object(cause).code === 'ERR_MODULE_NOT_FOUND';
    const what = isMissing ? 'is not installed' : `cannot be loaded (${Object(cause).message})`;
    throw new EvmMissingError(
      `The local chain needs the package @nomicfoundation/edr, which ${what}. Install it next to sealpost: npm install ${edrPackage} (with -g if sealpost was installed with -g).`,
      { cause },
    );
  }
};

const openContext = async () => {
  const edr = await loadEdr();
  const context = new edr.EdrContext();
  await context.registerProviderFactory(edr.L1_CHAIN_TYPE, edr.l1ProviderFactory());
  return { edr, context };
};

/** EDR allows one context per process, whatever the number of chains. */
let opened: ReturnType<typeof openContext> | undefined;

const createProvider = async ({ chainId, privateKeys, addresses, nowMs }: EvmOptions) => {
  opened ??= openContext();
  const { edr, context } = await opened;
  const { L1_CHAIN_TYPE: chainType, PRAGUE: hardfork } = edr;
  const funded = addresses.map((address) => ({
    address: Buffer.from(address.slice(2), 'hex'),
    balance: etherOfAccount,
  }));
  return context.createProvider(
    chainType,
    {
      allowBlocksWithSameTimestamp: true,
      allowUnlimitedContractSize: false,
      bailOnCallFailure: true,
      bailOnTransactionFailure: false, // as on other nodes: a transaction that reverts has a hash and a receipt
      chainId: BigInt(chainId),
      networkId: BigInt(chainId),
      coinbase: new Uint8Array(20),
      defaultTransactionGasLimit: BigInt(gasMax),
      genesisState: [...edr.l1GenesisState(edr.l1HardforkFromString(hardfork)), ...funded],
      hardfork,
      initialParentBeaconBlockRoot: new Uint8Array(32),
      minGasPrice: 0n,
      mining: { autoMine: true, memPool: { order: edr.MineOrdering.Priority } },
      network: {
        genesisBlockGasLimit: BigInt(gasMax),
        genesisBlobGas: { gasUsed: 0n, excessGas: 0n },
        genesisBlockTime: BigInt(Math.floor(nowMs() / 1_000)),
      },
      observability: {},
      ownedAccounts: [...privateKeys],
      precompileOverrides: [],
    },
    { enable: false, decodeConsoleLogInputsCallback: () => [], printLineCallback: () => {} },
    { subscriptionCallback: () => {} },
    new edr.ContractDecoder(),
  );
};
