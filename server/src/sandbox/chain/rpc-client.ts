// Calls a JSON-RPC node over HTTP: a chain that the user runs.
import { EvmRequestError, type RpcRequest, rpcCodes } from './rpc-outcome.ts';

const answerMaxMs = 30_000;

/** Throws `EvmRequestError` for what the node rejects, and also if it does not answer. */
export const createRpcClient =
  (url: string): RpcRequest =>
  async (method, ...params) => {
    const answer = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })).catch(
      (cause: unknown) => {
        const why = Object(Object(cause).cause).code ?? Object(cause).message;
        throw new EvmRequestError({
          code: rpcCodes.internal,
          message: `${url} does not answer as a JSON-RPC node (${why}).`,
        });
      },
    );
    const { result, error } = Object(answer);
    if (error === undefined && result !== undefined) return result;
    const { code, message, data } = Object(error);
    throw new EvmRequestError({
      code: Number(code ?? rpcCodes.internal),
      message: String(message ?? `${url} does not answer as a JSON-RPC node.`),
      ...(typeof data === 'string' && { data }),
    });
  };

const post = async (url: string, body: string): Promise<unknown> => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(answerMaxMs) });
  return response.json();
};
