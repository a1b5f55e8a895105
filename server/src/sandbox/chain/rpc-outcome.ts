// What a JSON-RPC call ends with: a result, or an error and its code.

export type RpcFailure = { readonly code: number; readonly message: string; readonly data?: string };
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcFailure };

/** Codes of JSON-RPC 2.0, and of EIP-1474 where that has one. */
export const rpcCodes = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  timeout: -32_002,
  limit: -32_005,
} as const;

/** An error that a call is answered with; `data` is what a reverted call returned, as hex. */
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

/** Makes a call; throws `EvmRequestError`. */
export type RpcRequest = (method: string, ...params: unknown[]) => Promise<unknown>;
