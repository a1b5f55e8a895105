import { setConfigCalldata, verifyCalldata } from '@sealpost/client/onchain';
import { encodeReportBody, type Hex } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import * as AbiParameters from 'ox/AbiParameters';
import * as Secp256k1 from 'ox/Secp256k1';
import * as TransactionEnvelopeEip1559 from 'ox/TxEnvelopeEip1559';
import { afterEach, expect, test } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { type Chain, type ChainOptions, joinChain, startChain } from './chain.ts';

const [first, second] = await Promise.all(['first', 'second'].map((seed) => createNetwork({ seed })));
if (first === undefined || second === undefined) throw new Error('There are two networks.');
const start = 1_763_200_000;
const body = encodeReportBody({
  version: 3,
  feedId: secondStream(1),
  validFromTimestamp: start,
  observationsTimestamp: start,
  nativeFee: 1n,
  linkFee: 1n,
  expiresAt: start + 86_400,
  price: 1n,
  bid: 1n,
  ask: 1n,
});

const opened: Chain[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => close()));
});

const open = async (options: Partial<ChainOptions> = {}): Promise<Chain> => {
  const chain = await startChain({ port: 0, signerSets: [first.signerSet], nowMs: () => start * 1_000, ...options });
  opened.push(chain);
  return chain;
};

const post = async (chain: Chain, body: string): Promise<{ status: number; json: unknown }> => {
  const response = await fetch(chain.rpcUrl, { method: 'POST', body });
  const text = await response.text();
  return { status: response.status, json: text && JSON.parse(text) };
};
const rpc = async (chain: Chain, method: string, ...params: unknown[]) => {
  const { json } = await post(chain, JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }));
  return json as { readonly id: number; readonly result?: never; readonly error?: { code: number; data?: string } };
};
const verify = async (chain: Chain, fullReport: Hex) =>
  rpc(chain, 'eth_call', { to: chain.verifier, data: verifyCalldata(fullReport) }, 'latest');
const inactive = (digest: Hex) => `0xd990d621${digest.slice(2)}`;

test('chain: a report of a registered signer set is valid, another one reverts with the error of the contract', async () => {
  const chain = await open();
  expect(chain).toMatchObject({ rpcUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), chainId: 31_337 });
  const { id, result } = await verify(chain, first.sign(body, 1));
  expect([id, AbiParameters.decode([{ type: 'bytes' }], result ?? '0x')]).toEqual([7, [body]]);
  const { configDigest } = second.signerSet;
  expect((await verify(chain, second.sign(body, 1))).error).toMatchObject({
    data: `0x74eb4b93${configDigest.slice(2)}`,
  });
});

test('chain: a set that is no longer listed is retired, a new one is registered, also after a snapshot is reverted', async () => {
  const chain = await open();
  const { result: snapshot } = await rpc(chain, 'evm_snapshot');
  await chain.updateSignerSets([second.signerSet]);
  const expectRotated = async () => {
    expect((await verify(chain, second.sign(body, 1))).result).toBeDefined();
    expect((await verify(chain, first.sign(body, 1))).error?.data).toBe(inactive(first.signerSet.configDigest));
  };
  await expectRotated();
  await chain.updateSignerSets([second.signerSet]);
  await rpc(chain, 'evm_revert', snapshot);
  await expectRotated();
});

test('chain: a set that the contract would reject changes nothing', async () => {
  const chain = await open();
  const unsound = { ...second.signerSet, f: 0 };
  await expect(chain.updateSignerSets([unsound])).rejects.toThrow('signerSet.f is 0, expected at least 1');
  expect((await verify(chain, first.sign(body, 1))).result).toBeDefined();
  await expect(startChain({ port: 0, signerSets: [unsound] })).rejects.toThrow('signerSet.f is 0');
});

test('chain: a port that is taken is an error', async () => {
  const { rpcUrl } = await open();
  await expect(open({ port: Number(new URL(rpcUrl).port) })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('chain: a transaction signed by a wallet is mined, and has a receipt', async () => {
  const chain = await open();
  const [owner, other] = chain.accounts as [Chain['accounts'][0], Chain['accounts'][0]];
  const envelope = TransactionEnvelopeEip1559.from({
    chainId: chain.chainId,
    nonce: 0n,
    to: chain.verifier,
    data: setConfigCalldata(second.signerSet),
    gas: 500_000n,
    maxFeePerGas: 10n ** 10n,
  });
  const sign = (privateKey: Hex = '0x', nonce: bigint) => {
    const numbered = { ...envelope, nonce };
    const signature = Secp256k1.sign({ payload: TransactionEnvelopeEip1559.getSignPayload(numbered), privateKey });
    return TransactionEnvelopeEip1559.serialize(numbered, { signature });
  };
  const { result: reverted } = await rpc(chain, 'eth_sendRawTransaction', sign(other.privateKey, 0n));
  expect((await rpc(chain, 'eth_getTransactionReceipt', reverted)).result).toMatchObject({ status: '0x0' });
  const { result: count } = await rpc(chain, 'eth_getTransactionCount', owner.address, 'latest');
  const { result: hash } = await rpc(chain, 'eth_sendRawTransaction', sign(owner.privateKey, BigInt(count ?? 0)));
  expect((await rpc(chain, 'eth_getTransactionReceipt', hash)).result).toMatchObject({ status: '0x1' });
  expect((await verify(chain, second.sign(body, 1))).result).toBeDefined();
  const idle = chain.accounts.at(-1)?.address;
  expect((await rpc(chain, 'eth_getBalance', idle, 'latest')).result).toBe(`0x${(10n ** 22n).toString(16)}`);
});

test('chain: blocks have the time of the clock that it was given', async () => {
  let now = start;
  const chain = await open({ nowMs: () => now * 1_000 });
  const timeOf = async () =>
    Number(Object((await rpc(chain, 'eth_getBlockByNumber', 'latest', false)).result).timestamp);
  expect(await timeOf()).toBe(start);
  now = start + 5;
  const [, from, to] = chain.accounts;
  await rpc(chain, 'eth_sendTransaction', { from: from?.address, to: to?.address, value: '0x1' });
  expect(await timeOf()).toBe(start + 5);
  now = start + 3_600; // a read gets a new block if the newest one is older than 12 s
  expect(await timeOf()).toBe(start + 3_600);
  await rpc(chain, 'evm_mine', start + 1_000_000); // time stands still, and is not set by callers
  expect(await timeOf()).toBe(start + 3_600);
});

test('chain: malformed, long and foreign requests are rejected', async () => {
  const chain = await open();
  const code = (json: unknown) => Object(json).error?.code;
  for (const text of ['{', '', '[]', `{"id":${'['.repeat(50_000)}${']'.repeat(50_000)},"method":"eth_chainId"}`])
    expect(code((await post(chain, text)).json), text).toBe(-32_600);
  for (const text of ['1', 'null', '{}', '{"method":1}'])
    expect(code((await post(chain, text)).json), text).toBe(-32_601);
  const call = { jsonrpc: '2.0', id: 1, method: 'eth_chainId' };
  const { json } = await post(chain, JSON.stringify(Array(100).fill(call)));
  expect(json).toEqual(Array(100).fill({ jsonrpc: '2.0', id: 1, result: '0x7a69' }));
  expect(code((await post(chain, JSON.stringify(Array(101).fill(call)))).json)).toBe(-32_600);
  expect((await post(chain, ' '.repeat(1_048_577))).status).toBe(413);
  for (const method of ['hardhat_reset', 'debug_traceCall', 'eth_subscribe', 'evm_setNextBlockTimestamp'])
    expect((await rpc(chain, method)).error?.code, method).toBe(-32_601);
  expect((await fetch(chain.rpcUrl)).status).toBe(405);
});

test('chain: after a request that ends the EVM, the contracts and signer sets are on a new chain, at the same addresses', async () => {
  const chain = await open();
  await chain.updateSignerSets([second.signerSet]);
  const types = { EIP712Domain: [], A: [{ name: 'a', type: `uint8${'[]'.repeat(100_000)}` }] };
  const typed = { types, primaryType: 'A', domain: {}, message: {} };
  const [from] = chain.accounts;
  const lost = rpc(chain, 'eth_signTypedData_v4', from?.address, typed);
  const waiting = rpc(chain, 'eth_chainId');
  expect((await lost).error).toMatchObject({ code: -32_603, message: expect.stringContaining('has started again') });
  expect((await waiting).result).toBe('0x7a69');
  expect((await verify(chain, second.sign(body, 1))).result).toBeDefined();
  expect((await verify(chain, first.sign(body, 1))).error?.data).toBe(inactive(first.signerSet.configDigest));
});

test('chain: pages of this machine may call it, pages of others may not', async () => {
  const chain = await open();
  const call = async (origin: string) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId' });
    const { status, headers } = await fetch(chain.rpcUrl, { method: 'POST', body, headers: { origin } });
    const preflight = await fetch(chain.rpcUrl, { method: 'OPTIONS', headers: { origin } });
    const name = 'access-control-allow-origin';
    return [status, headers.get(name), preflight.headers.get(name)];
  };
  for (const origin of ['http://localhost:5173', 'http://127.0.0.1', 'https://[::1]:3000'])
    expect(await call(origin)).toEqual([200, origin, origin]);
  for (const origin of [
    'https://example.com',
    'http://localhost.example.com',
    'null',
    'http://127.0.0.1.example.com:80',
  ])
    expect(await call(origin)).toEqual([403, null, null]);
});

test('chain: a call has its bytes as data, as input, or as both, as cast sends them, but not two different ones', async () => {
  const chain = await open();
  const data = verifyCalldata(first.sign(body, 1));
  for (const bytes of [{ data }, { input: data }, { data, input: data }])
    expect((await rpc(chain, 'eth_call', { to: chain.verifier, ...bytes }, 'latest')).result).toBeDefined();
  const [from] = chain.accounts;
  const sent = { from: from?.address, to: chain.verifier, data, input: data };
  expect((await rpc(chain, 'eth_estimateGas', sent)).result).toBeDefined();
  const different = { to: chain.verifier, data, input: '0x' };
  expect(await rpc(chain, 'eth_call', different, 'latest')).toHaveProperty('error');
});

test('chain: blocks, transactions and calls have at most 8 million gas', async () => {
  const chain = await open();
  const data = '0x5a60005260206000f3'; // returns the gas that is left
  const [, from] = chain.accounts;
  const tooMuch = { error: { message: expect.stringContaining('is greater than the cap (8000000)') } };
  const asked = { from: from?.address, data, gas: '0x7a1201' };
  expect(await rpc(chain, 'eth_call', asked, 'latest')).toMatchObject(tooMuch);
  expect(await rpc(chain, 'eth_sendTransaction', asked)).toHaveProperty('error');
  const raw = TransactionEnvelopeEip1559.from({
    chainId: 31_337,
    nonce: 0n,
    gas: 8_000_001n,
    maxFeePerGas: 10n ** 10n,
  });
  const { privateKey = '0x' } = from ?? {};
  const signature = Secp256k1.sign({ payload: TransactionEnvelopeEip1559.getSignPayload(raw), privateKey });
  const signed = TransactionEnvelopeEip1559.serialize(raw, { signature });
  expect(await rpc(chain, 'eth_sendRawTransaction', signed)).toHaveProperty('error');
  expect(Number((await rpc(chain, 'eth_call', { data }, 'latest')).result)).toBeGreaterThan(7_900_000);
  const { result: block } = await rpc(chain, 'eth_getBlockByNumber', 'latest', false);
  expect(Number(Object(block).gasLimit)).toBe(8_000_000);
});

test('chain: the contracts are deployed on a chain that the user runs, and follow the signer sets', async () => {
  const theirs = await open();
  const chain = await joinChain(theirs.rpcUrl, [first.signerSet]);
  expect(chain).toMatchObject({ rpcUrl: theirs.rpcUrl, chainId: 31_337 });
  expect(chain.accounts).toEqual(theirs.accounts.map(({ address }) => ({ address })));
  expect(chain.verifier).not.toBe(theirs.verifier);
  expect((await verify(chain, first.sign(body, 1))).error).toBeUndefined();
  await chain.updateSignerSets([second.signerSet]);
  expect((await verify(chain, second.sign(body, 1))).error).toBeUndefined();
  expect((await verify(chain, first.sign(body, 1))).error?.data).toBe(inactive(first.signerSet.configDigest));
  expect((await verify(theirs, first.sign(body, 1))).error).toBeUndefined();
  await chain.close();
  await theirs.close();
  await expect(joinChain(theirs.rpcUrl, [])).rejects.toThrow('does not answer as a JSON-RPC node (');
});
