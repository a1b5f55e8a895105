// Holds what ships, and what the documents say, against the contracts as compiled. One file, so that a run without a cache compiles once.
import { verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';
import { encodeReportBody, type Hex } from '@sealpost/protocol';
import * as AbiItem from 'ox/AbiItem';
import { expect, test } from 'vitest';
import { verifierSelectors } from '../../sandbox/src/chain/chain.ts';
import { countOf, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { createRandom } from '../support/random.ts';
import { secondStream } from '../support/signed-reports.ts';
import { readText } from '../support/source-tree.ts';
import { alterations, openVerifiers, runAgreement } from './agreement.ts';
import { compileAll, compilerVersion } from './compile.ts';
import { createBody } from './reports.ts';
import { accounts, openWorld, settlementErrors, start } from './world.ts';

const { verifier, settlement, reentrantVerifier, tutorialConsumer } = compileAll();

test('contracts: the bytecode that ships is compiled from the sources', async () => {
  const text = [
    `// Generated from contracts/ by solc ${compilerVersion}: npx vitest run tests/contracts/compiled -u`,
    ...Object.entries({ verifierBytecode: verifier.bytecode, settlementBytecode: settlement.bytecode }).map(
      ([name, bytecode]) =>
        `\n/** What creates the contract; arguments of its constructor follow. */\nexport const ${name} =\n  '${bytecode}';`,
    ),
    '',
  ].join('\n');
  const hint = 'Out of date. To write it again: npx vitest run tests/contracts/compiled -u';
  await expect(text, hint).toMatchFileSnapshot('../../sandbox/src/chain/bytecode.ts');
});

test('contracts: the errors that the tests know are those of the settlement contract', () => {
  const selectors = settlement.abi
    .filter(({ type }) => type === 'error')
    .map((item) => AbiItem.getSelector(item as never));
  expect(settlementErrors.map((text) => AbiItem.getSelector(text)).sort()).toEqual(selectors.sort());
});

test('contracts: every function has NatSpec', () => {
  for (const { abi, userdoc } of [verifier, settlement]) {
    const functions = abi.flatMap((item) => (item.type === 'function' ? [AbiItem.getSignature(item)] : []));
    expect(functions.filter((signature) => !Object.keys(userdoc.methods ?? {}).includes(signature))).toEqual([]);
  }
});

test('contracts: the chain of the sandbox calls functions by their selectors', () => {
  const found = Object.fromEntries(
    verifier.abi.flatMap((item) => (item.type === 'function' ? [[item.name, AbiItem.getSelector(item)]] : [])),
  );
  expect(found).toMatchObject(verifierSelectors);
});

type Verifiers = Awaited<ReturnType<typeof openVerifiers>>;

/** Gas of settling a trade with a report of two signatures. */
const measureSettlement = async ({ world, networks, ours }: Verifiers): Promise<number> => {
  const consumer = await world.deploy(settlement.bytecode, ours);
  const [, buyer, seller] = accounts;
  const [feedId, time, price] = [secondStream(1), start + 60, 10n ** 20n];
  const offer = 'function offer(address,bytes32,uint32,int192) payable';
  await world.send(consumer, offer, [seller, feedId, time, price], { from: buyer, value: 1n });
  await world.send(consumer, 'function accept(uint256) payable', [0n], { from: seller, value: 1n });
  const times = { validFromTimestamp: time, observationsTimestamp: time, expiresAt: time + 86_400 };
  const prices = { nativeFee: 1n, linkFee: 1n, price: price + 1n, bid: price, ask: price };
  const report = networks[0]?.sign(encodeReportBody({ version: 3, feedId, ...times, ...prices }), 1);
  return Number((await world.send(consumer, 'function settle(uint256,bytes)', [0n, report])).gasUsed);
};

/** Gas of transactions, measured: ours, and the published contracts behind their proxy. */
const measureGas = async (verifiers: Verifiers) => {
  const { world, networks, signerSets, ours, proxy, gasOfSets } = verifiers;
  const gasOf = async (to: Hex | undefined, data: Hex) => Number((await world.sendData(to, data)).gasUsed);
  const body = createBody(createRandom(3));
  const calls = networks.map(
    ({ sign, signerSet: { f } }) => [`\`verify\`, ${f + 1} signatures`, verifyCalldata(sign(body, 1))] as const,
  );
  const four = Array.from({ length: 4 }, (_, i) => networks[2]?.sign(body, i) as Hex);
  const rows = [...calls, ['`verifyBulk`, 4 reports of 6 signatures', verifyBulkCalldata(four)] as const];
  const measured: (readonly [string, number, number | undefined])[] = [];
  for (const [name, data] of rows) measured.push([name, await gasOf(ours, data), await gasOf(proxy, data)]);
  return [
    ...measured,
    ...gasOfSets.map(
      ([own, other], i) => [`\`setConfig\`, ${signerSets[i]?.addresses.length} signers`, own, other] as const,
    ),
    ['deployment of ReportVerifier', await gasOf(undefined, verifier.bytecode), undefined] as const,
    ['`settle` of TradeSettlement, 2 signatures', await measureSettlement(verifiers), undefined] as const,
  ];
};

test('on-chain.md: the gas table is what the contracts use', async () => {
  const format = (gas: number | undefined) => (gas === undefined ? '–' : gas.toLocaleString('en-US'));
  const rows = (await measureGas(await openVerifiers())).map(
    ([name, own, other]) => `| ${name} | ${format(own)} | ${format(other)} |`,
  );
  const table = ['| call | ReportVerifier | published contracts |', '| --- | ---: | ---: |', ...rows].join('\n');
  const text = readText('docs/on-chain.md');
  expect(text).toContain('<!-- gas -->\n');
  const renewed = text.replace(
    /(<!-- gas -->\n)[\s\S]*?(<!-- \/gas -->)/,
    (_, open, close) => `${open}\n${table}\n\n${close}`,
  );
  const hint = 'Out of date. To write the table again: npx vitest run tests/contracts/compiled -u';
  await expect(renewed, hint).toMatchFileSnapshot('../../docs/on-chain.md');
});

test('contracts: a verifier that settles the trade again from within settles it once', async () => {
  const world = await openWorld();
  const evil = await world.deploy(reentrantVerifier.bytecode);
  const consumer = await world.deploy(settlement.bytecode, evil);
  const [, buyer, seller] = accounts;
  const [feedId, time, value] = [secondStream(1), start + 60, 5n];
  const offer = 'function offer(address,bytes32,uint32,int192) payable';
  await world.send(consumer, offer, [seller, feedId, time, 0n], { from: buyer, value });
  await world.send(consumer, 'function accept(uint256) payable', [0n], { from: seller, value });
  const words = [BigInt(feedId), time, time, 0n, 0n, time + 60, 1n, 1n, 1n].map((word) => BigInt(word).toString(16));
  const body = `0x${words.map((word) => word.padStart(64, '0')).join('')}`;
  await world.send(consumer, 'function settle(uint256,bytes)', [0n, body]);
  expect(await world.call(evil, 'function succeeded() returns (bool)')).toBe(false);
  expect(await world.call(consumer, 'function balanceOf(address) returns (uint256)', [buyer])).toBe(2n * value);
});

test('contracts: a consumer that asks for the fee manager and sends ether works with ours as with the published contracts', async () => {
  const { world, networks, ours, proxy } = await openVerifiers();
  const prices = { nativeFee: 1n, linkFee: 1n, price: 7n, bid: 6n, ask: 8n };
  const times = { validFromTimestamp: start, observationsTimestamp: start, expiresAt: start + 86_400 };
  const bodyOf = (price: bigint) =>
    encodeReportBody({ version: 3, feedId: secondStream(1), ...times, ...prices, price });
  const report = (price: bigint) => networks[0]?.sign(bodyOf(price), 1) as Hex;
  for (const to of [ours, proxy]) {
    const consumer = await world.deploy(tutorialConsumer.bytecode, to);
    const price = () => world.call(consumer, 'function lastPrice() returns (int192)');
    await world.send(consumer, 'function verifyReport(bytes) payable', [report(7n)], { value: 5n });
    expect(await price()).toBe(7n);
    await world.send(consumer, 'function verifyReport(bytes) payable', [report(8n)]);
    expect(await price()).toBe(8n);
    await world.send(consumer, 'function verifyReports(bytes[]) payable', [[report(7n), report(9n)]], { value: 5n });
    expect(await price()).toBe(9n);
    expect(await world.balance(to)).toBe(10n);
  }
});

const count = countOf(100, 10_000);

test('agreement: our contract accepts exactly what verify accepts, and so do the published contracts, but for the encoding', async () => {
  const { reports, accepted, publishedOnly, disagreements } = await runAgreement(count, seedOf(1));
  tally({ accepted, disagreements: disagreements.length });
  tallyControl({ 'more accepted': Object.values(publishedOnly).reduce((sum, one) => sum + one, 0) });
  expect(disagreements).toEqual([]);
  expect(reports).toBe(count);
  expect(accepted).toBeGreaterThan(count / 4);
  expect(accepted).toBeLessThan(count / 2);
  // D179: these have bytes that ABI decoders skip.
  const loose = [
    'extended',
    'extended by other bytes',
    'fee token inside',
    'tail moved to the end',
    'vs with bytes after its signatures',
  ];
  expect(Object.keys(publishedOnly)).toEqual(expect.arrayContaining(loose));
  expect(Object.keys(alterations).length).toBeGreaterThan(20);
});
