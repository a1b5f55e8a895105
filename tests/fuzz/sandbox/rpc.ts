// JSON-RPC calls to the sandbox's local chain, over HTTP: the body of a POST.
import assert from 'node:assert/strict';
import { verifyCalldata } from '@sealpost/client/onchain';
import { startChain } from '../../../server/src/sandbox/chain/chain.ts';
import { createMaterial } from '../material.ts';
import { shapeOf, type Target } from '../target.ts';

const hashes = ['latest', 'earliest', 'pending', 'safe', '0x0', `0x${'0'.repeat(64)}`];

type Answer = {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
};

const isId = (id: unknown): boolean => id === null || typeof id === 'string' || typeof id === 'number';

/** What JSON-RPC 2.0 says of an answer: the ID of the call, and a result or an error. */
const requireAnswer = (answer: Answer, call: unknown): string => {
  const given = Object(call).id ?? null;
  assert.equal(answer.jsonrpc, '2.0', 'an answer is not of JSON-RPC 2.0');
  assert.ok('result' in answer !== 'error' in answer, 'an answer has not one of result and error');
  assert.equal(JSON.stringify(answer.id), JSON.stringify(isId(given) ? given : null), 'an answer has another ID');
  if (!('error' in answer)) return 'result';
  const { code, message } = Object(answer.error);
  assert.ok(Number.isInteger(code) && typeof message === 'string', 'an error has no code or no message');
  return `${code} ${shapeOf(message).slice(0, 60)}`;
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

export const openRpc = async (): Promise<Target> => {
  const { network, reports } = await createMaterial();
  let nowMs = 1_763_200_000_000;
  const chain = await startChain({ port: 0, signerSets: [network.signerSet], nowMs: () => nowMs });
  const [from, to] = chain.accounts.map(({ address }) => address);
  const verify = { from, to: chain.verifier, data: verifyCalldata(reports[0] as `0x${string}`) }; // there are several
  const calls: readonly (readonly [string, ...unknown[]])[] = [
    ...['eth_accounts', 'eth_blockNumber', 'eth_chainId', 'eth_gasPrice', 'net_version', 'evm_mine'].map(
      (name) => [name] as const,
    ),
    ['eth_call', verify, 'latest'],
    ['eth_estimateGas', { ...verify, gas: '0x5b8d80' }],
    ['eth_sendTransaction', { from, to, value: '0x1' }],
    ['eth_sendRawTransaction', '0x02f870'],
    ['eth_getBlockByNumber', 'latest', true],
    ['eth_getLogs', { fromBlock: '0x0', toBlock: 'latest', address: chain.verifier, topics: [null, []] }],
    ['eth_getStorageAt', chain.verifier, '0x0', 'latest'],
    ['eth_getTransactionReceipt', `0x${'ab'.repeat(32)}`],
    ['eth_feeHistory', '0x2', 'latest', [25, 75]],
    ['eth_newFilter', { fromBlock: 'latest' }],
    ['eth_signTypedData_v4', from, { types: {}, domain: {}, primaryType: 'a', message: {} }],
    ['personal_sign', '0x00', from],
    ['web3_sha3', '0x00'],
    ['evm_snapshot'],
    ['debug_traceCall', verify],
  ];
  const texts = calls.map(([method, ...params], id) => JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  const send = async (body: Buffer) => {
    const response = await fetch(chain.rpcUrl, { method: 'POST', body: Uint8Array.from(body) });
    return { status: response.status, text: await response.text() };
  };
  // A connection may be closed for idleness while a request is sent on it: any client tries again.
  const post = (body: Buffer) => send(body).catch(() => send(body));
  return {
    seeds: [...texts, `[${texts.slice(0, 4).join()}]`, '[]', '{"id":[[1]],"method":"eth_chainId"}'].map((text) =>
      Buffer.from(text),
    ),
    words: [
      ...hashes,
      ...calls.map(([method]) => method),
      '"id":',
      '"params":',
      'null',
      '[]',
      '{}',
      '0x',
      chain.verifier,
    ],
    json: 'value',
    run: async (input) => {
      nowMs += 1_000;
      const { status, text } = await post(input);
      assert.equal(status, 200, `answered ${status}`);
      const [call, answer] = [parse(input.toString('utf8')), JSON.parse(text)];
      if (!Array.isArray(answer)) return requireAnswer(answer, Array.isArray(call) ? undefined : call);
      assert.ok(Array.isArray(call) && call.length === answer.length, 'a batch has another number of answers');
      return [...new Set(answer.map((one, i) => requireAnswer(one, call[i])))].join(' / ').slice(0, 200);
    },
    check: async () => {
      const { text } = await post(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'));
      assert.equal(text, '{"jsonrpc":"2.0","id":1,"result":"0x7a69"}', 'the chain does not answer');
    },
    close: chain.close,
  };
};
