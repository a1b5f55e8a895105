import { decodeFullReport, decodeReportBody, type FeedId, headlinePriceOf, verifyReport } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import type { Effect } from './effects.ts';
import { createScenarioSimulation, type ScenarioSimulation } from './scenario-simulation.ts';
import { allSpecs, defaultSpecs, parseSpecName } from './stream-specs.ts';

const start = Date.parse('2026-03-13T14:30:00Z') / 1_000; // a Friday, New York's markets are open
const names = (...list: string[]) => list.map(parseSpecName);

const simulate = (streams: readonly ReturnType<typeof parseSpecName>[], effects: readonly Effect[] = []) =>
  createScenarioSimulation({ seed: 'test', streams, startSecond: start, effects });

const idsOf = ({ streams }: ScenarioSimulation): readonly FeedId[] => streams.map(({ stream }) => stream.feedId);
const deliver = (simulation: ScenarioSimulation, from: number, seconds: number) =>
  Array.from({ length: seconds }, (_, i) => [...simulation.deliverAt(from + i)]).flat();
const bodiesOf = (simulation: ScenarioSimulation, from: number, seconds: number) =>
  deliver(simulation, from, seconds).map(({ report }) => decodeReportBody(decodeFullReport(report.fullReport).body));
const pricesOf = (simulation: ScenarioSimulation, from: number, seconds: number) =>
  bodiesOf(simulation, from, seconds).map((body) => Number(headlinePriceOf(body)) / 1e18);

/** ETH/USD alone, with effects that are given its feed ID. */
const ether = async (effects: (feedIds: readonly FeedId[]) => readonly Effect[] = () => []) => {
  const feedIds = idsOf(await simulate(names('ETH/USD')));
  return simulate(names('ETH/USD'), effects(feedIds));
};

test('scenario: a future has the contract that is traded, and expires after its reports', async () => {
  const [body] = bodiesOf(await simulate(names('ETH/USD-Streams-FuturesPrice')), start, 1);
  expect(body).toMatchObject({
    version: 14,
    expiryTime: BigInt(Date.parse('2026-03-20') / 1_000),
    firstDayOfNotice: BigInt(Date.parse('2026-03-22') / 1_000),
    contractMonth: 4,
    currentBusinessDay: 10,
    lastSeenTimestampNs: BigInt(start) * 1_000_000_000n,
    marketStatus: 2,
  });
  const december = Date.parse('2026-12-21T14:30:00Z') / 1_000;
  const [later] = bodiesOf(await simulate(names('ETH/USD-Streams-FuturesPrice')), december, 1);
  expect(later).toMatchObject({ expiryTime: BigInt(Date.parse('2027-01-20') / 1_000), contractMonth: 2 });
});

test('scenario: the same seed and effects give the same bytes, known from the start or added on the way', async () => {
  const effects = (feedIds: readonly FeedId[]): readonly Effect[] => [
    { kind: 'jump', from: start + 5, feedIds, percent: -20 },
    { kind: 'rotation', from: start + 8 },
  ];
  const known = await ether(effects);
  const growing = await ether();
  const first = deliver(growing, start, 5);
  await growing.add(effects(idsOf(growing)));
  const whole = [...first, ...deliver(growing, start + 5, 10)];
  expect(whole).toEqual(deliver(known, start, 15));
  expect(whole.slice(0, 5)).toEqual(deliver(await ether(), start, 5));
});

test('scenario: level, jump, drift and volatility set where the price goes on from; natural ends them all', async () => {
  const hour = 3_600;
  const natural = await pricesOf(await ether(), start, 1);
  const level = await ether((feedIds) => [{ kind: 'level', from: start + 1, feedIds, price: 4_200.55 }]);
  expect(pricesOf(level, start, 2)).toEqual([natural[0], 4_200.55]);
  expect(pricesOf(level, start + 60, 1)[0]).toBeCloseTo(4_200, -2);
  const still: Effect[] = [];
  const quiet = await ether((feedIds) => {
    still.push({ kind: 'volatility', from: start, feedIds, to: Number.POSITIVE_INFINITY, factor: 0 });
    return [
      ...still,
      { kind: 'level', from: start, feedIds, price: 1_000 },
      { kind: 'drift', from: start + 10, to: start + 10 + hour, feedIds, percentPerHour: 50 },
      { kind: 'jump', from: start + 2 * hour, feedIds, percent: -10 },
      { kind: 'natural', from: start + 3 * hour, feedIds },
    ];
  });
  const at = (second: number) => pricesOf(quiet, start + second, 1)[0];
  expect([at(0), at(9), at(10 + hour / 2), at(10 + hour), at(2 * hour - 1), at(2 * hour)]).toEqual([
    1_000, 1_000, 1_250, 1_500, 1_500, 1_350,
  ]);
  expect(at(3 * hour)).toBe(pricesOf(await ether(), start + 3 * hour, 1)[0]);
});

test('scenario: a crash falls, holds and recovers; a depeg goes to its price; a freeze repeats every field', async () => {
  const both = await simulate(names('ETH/USD', 'USDC/USD'));
  const [ethId, usdcId] = ['ETH', 'USDC'].map(
    (base) => both.streams.find(({ stream }) => stream.baseAsset === base)?.stream.feedId as FeedId,
  );
  await both.add([
    { kind: 'volatility', from: start, feedIds: [ethId as FeedId], to: Number.POSITIVE_INFINITY, factor: 0 },
    { kind: 'level', from: start, feedIds: [ethId as FeedId], price: 1_000 },
    {
      kind: 'crash',
      from: start + 10,
      feedIds: [ethId as FeedId],
      percent: 40,
      overSeconds: 10,
      holdSeconds: 5,
      recoverSeconds: 20,
    },
    {
      kind: 'depeg',
      from: start + 10,
      feedIds: [usdcId as FeedId],
      price: 0.87,
      overSeconds: 0,
      holdSeconds: 0,
      recoverSeconds: Number.POSITIVE_INFINITY,
    },
  ]);
  const at = (second: number, feedId: FeedId | undefined) =>
    bodiesOf(both, start + second, 1)
      .filter((body) => body.feedId === feedId)
      .map((body) => Number(headlinePriceOf(body)) / 1e18)[0];
  expect([9, 15, 20, 24, 35, 45, 60].map((second) => at(second, ethId))).toEqual([
    1_000, 800, 600, 600, 800, 1_000, 1_000,
  ]);
  expect([at(10, usdcId), at(5_000, usdcId)]).toEqual([0.87, 0.87]);
  const frozen = await ether((feedIds) => [{ kind: 'freeze', from: start + 3, to: start + 6, feedIds }]);
  const fields = bodiesOf(frozen, start, 8).map((body) => (body.version === 3 ? [body.price, body.bid, body.ask] : []));
  expect(fields[4]).toEqual(fields[3]);
  expect(fields[5]).toEqual(fields[3]);
  expect(fields[6]).not.toEqual(fields[3]);
  expect(fields[6]).toEqual(
    bodiesOf(await ether(), start + 6, 1).map((b) => (b.version === 3 ? [b.price, b.bid, b.ask] : []))[0],
  );
});

test('scenario: an outage leaves a gap or is delivered at its end, also where outages overlap', async () => {
  const silence = (feedIds: readonly FeedId[], from: number, to: number, backfill: boolean): Effect => ({
    kind: 'silence',
    from: start + from,
    to: start + to,
    feedIds,
    backfill,
  });
  const seen = (simulation: ScenarioSimulation) =>
    deliver(simulation, start, 14).map((one) => [one.deliveredAt - start, one.report.observationsTimestamp - start]);
  const gap = await ether((feedIds) => [silence(feedIds, 2, 12, false)]);
  expect(seen(gap)).toEqual([0, 1, 12, 13].map((second) => [second, second]));
  const late = await ether((feedIds) => [silence(feedIds, 2, 5, true), silence(feedIds, 4, 7, true)]);
  expect(seen(late).slice(0, 9)).toEqual([[0, 0], [1, 1], ...[2, 3, 4, 5, 6, 7].map((second) => [7, second]), [8, 8]]);
  const mixed = await ether((feedIds) => [silence(feedIds, 2, 5, true), silence(feedIds, 4, 7, false)]);
  expect(seen(mixed)[2]).toEqual([7, 7]); // the end of the first is in the gap
  const ended = await ether((feedIds) => [{ kind: 'end', from: start + 3, feedIds }]);
  expect(seen(ended).length).toBe(3);
});

test('scenario: after a rotation another signer set signs, and each report verifies by its own', async () => {
  const simulation = await ether(() => [{ kind: 'rotation', from: start + 2 }]);
  const sets = simulation.networks().map(({ signerSet }) => signerSet);
  expect(new Set(sets.map(({ configDigest }) => configDigest)).size).toBe(2);
  const digests = deliver(simulation, start, 4).map(({ report }) => {
    const full = decodeFullReport(report.fullReport);
    const known = new Map(sets.map((set) => [set.configDigest, set]));
    expect(verifyReport(full, known, simulation.networkAt(start).engine).ok).toBe(true);
    return full.context.configDigest;
  });
  expect(digests).toEqual([0, 0, 1, 1].map((i) => sets[i]?.configDigest));
});

test('scenario: a market opens and closes against its hours, and its prices stand still while it is closed', async () => {
  const apple = await simulate(names('AAPL/USD'));
  const feedIds = idsOf(apple);
  await apple.add([
    { kind: 'market', from: start + 5, to: start + 10, feedIds, state: 'closed' },
    { kind: 'market', from: start + 2 * 86_400, to: start + 2 * 86_400 + 5, feedIds, state: 'open' }, // a Sunday
  ]);
  const at = (second: number) =>
    bodiesOf(apple, start + second, 1).map((body) => (body.version === 11 ? [body.marketStatus, body.mid] : []))[0];
  expect([at(4)?.[0], at(5)?.[0], at(9)?.[0], at(10)?.[0]]).toEqual([2, 5, 5, 2]);
  expect(at(9)?.[1]).toBe(at(4)?.[1]);
  expect(at(10)?.[1]).not.toBe(at(4)?.[1]);
  const sunday = 2 * 86_400;
  expect([at(sunday - 1)?.[0], at(sunday)?.[0], at(sunday + 5)?.[0]]).toEqual([5, 2, 5]);
  expect(at(sunday + 50)?.[1]).toBe(at(sunday + 4)?.[1]);
});

test('scenario: streams are chosen by pair, kind and price, in any case, and others are rejected by name', async () => {
  expect(names('eth/usd', 'ETH/USD-Streams-TWAP', 'FOO/USD=0.5')).toEqual([
    { pair: 'ETH/USD', kind: 'CexPrice' },
    { pair: 'ETH/USD', kind: 'TWAP' },
    { pair: 'FOO/USD', kind: 'CexPrice', price: 0.5 },
  ]);
  expect(() => parseSpecName('FOO/USD')).toThrow('FOO/USD is not a simulated asset. Give it a price: FOO/USD=1.');
  expect(() => parseSpecName('ETH')).toThrow('"ETH" is not a pair such as ETH/USD');
  expect(() => parseSpecName('ETH/USD=x')).toThrow(
    '"ETH/USD=x" has the price "x", expected a number from 1e-9 to 1000000000.',
  );
  expect(() => parseSpecName('ETH/USD=2000000000')).toThrow('expected a number from 1e-9 to 1000000000.');
  expect(() => parseSpecName('ETH/USD-Streams-No')).toThrow('has the kind No, expected one of CexPrice');
  const custom = await simulate(names('FOO/USD=0.5'));
  expect(pricesOf(custom, start, 1)[0]).toBeCloseTo(0.5, 0);
  expect((await simulate(allSpecs())).streams.length).toBe(26);
  const early = await simulate(defaultSpecs); // before the network started
  expect(deliver(early, 1_000_000_000, 5).length).toBeGreaterThan(0);
});
