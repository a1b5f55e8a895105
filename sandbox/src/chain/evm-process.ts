// EDR as a program: some requests end or block the process that EDR runs in (D177). A message is a JSON-RPC request and the time of the next block, in seconds.
import * as edr from '@nomicfoundation/edr';
import type { EvmAccount, EvmMessage } from './evm.ts';

/** EDR records every step of a call: an endless loop takes 0.2 GB of memory per million gas. The largest contract takes 6 million to deploy. */
const gasMax = 8_000_000n;
const chainId = 31_337n;
/** As on Ethereum: if the newest block is older than this, a request gets a new one first. */
const blockSecondsMax = 12;
const batchMax = 100;
const answerLengthMax = 25_000_000;
/** Others can make requests to other hosts or set the time; subscriptions need a WebSocket. */
const offered = /^(eth_(?!subscribe)|net_|web3_|personal_sign$|evm_(mine|revert|snapshot)$)/;

// It is started by evm.ts.
const [accounts, startSeconds] = JSON.parse(process.argv[2] ?? '') as [readonly EvmAccount[], number];
const context = new edr.EdrContext();
await context.registerProviderFactory(edr.L1_CHAIN_TYPE, edr.l1ProviderFactory());
const funded = accounts.map(({ address }) => ({ address: Buffer.from(address.slice(2), 'hex'), balance: 10n ** 22n }));
const provider = await context.createProvider(
  edr.L1_CHAIN_TYPE,
  {
    allowBlocksWithSameTimestamp: true,
    allowUnlimitedContractSize: false,
    bailOnCallFailure: true,
    bailOnTransactionFailure: false, // as on other nodes: a transaction that reverts has a hash and a receipt
    chainId,
    networkId: chainId,
    coinbase: new Uint8Array(20),
    defaultTransactionGasLimit: gasMax,
    transactionGasCap: gasMax,
    genesisState: [...edr.l1GenesisState(edr.l1HardforkFromString(edr.PRAGUE)), ...funded],
    hardfork: edr.PRAGUE,
    initialParentBeaconBlockRoot: new Uint8Array(32),
    minGasPrice: 0n,
    mining: { autoMine: true, memPool: { order: edr.MineOrdering.Priority } },
    network: {
      genesisBlockGasLimit: gasMax,
      genesisBlobGas: { gasUsed: 0n, excessGas: 0n },
      genesisBlockTime: BigInt(startSeconds),
    },
    observability: {},
    ownedAccounts: accounts.map(({ privateKey }) => privateKey),
    precompileOverrides: [],
  },
  { enable: false, decodeConsoleLogInputsCallback: () => [], printLineCallback: () => {} },
  { subscriptionCallback: () => {} },
  new edr.ContractDecoder(),
);

/** What a call reverted with is `data` itself, as other nodes have it. */
const ask = async (method: string, params: unknown): Promise<object> => {
  const { data } = await provider.handleRequest(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  const { result = null, error } = typeof data === 'string' ? JSON.parse(data) : data;
  if (error === undefined) return { result };
  const { code, message, data: cause } = error;
  const reverted = Object(cause).data ?? cause;
  return { error: { code, message, ...(typeof reverted === 'string' && { data: reverted }) } };
};

let minedSeconds = startSeconds;

/** EDR counts time on by the machine's clock; the next block gets the sandbox's instead. */
const date = async (seconds: number): Promise<void> => {
  await ask('evm_setNextBlockTimestamp', [seconds]);
  if (seconds - minedSeconds < blockSecondsMax) return;
  minedSeconds = seconds;
  await ask('evm_mine', []);
  await ask('evm_setNextBlockTimestamp', [seconds]);
};

/** cast sends the bytes of a call as `data` and as `input`; EDR refuses both. */
const withoutInput = (param: unknown): unknown => {
  const { input, ...others } = Object(param);
  return input !== undefined && input === others.data ? others : param;
};

const answerOne = async (call: unknown, seconds: number): Promise<object> => {
  const { id = null, method, params = [] } = Object(call);
  const envelope = { jsonrpc: '2.0', id };
  if (!offered.test(method))
    return { ...envelope, error: { code: -32_601, message: `The method ${method} is not offered.` } };
  await date(seconds);
  const given = Array.isArray(params) ? params.map(withoutInput) : params;
  return { ...envelope, ...(await ask(method, method === 'evm_mine' ? [] : given)) };
};

const answer = async (text: string, seconds: number): Promise<string> => {
  const calls: unknown = JSON.parse(text);
  if (!Array.isArray(calls)) return JSON.stringify(await answerOne(calls, seconds));
  if (calls.length === 0 || calls.length > batchMax) throw new Error(`A batch has 1 to ${batchMax} calls.`);
  const answers: object[] = [];
  for (const call of calls) answers.push(await answerOne(call, seconds));
  return JSON.stringify(answers);
};

process.on('SIGINT', () => {}); // of the terminal: evm.ts ends this process
process.on('disconnect', () => process.exit());
process.on('message', async ({ text, seconds }: EvmMessage) => {
  try {
    const answered = await answer(text, seconds);
    if (answered.length > answerLengthMax) throw new Error(`The answer has more than ${answerLengthMax / 1e6} MB.`);
    process.send?.(answered);
  } catch (error) {
    const { message } = Object(error);
    process.send?.(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_600, message } }));
  }
});
