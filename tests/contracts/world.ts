// A chain for the tests of contracts: an EVM in this process, its clock, and calls by the text of a function.
import { decodeVerifierError } from '@sealpost/client/onchain';
import type { Hex } from '@sealpost/protocol';
import * as AbiError from 'ox/AbiError';
import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import { createRequest, openEvm, RpcError } from '../../sandbox/src/chain/evm.ts';

/** The accounts of the private keys 1, 2 and 3; EDR signs for them. */
export const accounts = [
  '0x7e5f4552091a69125d5dfcb7b8c2659029395bdf',
  '0x2b5ad5c4795c026514f8317c7a215e218dccd6cf',
  '0x6813eb9362372eef6200f3b1dbc3f819671cba69',
] as const;

/** When the chain starts, in Unix seconds. */
export const start = 1_763_200_000;

/** Errors of TradeSettlement; a test compares them with its ABI. */
export const settlementErrors = [
  'error UnsupportedStream(bytes32 feedId)',
  'error TimeNotInFuture(uint256 time)',
  'error WrongStake(uint256 sent, uint256 expected)',
  'error NotYourTrade()',
  'error UnknownTrade(uint256 id)',
  'error WrongStatus(uint8 status)',
  'error WrongStream(bytes32 feedId, bytes32 expected)',
  'error WrongTime(uint256 validFrom, uint256 observations, uint256 time)',
  'error ReportExpired(uint256 expiresAt)',
  'error TooLate(uint256 deadline)',
  'error TooEarly(uint256 deadline)',
  'error TransferFailed()',
] as const;

type Receipt = { readonly gasUsed: Hex; readonly contractAddress: Hex; readonly status: Hex };
export type SendOptions = { readonly from?: Hex; readonly value?: bigint };

/** The name and the arguments of a custom error, as `Name(argument, …)`. */
export const describeRevert = (data: string): string => {
  const known = settlementErrors
    .map((text) => AbiError.from(text) as AbiError.AbiError)
    .find((one) => data.startsWith(AbiError.getSelector(one)));
  if (known !== undefined) {
    const values: readonly unknown[] =
      known.inputs.length === 0 ? [] : AbiParameters.decode(known.inputs, `0x${data.slice(10)}`);
    return `${known.name}(${values.join(', ')})`;
  }
  const { name, selector, args } = decodeVerifierError(data);
  return `${name ?? selector}(${Object.values(args).join(', ')})`;
};

export const openWorld = async () => {
  let nowMs = start * 1_000;
  const owned = accounts.map((address, i) => ({
    address,
    privateKey: `0x${String(i + 1).padStart(64, '0')}` as const,
  }));
  const { answer } = openEvm(owned, () => nowMs);
  const request = createRequest('The chain', answer);
  /** Runs a call; a revert becomes an error with its name as the message. */
  const explained = async (work: () => Promise<unknown>): Promise<unknown> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RpcError) || typeof error.data !== 'string') throw error;
      throw new Error(describeRevert(error.data), { cause: error });
    }
  };
  const sendData = async (to: Hex | undefined, data: Hex, { from = accounts[0], value = 0n }: SendOptions = {}) => {
    const transaction = { from, data, value: `0x${value.toString(16)}` as const, ...(to && { to }) };
    await explained(() => request('eth_call', transaction, 'pending')); // only a call says why it reverts
    const hash = await request('eth_sendTransaction', transaction);
    return (await request('eth_getTransactionReceipt', hash)) as Receipt;
  };
  const functionOf = (text: string) => AbiFunction.from(text as never) as AbiFunction.AbiFunction;
  const encode = (text: string, args: readonly unknown[]): Hex =>
    AbiFunction.encodeData(functionOf(text), args as never);
  const callData = (to: Hex, data: Hex): Promise<Hex> =>
    explained(() => request('eth_call', { from: accounts[0], to, data }, 'latest')) as Promise<Hex>;
  return {
    request,
    /** Sets the time of the next blocks, in Unix seconds. */
    setTime: (seconds: number) => {
      nowMs = seconds * 1_000;
    },
    sendData,
    callData,
    deploy: async (bytecode: Hex, ...addresses: readonly Hex[]): Promise<Hex> => {
      const types = addresses.map(() => ({ type: 'address' }) as const);
      return (await sendData(undefined, `${bytecode}${AbiParameters.encode(types, [...addresses]).slice(2)}`))
        .contractAddress;
    },
    /** Sends a transaction, such as `send(to, 'function accept(uint256)', [0n])`. */
    send: (to: Hex, text: string, args: readonly unknown[] = [], options: SendOptions = {}) =>
      sendData(to, encode(text, args), options),
    /** Calls a function without a transaction, and decodes what it returns. */
    call: async (to: Hex, text: string, args: readonly unknown[] = []): Promise<unknown> =>
      AbiFunction.decodeResult(functionOf(text), await callData(to, encode(text, args))),
    balance: async (address: Hex): Promise<bigint> =>
      BigInt(String(await request('eth_getBalance', address, 'latest'))),
  };
};

export type World = Awaited<ReturnType<typeof openWorld>>;
