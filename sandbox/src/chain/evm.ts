// The EVM of the local chain, in a process of its own that answers one request at a time. A request that ends it, or takes too long, leaves a new, empty chain.
import { type ChildProcess, fork } from 'node:child_process';
import type { Hex } from '@sealpost/protocol';
import { programBeside } from '@sealpost/server/runtime/threads';

/** Holds 10,000 ether; `eth_sendTransaction` signs for it. */
export type EvmAccount = { readonly address: Hex; readonly privateKey: Hex };
export type EvmMessage = { readonly text: string; readonly seconds: number };
export type Evm = {
  /** Answers a JSON-RPC request; with `lostChain` if that has left a new, empty chain. */
  readonly answer: (text: string) => Promise<string>;
  readonly close: () => void;
};

const answerMaxMs = 30_000;
const lost = `The request ended the EVM or took more than ${answerMaxMs / 1_000} s. The chain has started again.`;
export const lostChain = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_603, message: lost } });

/** Starts an empty chain whose blocks have the time of `nowMs`. */
export function openEvm(accounts: readonly EvmAccount[], nowMs: () => number): Evm {
  const seconds = () => Math.floor(nowMs() / 1_000);
  let settle = (_: string): void => {};
  let isClosed = false;
  const begin = (): ChildProcess => {
    const { exec, execArgv = process.execArgv } = programBeside('./evm-process', import.meta.url);
    const setUp = JSON.stringify([accounts, seconds()]);
    const begun = fork(exec, [setUp], { execArgv: [...execArgv], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const end = (answered: string): void => (begun === child ? settle(answered) : undefined);
    return begun
      .on('message', end)
      .on('exit', () => end(lostChain))
      .on('error', () => end(lostChain));
  };
  let child = begin();
  const ask = (text: string): Promise<string> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), answerMaxMs);
      settle = (answered) => {
        clearTimeout(timer);
        settle = () => {};
        if (answered === lostChain && !isClosed) child = begin();
        resolve(answered);
      };
      if (!child.connected) return settle(lostChain);
      child.send({ text, seconds: seconds() } satisfies EvmMessage, () => {}); // one that ends meanwhile emits `exit`
    });
  let last: Promise<unknown> = Promise.resolve();
  return {
    answer: (text) => {
      const answered = last.then(() => ask(text));
      last = answered;
      return answered;
    },
    close: () => {
      isClosed = true;
      child.kill();
    },
  };
}

/** What a node rejected, or that it does not answer as one; `data` is what a reverted call returned. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly data: unknown;

  constructor(message: string, data?: unknown) {
    super(message);
    this.data = data;
  }
}

/** Makes a JSON-RPC call; throws `RpcError`. */
export type RpcRequest = (method: string, ...params: unknown[]) => Promise<unknown>;

export const createRequest =
  (node: string, post: (body: string) => Promise<string>): RpcRequest =>
  async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const why = `${node} does not answer as a JSON-RPC node`;
    const answer = await post(body)
      .then(JSON.parse)
      .catch((cause: unknown) => {
        throw new RpcError(`${why} (${Object(cause).cause?.code ?? Object(cause).message}).`);
      });
    const { result, error } = Object(answer);
    if (result === undefined || error)
      throw new RpcError(String(Object(error).message ?? `${why}.`), Object(error).data);
    return result;
  };
