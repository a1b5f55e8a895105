// Tests of the liquidation bot, with vitest.
import { type Sandbox, startSandbox } from '@sealpost/sandbox';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bot, decide, type Loan } from './liquidation-bot.ts';

const one = 10n ** 18n;
const loans: readonly Loan[] = [
  { id: 'safe', collateral: 10n * one, debt: 20_000n * one },
  { id: 'tight', collateral: 10n * one, debt: 33_000n * one },
];

let sandbox: Sandbox;
let bot: Bot;

beforeEach(async () => {
  sandbox = await startSandbox({ streams: ['ETH/USD'] });
  bot = { client: sandbox.client, signers: sandbox.signers, stream: 'ETH/USD', ageMaxSeconds: 30, now: sandbox.now };
});
afterEach(() => sandbox.close());

test('liquidation bot: names the loans that are under water', async () => {
  await sandbox.push('ETH/USD', '4200.55');
  expect(await decide(bot, loans)).toMatchObject({ act: 'liquidate', loans: [] });
  await sandbox.push('ETH/USD', '3900');
  expect(await decide(bot, loans)).toEqual({ act: 'liquidate', loans: ['tight'], price: 3_900n * one });
});

test('liquidation bot: two errors of the service cost two more requests, no decision', async () => {
  await sandbox.push('ETH/USD', '3900');
  const fault = sandbox.fault('status=503,count=2,route=reportLatest');
  expect(await decide(bot, loans)).toMatchObject({ act: 'liquidate', loans: ['tight'] });
  expect(fault.applied).toBe(2);
  expect(sandbox.requestsTo('reportLatest').map(({ status }) => status)).toEqual([503, 503, 200]);
});

test('liquidation bot: waits when a stream stops, and goes on with its next price', async () => {
  await sandbox.push('ETH/USD', '3900');
  await sandbox.advance('31s');
  expect(await decide(bot, loans)).toEqual({ act: 'wait', why: 'the price is 31 s old' });
  await sandbox.push('ETH/USD', '3900');
  expect(await decide(bot, loans)).toMatchObject({ act: 'liquidate', loans: ['tight'] });
});

test.each(['wrong-signer', 'few-signatures', 'altered-body'])(
  'liquidation bot: does not act on a report with the fault %s',
  async (kind) => {
    await sandbox.push('ETH/USD', '3900');
    const fault = sandbox.fault(kind);
    expect(await decide(bot, loans)).toEqual({ act: 'wait', why: 'the price is not signed by a quorum' });
    fault.clear();
    expect(await decide(bot, loans)).toMatchObject({ act: 'liquidate' });
  },
);

test('liquidation bot: trusts its own signers, not those that the server names', async () => {
  const other = await startSandbox({ streams: ['ETH/USD'], seed: 'another network' });
  bot = { ...bot, client: other.client, now: other.now };
  await other.push('ETH/USD', '3900');
  expect(await decide(bot, loans)).toEqual({ act: 'wait', why: 'the price is not signed by a quorum' });
  await other.close();
});

test('liquidation bot: says so when its secret is revoked', async () => {
  await sandbox.push('ETH/USD', '3900');
  sandbox.fault('revoked');
  expect(await decide(bot, loans)).toMatchObject({ act: 'wait', why: expect.stringMatching(/^the service answers /) });
});
