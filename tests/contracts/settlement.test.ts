// TradeSettlement in a real EVM: a trade is settled by the report of its stream and time, once.
import { setConfigCalldata } from '@sealpost/client/onchain';
import { encodeReportBody, type Hex, parseFeedId } from '@sealpost/protocol';
import { createNetwork, type Network } from '@sealpost/simulator';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { settlementBytecode, verifierBytecode } from '../../sandbox/src/chain/bytecode.ts';
import { secondStream } from '../support/signed-reports.ts';
import { accounts, openWorld, start, type World } from './world.ts';

const [, buyer, seller] = accounts;
const stream = secondStream(1);
const strike = 100n * 10n ** 18n;
const stake = 10n ** 15n;
/** The time of the trades. */
const time = start + 60;
const day = 86_400;

let world: World;
let network: Network;
let consumer: Hex;

beforeAll(async () => {
  network = await createNetwork({ seed: 'settlement' });
});

beforeEach(async () => {
  world = await openWorld();
  const verifier = await world.deploy(verifierBytecode);
  await world.sendData(verifier, setConfigCalldata(network.signerSet));
  consumer = await world.deploy(settlementBytecode, verifier);
});

type ReportOptions = { readonly feedId?: Hex; readonly price?: bigint; readonly expiresAt?: number };

const report = (validFrom: number, observations: number, options: ReportOptions = {}): Hex => {
  const { feedId = stream, price = strike + 1n, expiresAt = observations + 30 * day } = options;
  const body = encodeReportBody({
    version: 3,
    feedId: parseFeedId(feedId),
    validFromTimestamp: validFrom,
    observationsTimestamp: observations,
    nativeFee: 1n,
    linkFee: 1n,
    expiresAt,
    price,
    bid: price,
    ask: price,
  });
  return network.sign(body, 1);
};

const offer = 'function offer(address,bytes32,uint32,int192) payable';
const makeOffer = (args: readonly unknown[] = [seller, stream, time, strike], value = stake) =>
  world.send(consumer, offer, args, { from: buyer, value });
const accept = (id: bigint, value = stake, from: Hex = seller) =>
  world.send(consumer, 'function accept(uint256) payable', [id], { from, value });
const settle = (id: bigint, signed: Hex) => world.send(consumer, 'function settle(uint256,bytes)', [id, signed]);
const cancel = (id: bigint, from: Hex = buyer) => world.send(consumer, 'function cancel(uint256)', [id], { from });
const balanceOf = (account: Hex) => world.call(consumer, 'function balanceOf(address) returns (uint256)', [account]);
const open = async (): Promise<void> => {
  await makeOffer();
  await accept(0n);
};

test('settlement: above the strike price the buyer gets both stakes, and withdraws them once', async () => {
  await open();
  world.setTime(time + 1);
  await settle(0n, report(time, time + 1));
  expect([await balanceOf(buyer), await balanceOf(seller)]).toEqual([2n * stake, 0n]);
  await world.send(consumer, 'function withdraw()', [], { from: buyer });
  expect([await balanceOf(buyer), await world.balance(consumer)]).toEqual([0n, 0n]);
  await world.send(consumer, 'function withdraw()', [], { from: buyer });
  expect(await world.balance(consumer)).toBe(0n);
});

test('settlement: at and below the strike price, also a negative one, the seller gets both stakes', async () => {
  for (const [i, price] of [strike, strike - 1n, -1n].entries()) {
    await makeOffer();
    await accept(BigInt(i));
    await settle(BigInt(i), report(time, time, { price }));
  }
  expect([await balanceOf(buyer), await balanceOf(seller)]).toEqual([0n, 6n * stake]);
});

test('settlement: a report settles a trade once, and every other trade that it fits', async () => {
  const signed = report(time, time);
  for (const id of [0n, 1n]) {
    await makeOffer();
    await accept(id);
    await settle(id, signed);
    await expect(settle(id, signed)).rejects.toThrow('WrongStatus(2)');
    await expect(settle(id, report(time - 1, time + 1))).rejects.toThrow('WrongStatus(2)');
    await expect(cancel(id)).rejects.toThrow('WrongStatus(2)');
  }
  expect(await world.balance(consumer)).toBe(4n * stake);
  expect(await balanceOf(buyer)).toBe(4n * stake);
});

test('settlement: the report must be valid at the time of the trade, both ends included', async () => {
  await open();
  await expect(settle(0n, report(time + 1, time + 2))).rejects.toThrow(`WrongTime(${time + 1}, ${time + 2}, ${time})`);
  await expect(settle(0n, report(time - 2, time - 1))).rejects.toThrow(`WrongTime(${time - 2}, ${time - 1}, ${time})`);
  for (const [from, to] of [
    [time, time + 9],
    [time - 9, time],
  ] as const) {
    const snapshot = await world.request('evm_snapshot');
    await settle(0n, report(from, to));
    await world.request('evm_revert', snapshot);
  }
});

test('settlement: a report of another stream, expired, altered or of another schema is rejected', async () => {
  await open();
  const other = secondStream(2);
  await expect(settle(0n, report(time, time, { feedId: other }))).rejects.toThrow(`WrongStream(${other}, ${stream})`);
  const signed = report(time, time);
  await expect(settle(0n, `0x${signed.slice(2).replace(/1/, '2')}`)).rejects.toThrow();
  await expect(settle(0n, '0x')).rejects.toThrow();
  await expect(settle(0n, network.sign(stream, 1))).rejects.toThrow(); // signed, but not the fields of a report
  world.setTime(time + 11);
  await expect(settle(0n, report(time, time, { expiresAt: time + 10 }))).rejects.toThrow(`ReportExpired(${time + 10})`);
  await settle(0n, report(time, time, { expiresAt: time + 12 }));
});

test('settlement: an offer is of a supported stream, for the future, with a stake', async () => {
  for (const feedId of [`0x1003${'0'.repeat(60)}`, `0x0002${'0'.repeat(60)}`, `0x${'0'.repeat(64)}`])
    await expect(makeOffer([seller, feedId, time, strike])).rejects.toThrow(`UnsupportedStream(${feedId})`);
  await expect(makeOffer([seller, stream, start, strike])).rejects.toThrow(`TimeNotInFuture(${start})`);
  await expect(makeOffer([seller, stream, time, strike], 0n)).rejects.toThrow('WrongStake(0, 1)');
});

test('settlement: only the seller accepts, with the same stake, before the time, once', async () => {
  await expect(accept(0n)).rejects.toThrow('UnknownTrade(0)');
  await makeOffer();
  await expect(settle(0n, report(time, time))).rejects.toThrow('WrongStatus(0)');
  await expect(accept(0n, stake, buyer)).rejects.toThrow('NotYourTrade()');
  await expect(accept(0n, stake - 1n)).rejects.toThrow(`WrongStake(${stake - 1n}, ${stake})`);
  const snapshot = await world.request('evm_snapshot');
  await accept(0n);
  await expect(accept(0n)).rejects.toThrow('WrongStatus(1)');
  await world.request('evm_revert', snapshot);
  world.setTime(time);
  await expect(accept(0n)).rejects.toThrow(`TimeNotInFuture(${time})`);
});

test('settlement: stakes come back for an offer, and for a trade that no report settled within a day', async () => {
  await open();
  await makeOffer();
  await expect(cancel(1n, seller)).rejects.toThrow('NotYourTrade()');
  await cancel(1n);
  await expect(cancel(1n)).rejects.toThrow('WrongStatus(2)');
  world.setTime(time + day);
  await expect(cancel(0n)).rejects.toThrow(`TooEarly(${time + day})`);
  world.setTime(time + day + 1);
  await expect(settle(0n, report(time, time))).rejects.toThrow(`TooLate(${time + day})`);
  await cancel(0n, accounts[0]);
  expect([await balanceOf(buyer), await balanceOf(seller)]).toEqual([2n * stake, stake]);
  expect(await world.balance(consumer)).toBe(3n * stake);
});
