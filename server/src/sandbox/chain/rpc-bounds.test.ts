import * as Rlp from 'ox/Rlp';
import * as Secp256k1 from 'ox/Secp256k1';
import * as TxEnvelopeEip1559 from 'ox/TxEnvelopeEip1559';
import * as TxEnvelopeEip2930 from 'ox/TxEnvelopeEip2930';
import * as TxEnvelopeLegacy from 'ox/TxEnvelopeLegacy';
import { expect, test } from 'vitest';
import { openEvm } from './evm.ts';
import { checkParams } from './rpc-bounds.ts';
import type { RpcOutcome } from './rpc-outcome.ts';

const max = `0x${'f'.repeat(64)}`;
const from = `0x${'1'.repeat(40)}`;
const to = `0x${'2'.repeat(40)}`;
const hexOf = (value: bigint) => `0x${value.toString(16)}`;
const { answer } = await openEvm({ chainId: 31_337, privateKeys: [], addresses: [], nowMs: () => 1_763_200_000_000 });

/** Calls the chain, but only where the process would survive it. */
const safely = (method: string, ...params: unknown[]): Promise<RpcOutcome> => {
  expect(checkParams(method, params), 'it must not reach EDR').toBeDefined();
  return answer(method, params);
};
const refusal = (message: string) => ({ error: { code: -32_602, message } });

const calls = ['eth_call', 'eth_estimateGas', 'eth_sendTransaction'];
const fees = ['gasPrice', 'maxFeePerGas', 'maxPriorityFeePerGas', 'maxFeePerBlobGas'];

test.each(calls)(
  'rpc bounds: %s with an amount that overflows is rejected, and does not end the process',
  async (method) => {
    for (const value of [max, hexOf(2n ** 128n), `0b${'1'.repeat(256)}`, (2n ** 130n).toString(), -1, 1e40, {}, true])
      expect(await safely(method, { from, to, value }), String(value)).toEqual(
        refusal('value must be a hex number below 2^128.'),
      );
    for (const fee of fees)
      for (const value of [`0x${'f'.repeat(32)}`, hexOf(2n ** 96n), (2n ** 127n).toString()])
        expect(await safely(method, { from, to, [fee]: value })).toEqual(
          refusal(`${fee} must be a hex number below 2^96.`),
        );
    // EDR also takes the fields as a list in their order.
    for (const call of [[from, to, null, `0x${'f'.repeat(32)}`, null, null, max], null, undefined, 'call'])
      expect(await safely(method, call)).toEqual(refusal('A call is an object with fields such as to and data.'));
  },
);

test('rpc bounds: the largest amounts that are allowed do not end the process, also with an overridden balance', async () => {
  const value = hexOf(2n ** 128n - 1n);
  for (const fee of fees.slice(0, 3)) {
    const call = { from, to, value, [fee]: hexOf(2n ** 96n - 1n) };
    const overrides = { [from]: { balance: max }, [to]: { balance: hexOf(2n ** 255n) } };
    expect(await answer('eth_call', [call, 'latest', overrides]), fee).toEqual({ result: '0x' });
    expect(await answer('eth_estimateGas', [call]), fee).toEqual({ result: '0x5209' });
  }
  for (const small of ['0x', '0x0', '0x01', 1, null])
    expect(await answer('eth_call', [{ from, to, value: small }, 'latest'])).toEqual({ result: '0x' });
});

test('rpc bounds: a signed transaction of any type has at most 8 million gas', async () => {
  const privateKey = `0x${'4'.repeat(64)}` as const;
  const signer = '0x7564105e977516c53be337314c7e53838967bdac';
  const options = { privateKeys: [privateKey], addresses: [signer], nowMs: () => 1_763_200_000_000 };
  const chain = await openEvm({ chainId: 31_337, ...options });
  const send = (raw: unknown) => chain.answer('eth_sendRawTransaction', [raw]);
  const common = { chainId: 31_337, to: to as `0x${string}`, value: 1n } as const;
  const legacy = (nonce: bigint, gas: bigint) => {
    const envelope = TxEnvelopeLegacy.from({ ...common, nonce, gas, gasPrice: 10n ** 9n });
    const signature = Secp256k1.sign({ payload: TxEnvelopeLegacy.getSignPayload(envelope), privateKey });
    return TxEnvelopeLegacy.serialize(envelope, { signature });
  };
  const accessList = (nonce: bigint, gas: bigint) => {
    const envelope = TxEnvelopeEip2930.from({ ...common, nonce, gas, gasPrice: 10n ** 9n });
    const signature = Secp256k1.sign({ payload: TxEnvelopeEip2930.getSignPayload(envelope), privateKey });
    return TxEnvelopeEip2930.serialize(envelope, { signature });
  };
  const dynamic = (nonce: bigint, gas: bigint) => {
    const envelope = TxEnvelopeEip1559.from({ ...common, nonce, gas, maxFeePerGas: 10n ** 9n });
    const signature = Secp256k1.sign({ payload: TxEnvelopeEip1559.getSignPayload(envelope), privateKey });
    return TxEnvelopeEip1559.serialize(envelope, { signature });
  };
  for (const [nonce, raw] of [legacy, accessList, dynamic].entries()) {
    for (const gas of [8_000_001n, 2n ** 64n - 1n])
      expect(await send(raw(BigInt(nonce), gas))).toEqual(refusal('The gas of a transaction must be at most 8000000.'));
    expect(await send(raw(BigInt(nonce), 8_000_000n))).toEqual({ result: expect.stringMatching(/^0x[0-9a-f]{64}$/) });
  }
  const deep = `0x${'c1'.repeat(200_000)}c0`;
  for (const raw of ['0x', '0x02', '0x02c0', '02c0', '0x00c0', '0xzz', deep, `0x03${deep.slice(2)}`, 5, null])
    expect(await send(raw)).toEqual(refusal('A raw transaction is a signed transaction in hex.'));
});

test('rpc bounds: blob transactions and those that set code have at most 8 million gas, with their blobs and without', async () => {
  const body = ['0x7a69', '0x', '0x', '0x3b9aca00', '0x7a1201', to, '0x', '0x', []] as const;
  for (const [type, fields] of [
    ['0x03', body],
    ['0x03', [body, ['0x00'], ['0x00'], ['0x00']]],
    ['0x04', body],
  ] as const) {
    const raw = `${type}${Rlp.fromHex(fields as Parameters<typeof Rlp.fromHex>[0]).slice(2)}`; // lists in lists
    expect(await answer('eth_sendRawTransaction', [raw])).toEqual(
      refusal('The gas of a transaction must be at most 8000000.'),
    );
  }
});

test('rpc bounds: a range of logs ends with the newest block', async () => {
  for (const toBlock of ['0xffffffffffffffff', '0xf4241', max]) {
    expect(await answer('eth_getLogs', [{ fromBlock: '0x0', toBlock }])).toEqual({ result: [] });
    expect(await answer('eth_newFilter', [{ fromBlock: '0x0', toBlock }])).toEqual({ result: expect.any(String) });
    expect(await answer('eth_getLogs', [{ fromBlock: toBlock.slice(0, 18), toBlock }])).toEqual({ result: [] });
  }
  for (const block of ['earliest', 'latest', 'pending', 'safe', 'finalized', '0x0', null])
    expect(await answer('eth_getLogs', [{ fromBlock: block, toBlock: block }])).toEqual({ result: [] });
  for (const toBlock of [{ blockNumber: '0xfffffffffffff' }, '0x_ffffffffffff', '99999999999999', 5, 'newest'])
    expect(await safely('eth_getLogs', { fromBlock: '0x0', toBlock })).toEqual(
      refusal('toBlock must be a block number in hex, or a tag such as latest.'),
    );
  expect(await safely('eth_newFilter', ['0x0', '0xffffffffffffffff'])).toEqual(
    refusal('A log filter is an object with fields such as fromBlock and address.'),
  );
});

test('rpc bounds: a log filter has at most 1,000 addresses, and 4 topics with 1,000 alternatives', async () => {
  const topic = `0x${'3'.repeat(64)}`;
  const within = { address: Array(1_000).fill(to), topics: [Array(1_000).fill(topic), null, topic, []] };
  expect(await answer('eth_getLogs', [within])).toEqual({ result: [] });
  expect(await answer('eth_getLogs', [{ address: Array(1_001).fill(to) }])).toEqual(
    refusal('A log filter has at most 1000 addresses, not 1001.'),
  );
  expect(await answer('eth_newFilter', [{ topics: Array(5).fill(null) }])).toEqual(
    refusal('A log has at most 4 topics, not 5.'),
  );
  expect(await answer('eth_getLogs', [{ topics: [null, Array(1_001).fill(topic)] }])).toEqual(
    refusal('A log filter has at most 1000 topics per position.'),
  );
});

test('rpc bounds: the fee history has at most 100 percentiles of 1,024 blocks', async () => {
  const history = (count: string, percentiles: number) =>
    answer('eth_feeHistory', [count, 'latest', Array(percentiles).fill(1)]);
  expect(await history('0x400', 100)).toHaveProperty('result.reward');
  expect(await history('0x400', 101)).toEqual(refusal('At most 100 percentiles are offered, not 101.'));
  expect(await history('0x401', 1)).toHaveProperty('error.message', 'blockCount should be at most 1024');
});

type Types = Record<string, unknown>;
const typedData = (types: Types) => ({
  types: { EIP712Domain: [], ...types },
  primaryType: 'A',
  domain: {},
  message: {},
});

test('rpc bounds: typed data whose types are deep, wide or circular is rejected, and does not end the process', async () => {
  const sign = (typed: unknown) => safely('eth_signTypedData_v4', from, typed);
  const chain = Array.from({ length: 5_000 }, (_, i) => [i === 0 ? 'A' : `A${i}`, [{ name: 'a', type: `A${i + 1}` }]]);
  const nested = (i: number) => ['a', 'b'].map((name) => ({ name, type: `A${i + 1}[2]` }));
  const tree = Array.from({ length: 30 }, (_, i) => [i === 0 ? 'A' : `A${i}`, nested(i)]);
  const wide = Array.from({ length: 1_001 }, (_, i) => ({ name: `a${i}`, type: 'uint8' }));
  const circular = { A: [{ name: 'a', type: 'A' }] };
  for (const types of [Object.fromEntries(chain), Object.fromEntries(tree), { A: wide }, circular]) {
    const tooMany = refusal('Typed data has at most 1000 fields, those of nested types included.');
    expect(await sign(typedData(types))).toEqual(tooMany);
    expect(await sign(JSON.stringify(typedData(types)))).toEqual(tooMany);
  }
  for (const type of [`uint8${'[]'.repeat(126)}`, 'A.', ' A', '(A)', 5, null])
    expect(await sign(typedData({ A: [{ name: 'a', type }] }))).toEqual(
      refusal('types.A must be a list of fields, each with a name and a type of at most 256 characters.'),
    );
  expect(await sign(typedData({ A: [['uint8', 'a']] }))).toHaveProperty('error.code', -32_602);
  for (const typed of [[{}, {}, 'A', {}], '[]', '{', '"{}"', {}, null])
    expect(await sign(typed)).toEqual(refusal('Typed data is an object with types, primaryType, domain and message.'));
});

test('rpc bounds: typed data of wallets is signed, as an object and as text', async () => {
  const privateKey = `0x${'4'.repeat(64)}`;
  const signer = '0x7564105e977516c53be337314c7e53838967bdac';
  const chain = await openEvm({
    chainId: 31_337,
    privateKeys: [privateKey],
    addresses: [],
    nowMs: () => 1_763_200_000_000,
  });
  const types = {
    EIP712Domain: [{ name: 'name', type: 'string' }],
    Person: [{ name: 'wallets', type: 'address[]' }],
    Mail: [
      { name: 'from', type: 'Person' },
      { name: 'to', type: 'Person[2]' },
    ],
  };
  const person = { wallets: [to] };
  const typed = { types, primaryType: 'Mail', domain: { name: 'a' }, message: { from: person, to: [person, person] } };
  const [text, object] = await Promise.all(
    [JSON.stringify(typed), typed].map((one) => chain.request('eth_signTypedData_v4', signer, one)),
  );
  expect(text).toMatch(/^0x[0-9a-f]{130}$/);
  expect(object).toBe(text);
});

test('rpc bounds: of more than 100 filters, those that were not used for the longest time are removed', async () => {
  const made = async (method: string, ...params: unknown[]) => Object(await answer(method, params)).result as string;
  const changes = async (id: string | undefined) => Object(await answer('eth_getFilterChanges', [id])).result;
  const first = await made('eth_newBlockFilter');
  const second = await made('eth_newFilter', {});
  const removed = await made('eth_newPendingTransactionFilter');
  expect(await answer('eth_uninstallFilter', [removed])).toEqual({ result: true });
  for (let i = 0; i < 98; i += 1) await made('eth_newFilter', {});
  expect(await changes(first)).toEqual(expect.any(Array));
  await made('eth_newBlockFilter');
  expect(await changes(first)).toEqual([]);
  expect(await changes(second)).toBeNull();
});
