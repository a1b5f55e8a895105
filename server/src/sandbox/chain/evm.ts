// An EVM with JSON-RPC in this process: EDR, an optional package that `sandbox --chain` needs (D177). Blocks are dated by the clock of the caller.
import { createFilterIds } from './filter-ids.ts';
import { createQueue } from './queue.ts';
import { checkParams, endLogRange, gasMax } from './rpc-bounds.ts';

/** The only version whose interface this file knows; `peerDependencies` has the same one. */
const edrPackage = '@nomicfoundation/edr@0.13.0';

/** EDR is not installed, or not for this platform; the message says what to install. */
export class EvmMissingError extends Error {
  override readonly name = 'EvmMissingError';
}

/** An error that the EVM answered with; `data` is what a reverted call returned, as hex. */
export class EvmRequestError extends Error {
  override readonly name = 'EvmRequestError';
  readonly code: number;
  readonly data: string | undefined;

  constructor({ code, message, data }: RpcFailure) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export type RpcFailure = { readonly code: number; readonly message: string; readonly data?: string };
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcFailure };

export type Evm = {
  /** Answers a JSON-RPC call. */
  readonly answer: (method: string, params: unknown) => Promise<RpcOutcome>;
  /** Returns the result of a call; throws `EvmRequestError`. */
  readonly request: (method: string, ...params: unknown[]) => Promise<unknown>;
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
const logRange = /^eth_(getLogs|newFilter)$/;
const invalidParams = -32_602;

/** Starts an empty chain. */
export const openEvm = async (options: EvmOptions): Promise<Evm> => {
  const provider = await createProvider(options);
  const ask = async (method: string, params: unknown): Promise<RpcOutcome> => {
    const call = { jsonrpc: '2.0', id: 1, method, params: adaptParams(params) };
    const { data } = await provider.handleRequest(JSON.stringify(call));
    return toOutcome(typeof data === 'string' ? JSON.parse(data) : data);
  };
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
    if (!logRange.test(method)) return ask(method, params);
    const newest = Object(await ask('eth_blockNumber', [])).result;
    return ask(method, endLogRange(params, BigInt(newest)));
  };
  const { run } = createQueue();
  const filterIds = createFilterIds();
  // EDR has one call at a time: a date is for the block of the same call.
  const answer = async (method: string, params: unknown): Promise<RpcOutcome> => {
    const problem = checkParams(method, params);
    if (problem !== undefined) return { error: { code: invalidParams, message: problem } };
    return run(async () => {
      const outcome = await (mining.test(method) ? mine : read)(method, params);
      const surplus = filterIds.used(method, params, 'result' in outcome ? outcome.result : undefined);
      if (surplus !== undefined) await ask('eth_uninstallFilter', [surplus]);
      return outcome;
    });
  };
  const request = async (method: string, ...params: unknown[]): Promise<unknown> => {
    const outcome = await answer(method, params);
    if ('error' in outcome) throw new EvmRequestError(outcome.error);
    return outcome.result;
  };
  return { answer, request };
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
