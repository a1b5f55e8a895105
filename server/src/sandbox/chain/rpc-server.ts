// JSON-RPC over HTTP on 127.0.0.1, for viem, cast and wallets. Sizes, batches and connections are bounded; methods that reach beyond the chain are off.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { timedOut, within } from '../../runtime/deadline.ts';
import { rpcCodes as codes, type RpcOutcome } from './rpc-outcome.ts';

export type RpcServer = { readonly url: string; readonly close: () => Promise<void> };

export type RpcServerOptions = {
  readonly port: number;
  readonly answer: (method: string, params: unknown) => Promise<RpcOutcome>;
  /** Time for all calls of a request, in ms; 30 s by default. */
  readonly answerMaxMs?: number;
  /** A connection on which nothing moves for this long is closed; 60 s by default. */
  readonly idleMaxMs?: number;
};

/** The largest contract is 48 KB as hex; 100 calls with reports are 600 KB. */
const bodyBytesMax = 1_048_576;
const batchMax = 100;
const connectionsMax = 100;
const requestMaxMs = 30_000;
/** More than a request may take. */
const defaultIdleMaxMs = 60_000;
/** Answers of one batch; geth has the same. */
const batchBytesMax = 25_000_000;
/** Answers of all clients that were not sent yet. */
const unsentBytesMax = 64_000_000;
/** Such as the hash of a transaction that was sent: an answer that is never replaced by an error. */
const smallBytes = 4_096;
/** Calls that were not answered yet, those whose clients have left included. */
const pendingMax = 200;

/** What programs and wallets call. Others of EDR can make requests to other hosts, or answer with gigabytes; subscriptions need a WebSocket. */
const offered: ReadonlySet<string> = new Set(
  [
    ...['accounts', 'blockNumber', 'call', 'chainId', 'coinbase', 'estimateGas', 'feeHistory', 'gasPrice'],
    ...['getBalance', 'getBlockByHash', 'getBlockByNumber', 'getBlockTransactionCountByHash'],
    ...['getBlockTransactionCountByNumber', 'getCode', 'getFilterChanges', 'getFilterLogs', 'getLogs', 'getStorageAt'],
    ...['getTransactionByBlockHashAndIndex', 'getTransactionByBlockNumberAndIndex', 'getTransactionByHash'],
    ...['getTransactionCount', 'getTransactionReceipt', 'maxPriorityFeePerGas', 'newBlockFilter', 'newFilter'],
    ...['newPendingTransactionFilter', 'pendingTransactions', 'sendRawTransaction', 'sendTransaction', 'sign'],
    ...['signTypedData_v4', 'syncing', 'uninstallFilter'],
  ]
    .map((name) => `eth_${name}`)
    .concat([
      'evm_mine',
      'evm_revert',
      'evm_snapshot',
      'net_listening',
      'net_version',
      'web3_clientVersion',
      'web3_sha3',
      'personal_sign',
    ]),
);

/** Listens on 127.0.0.1; port 0 is any free port. */
export const openRpcServer = async (options: RpcServerOptions): Promise<RpcServer> => {
  const { port, answerMaxMs = requestMaxMs, idleMaxMs = defaultIdleMaxMs } = options;
  const answer = withPendingMax(options.answer);
  const openUnsent = createUnsent();
  const server = createServer((request, response) => {
    const unsent = openUnsent();
    response.once('close', unsent.end);
    const begin = () => withDeadline(answer, answerMaxMs);
    void handle(request, response, begin, unsent).catch(() => response.destroy());
  });
  server.timeout = idleMaxMs;
  server.maxConnections = connectionsMax;
  server.requestTimeout = requestMaxMs;
  server.headersTimeout = requestMaxMs;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve()); // calls back with an error if it is closed already
        server.closeAllConnections();
      }),
  };
};

type Answer = RpcServerOptions['answer'];

/** A chain that does not answer must not collect calls without end. */
const withPendingMax = (answer: Answer): Answer => {
  let pending = 0;
  return async (method, params) => {
    if (pending >= pendingMax) return limitError(`The chain has ${pendingMax} calls to answer. Retry later.`);
    pending += 1;
    try {
      return await answer(method, params);
    } finally {
      pending -= 1;
    }
  };
};

/** Answers of one request on their way to its client. */
type Unsent = {
  /** Takes an answer of so many bytes; false if it must not be sent, because there are too many. */
  readonly take: (bytes: number) => boolean;
  readonly isFull: () => boolean;
  readonly end: () => void;
};

/** Counts what clients have not read yet: it is in memory. */
const createUnsent = (): (() => Unsent) => {
  let all = 0;
  return () => {
    let [own, isOver] = [0, false];
    return {
      isFull: () => all >= unsentBytesMax,
      take: (bytes) => {
        if (isOver || (bytes > smallBytes && all + bytes > unsentBytesMax)) return false;
        own += bytes;
        all += bytes;
        return true;
      },
      end: () => {
        all -= own;
        [own, isOver] = [0, true];
      },
    };
  };
};

/** Answers the calls of one request. After the deadline they fail, and those that have not begun never do. */
const withDeadline = (answer: Answer, maxMs: number): Answer => {
  const end = performance.now() + maxMs;
  const failed: RpcOutcome = {
    error: { code: codes.timeout, message: `The request timed out after ${maxMs / 1_000} s.` },
  };
  let isOver = false;
  return async (method, params) => {
    const left = end - performance.now();
    const outcome = isOver || left <= 0 ? timedOut : await within(left, answer(method, params));
    if (outcome !== timedOut) return outcome;
    isOver = true;
    return failed;
  };
};

/** Pages of this machine may call the chain, as a page under development does. Every browser sends the origin of a page with a POST. */
const localOrigin = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

const corsHeaders = (origin: string | undefined): Readonly<Record<string, string>> =>
  origin === undefined
    ? {}
    : {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'POST, OPTIONS',
        'access-control-allow-headers': 'content-type',
        vary: 'origin',
      };

const handle = async (request: IncomingMessage, response: ServerResponse, begin: () => Answer, unsent: Unsent) => {
  const { origin } = request.headers;
  const isLocal = origin === undefined || localOrigin.test(origin);
  const headers = corsHeaders(isLocal ? origin : undefined);
  if (request.method === 'OPTIONS') return void response.writeHead(204, headers).end();
  const send = (status: number, body: string) => {
    const bytes = Buffer.from(body);
    response.writeHead(status, { ...headers, 'content-type': 'application/json', 'content-length': bytes.length });
    response.end(bytes);
  };
  if (!isLocal) return send(403, failure(null, codes.invalidRequest, 'Only pages of this machine may call the chain.'));
  if (request.method !== 'POST') return send(405, failure(null, codes.invalidRequest, 'Send JSON-RPC by POST.'));
  const text = await readBody(request);
  if (text === undefined) {
    response.setHeader('connection', 'close');
    return send(413, failure(null, codes.invalidRequest, `The request is longer than ${bodyBytesMax} bytes.`));
  }
  send(200, await answerText(text, begin(), unsent));
};

/** The body as text; undefined if it is too long. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > bodyBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const failure = (id: unknown, code: number, message: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });

const answerText = async (text: string, answer: Answer, unsent: Unsent): Promise<string> => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return failure(null, codes.parse, 'The request is not JSON.');
  }
  if (!Array.isArray(parsed)) return answerOne(parsed, answer, unsent);
  if (parsed.length === 0 || parsed.length > batchMax)
    return failure(null, codes.invalidRequest, `A batch has 1 to ${batchMax} calls, not ${parsed.length}.`);
  const answers: string[] = [];
  let length = 0;
  for (const one of parsed) {
    const text = await answerOne(one, length < batchBytesMax ? answer : refuseRest, unsent);
    length += text.length;
    answers.push(text);
  }
  return `[${answers.join()}]`;
};

const limitError = (message: string) => ({ error: { code: codes.limit, message } });

const refuseRest: Answer = async () =>
  limitError(`The answers of a batch have ${batchBytesMax / 1e6} MB already. Send this call in another one.`);

const tooManyUnsent = `Clients have not read ${unsentBytesMax / 1e6} MB of answers yet. Read them, then retry.`;

const answerOne = async (raw: unknown, answer: Answer, unsent: Unsent): Promise<string> => {
  const { id = null, method, params = [] } = Object(raw);
  if (id !== null && typeof id !== 'string' && typeof id !== 'number')
    return failure(null, codes.invalidRequest, 'The id of a call is a text, a number or null.');
  if (typeof method !== 'string' || typeof params !== 'object')
    return failure(id, codes.invalidRequest, 'A call has a method and a list of params.');
  if (!offered.has(method))
    return failure(id, codes.methodNotFound, `The method ${method.slice(0, 64)} is not offered.`);
  if (unsent.isFull()) return failure(id, codes.limit, tooManyUnsent);
  try {
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...(await answer(method, params)) });
    return unsent.take(text.length) ? text : failure(id, codes.limit, tooManyUnsent);
  } catch (error) {
    return failure(id, codes.internal, String(Object(error).message ?? error));
  }
};
