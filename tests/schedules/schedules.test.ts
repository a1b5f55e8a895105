// The protocols by which nodes on one PostgreSQL agree, under seeded schedules: the product's own code on a simulated database, network and clock.
import { afterAll, expect, test } from 'vitest';
import { countOf, isFull, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { createExecutor } from './executor.ts';
import { plantedBugs } from './planted.ts';
import { buildSearchProcesses } from './processes.ts';
import { describeFailure, type ProtocolName, searchSchedules, showSchedule } from './search.ts';

const count = countOf(100, 50_000);
const shares: readonly (readonly [ProtocolName, number])[] = [
  ['append', Math.ceil(count * 0.9)],
  ['limits', Math.floor(count * 0.1)],
];

/** A few are run faster than a process starts. */
const processes = isFull ? await buildSearchProcesses() : undefined;
afterAll(() => processes?.remove());

test.each(shares)(
  'schedules: %s: every invariant holds in %i schedules',
  { timeout: 1_200_000 },
  async (protocol, schedules) => {
    const { ran, outcome, failure } = await (processes?.search ?? searchSchedules)({
      protocol,
      seed: seedOf(),
      count: schedules,
    });
    expect(typeof failure === 'object' ? describeFailure(failure) : failure).toBeUndefined();
    expect(ran).toBe(schedules);
    const { acknowledged, delivered, tokens } = outcome;
    // Schedules in which nothing happens would prove nothing.
    if (protocol === 'append') expect(Math.min(acknowledged ?? 0, delivered ?? 0)).toBeGreaterThan(ran);
    else expect(tokens).toBeGreaterThan(10 * ran);
    tally({ schedules: ran, violations: 0, ...(protocol === 'append' ? { acknowledged, delivered } : {}) } as Record<
      string,
      number
    >);
  },
);

/** Schedules that once violated an invariant; add the seed of one that fails. */
const kept: readonly (readonly [string, ProtocolName, number])[] = [
  ['a lost batch gets its position back, with another batch before it', 'append', 10_903],
  ['a database restarts while a session waits in a transaction', 'append', 1_021_971],
  ['a node starts again on the old primary, which still answers', 'append', 4_149_707_558],
  ['a database that is behind answers a follower, of what its node knows already', 'append', 101_661],
  ['answers that arrive on one connection at one moment stay in their order', 'append', 3_780_409_496],
];
test.each(kept)('schedules: %s', async (_, protocol, seed) => {
  const { failure } = await searchSchedules({ protocol, seed, count: 1 });
  expect(failure && describeFailure(failure)).toBeUndefined();
});

test.each(plantedBugs)('schedules: control: $bug is found', async ({ protocol, variant, within, near }) => {
  const { failure } = await searchSchedules({ protocol, variant, seed: seedOf(near), count: within });
  expect(failure).toBeDefined();
  expect(failure?.found.violation?.message).toMatch(/\S/);
  tallyControl({ 'planted bugs found': 1 });
});

test('schedules: a schedule is the same each time', async () => {
  const [first, again] = [await showSchedule('append', {}, 12), await showSchedule('append', {}, 12)];
  expect(again.steps).toEqual(first.steps);
  expect(again.outcome).toEqual(first.outcome);
});

test('schedules: what is to occur at one moment occurs in the order in which it was asked for, however that moment is rounded', async () => {
  const executor = createExecutor();
  const order: number[] = [];
  const ask = (i: number): void => {
    executor.at(835.5123, () => order.push(i));
    if (i < 1_000) executor.after(0.7 + i / 9_000, () => ask(i + 1));
  };
  ask(0);
  await executor.run(2_000, () => {});
  expect(order).toEqual(Array.from({ length: 1_001 }, (_, i) => i));
});
