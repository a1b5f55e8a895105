import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { NodeLimits } from '../access/node-limits.ts';
import { createLimitRelay, createWorkerLimits, machineMs } from './limits.ts';
import type { SpentLimits } from './messages.ts';

beforeEach(() => {
  vi.useFakeTimers();
  stuckMs = 0;
});
afterEach(() => void vi.useRealTimers());

/** For how long no timer ran. */
let stuckMs = 0;
const nowMs = (): number => performance.now() + stuckMs;
const limit = 10;

/** Two workers and the primary between them. What a stalled channel carries arrives when it runs again, in order, as from the buffer of a pipe. */
const createWorkers = () => {
  const stalled = new Map<string, (() => void)[]>();
  const carry = (channel: string, deliver: () => void): void => {
    const queue = stalled.get(channel);
    if (queue === undefined) deliver();
    else queue.push(deliver);
  };
  let isFull = false;
  const held: (() => void)[] = [];
  const setFull = (full: boolean): void => {
    isFull = full;
    if (!full) for (const onSent of held.splice(0)) onSent();
  };
  const workers = new Map([1, 2].map((id) => [id, createWorkerLimits(nowMs)]));
  const sent: number[] = [];
  const relay = createLimitRelay(nowMs, (id, limits, onSent) => {
    sent.push(id);
    // A pipe has room for one more message, and is full then.
    if (!isFull) process.nextTick(onSent);
    else held.push(onSent);
    carry(`to ${id}`, () => workers.get(id)?.receive(structuredClone(limits)));
  });
  for (const [id, worker] of workers) worker.receive(relay.join(id));
  const report = (id: number): void => {
    const limits = workers.get(id)?.drain() as SpentLimits; // of one of the two
    carry(`from ${id}`, () => relay.tell(id, limits));
  };
  const stall = (channel: string): void => void stalled.set(channel, []);
  const resume = (channel: string): void => {
    const queue = stalled.get(channel) ?? [];
    stalled.delete(channel);
    for (const deliver of queue) deliver();
  };
  const limitersOf = (id: number) => (workers.get(id) as ReturnType<typeof createWorkerLimits>).limiters; // as above
  const take = (id: number): boolean => limitersOf(id).accounts.take('k', limit, performance.now()).allowed;
  return { relay, report, stall, resume, limitersOf, take, setFull, sent };
};

/** An account takes nine tokens a second from the first worker; workers report every 50 ms, except for the one that is not to. */
const takeNinePerSecond = async (
  { take, report }: ReturnType<typeof createWorkers>,
  seconds: number,
  reporting: readonly number[] = [1, 2],
): Promise<void> => {
  for (let ms = 0; ms < seconds * 1_000; ms += 50) {
    if (Math.floor((ms * 9) / 1_000) !== Math.floor(((ms - 50) * 9) / 1_000)) expect(take(1)).toBe(true);
    for (const id of reporting) report(id);
    await vi.advanceTimersByTimeAsync(50);
  }
};

test('limits of workers: what one grants, the other one lacks', async () => {
  const workers = createWorkers();
  for (let i = 0; i < limit; i++) expect(workers.take(1)).toBe(true);
  expect(workers.limitersOf(2).accounts.state('k', limit, performance.now()).allowed).toBe(true);
  workers.report(1);
  await vi.advanceTimersByTimeAsync(10);
  expect(workers.take(2)).toBe(false);
});

test.each(['from 1', 'to 2'])(
  'limits of workers: after a channel (%s) was stalled for 20 s, an account below its limit is not rejected',
  async (channel) => {
    const workers = createWorkers();
    await takeNinePerSecond(workers, 2);
    workers.stall(channel);
    await takeNinePerSecond(workers, 20);
    workers.resume(channel);
    await vi.advanceTimersByTimeAsync(10);
    expect(workers.take(2)).toBe(true);
  },
);

test('limits of workers: what a worker could not report for 20 s is dropped', async () => {
  const workers = createWorkers();
  await takeNinePerSecond(workers, 20, [2]);
  workers.report(1);
  await vi.advanceTimersByTimeAsync(10);
  expect(workers.take(2)).toBe(true);
});

test('limits of workers: what the primary could not pass on in time is dropped', async () => {
  const workers = createWorkers();
  for (let i = 0; i < limit; i++) expect(workers.take(1)).toBe(true);
  workers.report(1);
  stuckMs = 20_000;
  await vi.advanceTimersByTimeAsync(10);
  expect(workers.limitersOf(2).accounts.state('k', limit, performance.now()).remaining).toBe(limit);
});

test('limits of workers: after a pause without requests, the next tokens are exchanged', async () => {
  const workers = createWorkers();
  await takeNinePerSecond(workers, 1);
  for (let i = 0; i < 100; i++) {
    workers.report(1);
    await vi.advanceTimersByTimeAsync(50);
  }
  for (let i = 0; i < limit; i++) workers.take(1);
  workers.report(1);
  await vi.advanceTimersByTimeAsync(10);
  expect(workers.take(2)).toBe(false);
});

test('limits of workers: counts of live connections are never dropped', async () => {
  const workers = createWorkers();
  workers.limitersOf(1).connections.set('someone', 3);
  workers.stall('from 1');
  workers.stall('to 2');
  workers.report(1);
  await vi.advanceTimersByTimeAsync(20_000);
  workers.resume('from 1');
  await vi.advanceTimersByTimeAsync(20_000);
  expect(workers.limitersOf(2).connections.elsewhere('someone')).toBe(0);
  workers.resume('to 2');
  expect(workers.limitersOf(2).connections.elsewhere('someone')).toBe(3);
});

test('limits of workers: other nodes collect what workers granted, and tell what they did', async () => {
  const workers = createWorkers();
  let nodes: NodeLimits | undefined;
  workers.relay.share((limits) => {
    nodes = limits;
    return async () => {};
  });
  workers.take(1);
  workers.report(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(nodes?.collect()).toEqual({ accounts: [['k', limit, 1]], addresses: [] });
  expect(nodes?.collect()).toEqual({ accounts: [], addresses: [] });
  nodes?.receive({ accounts: [['k', limit, limit]], addresses: [] });
  await vi.advanceTimersByTimeAsync(10);
  expect([workers.take(1), workers.take(2)]).toEqual([false, false]);
});

test('limits of workers: one message at a time is on its way to a worker, and the rest follows', async () => {
  const workers = createWorkers();
  workers.setFull(true);
  await takeNinePerSecond(workers, 20);
  expect(workers.sent).toEqual([2]);
  workers.limitersOf(1).connections.set('someone', 3);
  workers.report(1);
  await vi.advanceTimersByTimeAsync(10);
  expect(workers.limitersOf(2).connections.elsewhere('someone')).toBe(0);
  workers.setFull(false);
  await vi.advanceTimersByTimeAsync(10);
  expect(workers.sent).toEqual([2, 2]);
  expect(workers.limitersOf(2).connections.elsewhere('someone')).toBe(3);
  expect(workers.take(2)).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(workers.sent).toEqual([2, 2]);
});

test('limits of workers: the clock never goes back', () => {
  vi.useRealTimers();
  const before = machineMs();
  expect(machineMs()).toBeGreaterThanOrEqual(before);
});
