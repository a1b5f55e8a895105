import type { FeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSchedule, type Faults } from './schedule.ts';
import { createStreams } from './streams.ts';

const streams = createStreams('testnet');
const start = Date.parse('2025-11-03T12:00:00Z') / 1_000;

const feedIdOf = (name: string): FeedId => {
  const found = streams.find(({ stream }) => stream.name === name);
  if (found === undefined) throw new Error(`There is no ${name}.`);
  return found.stream.feedId;
};

const btc = feedIdOf('BTC/USD-Streams-CexPrice');
const nav = feedIdOf('NWTF/USD-Streams-NAV');

const deliveredBetween = (feedId: FeedId, from: number, to: number, faults: Faults = {}) => {
  const { deliveriesAt } = createSchedule(streams, faults);
  const deliveries = Array.from({ length: to - from + 1 }, (_, i) => deliveriesAt(from + i)).flat();
  return deliveries.filter(({ simulated }) => simulated.stream.feedId === feedId);
};

const observed = (deliveries: ReturnType<typeof deliveredBetween>) =>
  deliveries.map(({ observationsTimestamp }) => observationsTimestamp - start);

test('a stream observes once per interval, with its own phase', () => {
  expect(observed(deliveredBetween(btc, start, start + 4))).toEqual([0, 1, 2, 3, 4]);
  const [first = 0, second = 0, ...more] = observed(deliveredBetween(nav, start, start + 119));
  expect([second - first, more]).toEqual([60, []]);
});

test('deliveries of one second are in catalog order', () => {
  const names = createSchedule(streams, {})
    .deliveriesAt(start)
    .map(({ simulated }) => simulated.stream.name);
  expect(names.length).toBeGreaterThan(15);
  expect(names).toEqual([...names].sort());
});

test('a gap removes exactly its observations', () => {
  const gaps = [{ feedId: btc, from: start + 2, to: start + 3 }];
  expect(observed(deliveredBetween(btc, start, start + 5, { gaps }))).toEqual([0, 1, 4, 5]);
});

test('late observations come after their delay, older ones first', () => {
  const late = [{ feedId: btc, from: start + 1, to: start + 2, delaySeconds: 3 }];
  const deliveries = deliveredBetween(btc, start, start + 6, { late });
  expect(observed(deliveries)).toEqual([0, 3, 1, 4, 2, 5, 6]);
  expect(deliveries.map(({ deliveredAt }) => deliveredAt - start)).toEqual([0, 3, 4, 4, 5, 5, 6]);
});

test('if delays overlap, the longest counts, and every report comes once', () => {
  const late = [
    { feedId: btc, from: start, to: start + 2, delaySeconds: 2 },
    { feedId: btc, from: start + 1, to: start + 1, delaySeconds: 5 },
  ];
  expect(observed(deliveredBetween(btc, start, start + 6, { late }))).toEqual([0, 3, 2, 4, 5, 1, 6]);
});

test('what falls in a gap is not delivered late either', () => {
  const faults = {
    gaps: [{ feedId: btc, from: start + 1, to: start + 1 }],
    late: [{ feedId: btc, from: start + 1, to: start + 2, delaySeconds: 2 }],
  };
  expect(observed(deliveredBetween(btc, start, start + 4, faults))).toEqual([0, 3, 2, 4]);
});

test('a stream begins with the first window after its creation and ends with its decommission', () => {
  const created = Date.parse('2025-05-05T00:00:00Z') / 1_000;
  const [first] = deliveredBetween(nav, created - 120, created + 120);
  expect(first?.observationsTimestamp).toBeGreaterThanOrEqual(created + 59);
  const ftm = feedIdOf('FTM/USD-Streams-CexPrice');
  const decommissioned = Date.parse('2025-05-13T00:00:00Z') / 1_000;
  expect(deliveredBetween(ftm, decommissioned - 2, decommissioned + 60).at(-1)?.observationsTimestamp).toBe(
    decommissioned,
  );
});

test.each([
  [{ gaps: [{ feedId: '0x00' as FeedId, from: 1, to: 2 }] }, 'A fault names 0x00, which is not simulated.'], // too short on purpose
  [{ gaps: [{ feedId: btc, from: 2, to: 1 }] }, 'A fault lasts from 2 to 1, which is no span.'],
  [
    { late: [{ feedId: btc, from: 1, to: 2, delaySeconds: 0 }] },
    'A delay is 0 seconds, expected a whole number from 1 on.',
  ],
])('an invalid fault is rejected: %#', (faults, message) => {
  expect(() => createSchedule(streams, faults)).toThrow(new RangeError(message));
});
