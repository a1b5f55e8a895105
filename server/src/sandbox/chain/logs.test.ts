import * as Address from 'ox/Address';
import * as Secp256k1 from 'ox/Secp256k1';
import { expect, test } from 'vitest';
import { openEvm } from './evm.ts';

const privateKey = `0x${'4'.repeat(64)}` as const;
const from = Address.fromPublicKey(Secp256k1.getPublicKey({ privateKey }));

/** JUMPDEST; LOG0 of so many zeros; again while there is so much gas. */
const loggingCode = (bytes: string, gas: string) => `5b61${bytes}5fa05a62${gas}105f5700`;
const emptyLogs = loggingCode('0000', '000400');
const longLogs = loggingCode('8000', '050000');

type Log = { readonly blockNumber: string; readonly logIndex: string; readonly data: string };

/** A chain with a contract that logs as long as a transaction has gas. */
const openLogging = async (code: string) => {
  const options = { privateKeys: [privateKey], addresses: [from], nowMs: () => 1_763_200_000_000 };
  const { answer, request } = await openEvm({ chainId: 31_337, ...options });
  const size = (code.length / 2).toString(16).padStart(2, '0');
  const word = code.padEnd(64, '0');
  const hash = await request('eth_sendTransaction', { from, data: `0x7f${word}5f5260${size}5ff3` });
  const { contractAddress: to } = (await request('eth_getTransactionReceipt', hash)) as { contractAddress: string };
  const ask = (method: string, ...params: unknown[]) => answer(method, params);
  return {
    to,
    ask,
    request,
    log: (gas = 8_000_000) => request('eth_sendTransaction', { from, to, gas: `0x${gas.toString(16)}` }),
    logs: async (method: string, ...params: unknown[]) => (await request(method, ...params)) as readonly Log[],
    newest: async () => Number(await request('eth_blockNumber')),
  };
};
const limit = (message: unknown) => ({ error: { code: -32_005, message } });
const all = { fromBlock: '0x0', toBlock: 'latest' };

test('logs: a range has at most 10,000 blocks, and the error has one that is allowed', async () => {
  const { ask, request, to } = await openLogging(emptyLogs);
  for (let i = 0; i < 10_000; i += 1) await request('evm_mine');
  const id = await request('eth_newFilter', all);
  const tooMany =
    'Logs of at most 10000 blocks are read at once, not of 10002. Call eth_getLogs for fewer, such as fromBlock 0x0 and toBlock 0x270f.';
  for (const filter of [all, { fromBlock: 'earliest', toBlock: '0xffffffff' }, { ...all, address: to }])
    expect(await ask('eth_getLogs', filter)).toEqual(limit(tooMany));
  expect(await ask('eth_getFilterLogs', id)).toEqual(limit(tooMany));
  for (const range of [{ fromBlock: '0x0', toBlock: '0x270f' }, { fromBlock: '0x2' }, {}])
    expect(await ask('eth_getLogs', range)).toEqual({ result: [] });
});

test('logs: an answer has at most 10,000, the error names blocks with fewer, and a filter answers the rest next time', async () => {
  const { ask, log, logs, request, to, newest } = await openLogging(emptyLogs);
  const id = await request('eth_newFilter', all);
  await log(200_000);
  await log(6_000_000);
  const [small, large] = [await newest(), await newest()].map((block, i) => `0x${(block - 1 + i).toString(16)}`);
  const few = await logs('eth_getLogs', { fromBlock: '0x0', toBlock: small });
  expect(few.length).toBeGreaterThan(100);
  const tooMany = 'An answer has at most 10000 logs and 10 MB; there are more.';
  expect(await ask('eth_getLogs', all)).toEqual(
    limit(
      `${tooMany} Call eth_getLogs for fewer blocks, such as up to toBlock ${small}, or ask for an address or topics.`,
    ),
  );
  const narrower = limit(`${tooMany} Ask for an address or topics, or for the receipts of single transactions.`);
  const { hash } = (await request('eth_getBlockByNumber', large, false)) as { hash: string };
  for (const filter of [{ fromBlock: large }, {}, { blockHash: hash }, { address: to }])
    expect(await ask('eth_getLogs', filter)).toEqual(narrower);
  expect(await ask('eth_getFilterLogs', id)).toHaveProperty('error.code', -32_005);
  expect(await logs('eth_getLogs', { ...all, address: from })).toEqual([]);
  const first = await logs('eth_getFilterChanges', id);
  const second = await logs('eth_getFilterChanges', id);
  expect(await logs('eth_getFilterChanges', id)).toEqual([]);
  expect(first).toHaveLength(10_000);
  const ofLarge = [...first, ...second].slice(few.length);
  expect([...first, ...second].slice(0, few.length)).toEqual(few);
  expect(ofLarge.map(({ logIndex }) => Number(logIndex))).toEqual(ofLarge.map((_, i) => i));
  expect(new Set(ofLarge.map(({ blockNumber }) => blockNumber))).toEqual(new Set([large]));
  const receipt = (await request('eth_getBlockByNumber', large, false)) as { transactions: string[] };
  const { logs: logged } = (await request('eth_getTransactionReceipt', receipt.transactions[0])) as { logs: Log[] };
  expect(ofLarge).toHaveLength(logged.length);
});

test('logs: an answer has at most 10 MB', async () => {
  const { ask, log, logs, request } = await openLogging(longLogs);
  const id = await request('eth_newFilter', all);
  for (let i = 0; i < 6; i += 1) await log();
  expect(await ask('eth_getLogs', all)).toEqual(
    limit(expect.stringMatching(/^An answer has at most 10000 logs and 10 MB; .* such as up to toBlock 0x6, or/)),
  );
  const toSix = await logs('eth_getLogs', { fromBlock: '0x0', toBlock: '0x6' });
  expect(JSON.stringify(toSix).length).toBeGreaterThan(7_000_000);
  const reads = [await logs('eth_getFilterChanges', id), await logs('eth_getFilterChanges', id)];
  for (const read of reads) expect(JSON.stringify(read).length).toBeLessThan(10_010_000);
  expect(reads.flat().map(({ blockNumber }) => Number(blockNumber))).toEqual(
    [2, 3, 4, 5, 6, 7].flatMap((block) => Array(toSix.length / 5).fill(block)),
  );
  expect(await logs('eth_getFilterChanges', id)).toEqual([]);
});

test('filters: nothing is collected for them: a revert moves them back, and blocks made after it are new', async () => {
  const { log, logs, request } = await openLogging(emptyLogs);
  const [ofLogs, ofBlocks, ofTransactions] = [
    await request('eth_newFilter', {}),
    await request('eth_newBlockFilter'),
    await request('eth_newPendingTransactionFilter'),
  ];
  const readAll = async () => {
    const found = await logs('eth_getFilterChanges', ofLogs);
    const [blocks, transactions] = [
      (await request('eth_getFilterChanges', ofBlocks)) as string[],
      (await request('eth_getFilterChanges', ofTransactions)) as string[],
    ];
    return { blockNumbers: [...new Set(found.map(({ blockNumber }) => blockNumber))], blocks, transactions };
  };
  expect(await readAll()).toEqual({ blockNumbers: [], blocks: [expect.any(String)], transactions: [] });
  const snapshot = await request('evm_snapshot');
  await log(40_000);
  await request('evm_revert', snapshot);
  expect(await readAll()).toEqual({ blockNumbers: [], blocks: [], transactions: [] }); // EDR still has what was not read
  const second = await request('evm_snapshot');
  await log(50_000);
  const hash = await log(50_000);
  const read = await readAll();
  expect(read).toEqual({
    blockNumbers: ['0x2', '0x3'],
    blocks: [expect.any(String), expect.any(String)],
    transactions: [expect.any(String), hash],
  });
  await request('evm_revert', second);
  expect(await readAll()).toEqual({ blockNumbers: [], blocks: [], transactions: [] });
  const again = await log(60_000);
  expect(await readAll()).toEqual({ blockNumbers: ['0x2'], blocks: [expect.any(String)], transactions: [again] });
});

test('filters: logs up to a block end there, and what is no filter is an error or null', async () => {
  const { ask, log, logs, request } = await openLogging(emptyLogs);
  const id = await request('eth_newFilter', { fromBlock: '0x0', toBlock: '0x2' });
  await log(50_000);
  await log(50_000);
  const blocks = new Set((await logs('eth_getFilterLogs', id)).map(({ blockNumber }) => blockNumber));
  expect([...blocks]).toEqual(['0x2']);
  expect(await logs('eth_getFilterChanges', id)).toEqual(await logs('eth_getFilterLogs', id));
  expect(await logs('eth_getFilterChanges', id)).toEqual([]);
  expect(await ask('eth_getFilterLogs', await request('eth_newBlockFilter'))).toEqual({
    error: { code: -32_602, message: 'This filter is one of blocks. Use eth_getFilterChanges.' },
  });
  expect(await ask('eth_getFilterChanges', '0xfff')).toEqual({ result: null });
  expect(await ask('eth_uninstallFilter', '0xfff')).toEqual({ result: false });
  for (const [method, ...params] of [
    ['eth_getFilterChanges'],
    ['eth_getFilterLogs', 5],
    ['eth_newFilter', { address: '0x12' }],
    ['eth_newFilter', { topics: [5] }],
    ['eth_newFilter', { blockHash: `0x${'1'.repeat(64)}` }],
    ['eth_getLogs', { blockHash: `0x${'1'.repeat(64)}` }],
  ] as const)
    expect(await ask(method, ...params), method).toHaveProperty('error.code', -32_602);
});
