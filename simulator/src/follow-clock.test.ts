import { expect, test } from 'vitest';
import { type Clock, followClock } from './follow-clock.ts';
import { generateHistory } from './history.ts';
import type { DeliveredReport } from './simulation.ts';

const start = Date.parse('2025-11-03T14:29:00Z') / 1_000;

// Waiting moves this clock on, so that no test waits.
const createClock = (nowMs: number): Clock & { readonly waits: number[] } => {
  const waits: number[] = [];
  let now = nowMs;
  return {
    waits,
    nowMs: () => now,
    waitUntil: async (ms) => {
      waits.push(ms);
      now = Math.max(now, ms);
    },
  };
};

test('reports come in their second, with the same bytes as history', async () => {
  const clock = createClock(start * 1_000 - 400);
  const history: DeliveredReport[] = [];
  for await (const batch of generateHistory({ seed: 'demo', from: start, to: start + 2, workers: 0 })) {
    history.push(...batch);
  }
  const live: DeliveredReport[] = [];
  for await (const delivered of followClock({ seed: 'demo', clock })) {
    expect(clock.nowMs()).toBe(delivered.deliveredAt * 1_000);
    live.push(delivered);
    if (live.length === history.length) break;
  }
  expect(live).toEqual(history);
  expect(clock.waits).toEqual([start * 1_000, (start + 1) * 1_000, (start + 2) * 1_000]);
});

test('from an earlier second, it catches up first', async () => {
  const clock = createClock((start + 60) * 1_000);
  const first = await followClock({ seed: 'demo', clock, from: start }).next();
  expect(first.value?.deliveredAt).toBe(start);
});

test('an aborted signal ends it, between reports as well as while waiting', async () => {
  const controller = new AbortController();
  const clock = createClock(start * 1_000);
  let count = 0;
  for await (const _ of followClock({ seed: 'demo', clock, signal: controller.signal })) {
    count += 1;
    if (count === 3) controller.abort();
  }
  expect(count).toBe(3);
  const aborted = followClock({ seed: 'demo', from: 4_000_000_000, signal: controller.signal });
  expect(await aborted.next()).toEqual({ done: true, value: undefined });
});
