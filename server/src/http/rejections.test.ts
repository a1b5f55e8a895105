import { connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { createRejections, heldMax } from './rejections.ts';
import { openShedding } from './shedding-listener.fixture.ts';

afterEach(() => void vi.useRealTimers());

const open = () => {
  vi.useFakeTimers();
  const rejected: number[] = [];
  const state = { isUrgent: false };
  const { add } = createRejections<number>({
    monotonicMs: () => Date.now(),
    reject: (shed) => void rejected.push(shed),
    isUrgent: () => state.isUrgent,
  });
  const addMany = (count: number): void => {
    for (let i = 0; i < count; i++) add(i);
  };
  return { rejected, state, addMany };
};

test('rejections: a few are sent at once', () => {
  const { rejected, addMany } = open();
  addMany(4);
  vi.advanceTimersByTime(20);
  expect(rejected).toEqual([0, 1, 2, 3]);
  expect(vi.getTimerCount()).toBe(0);
});

test('rejections: thousands go out in their order, evenly, within four seconds', () => {
  const { rejected, addMany } = open();
  addMany(4_000);
  expect(rejected).toEqual([]);
  for (let second = 1; second < 4; second++) {
    vi.advanceTimersByTime(1_000);
    expect(rejected).toHaveLength(1_000 * second);
  }
  vi.advanceTimersByTime(1_020);
  expect(rejected).toEqual(Array.from({ length: 4_000 }, (_, i) => i));
  expect(vi.getTimerCount()).toBe(0);
});

test('rejections: where the load stays, none waits for more than four seconds', () => {
  const { rejected, state, addMany } = open();
  for (let ms = 0; ms < 20_000; ms += 20) {
    addMany(20); // a thousand a second
    vi.advanceTimersByTime(20);
  }
  const held = 20_000 - rejected.length;
  expect(held / 1_000).toBeGreaterThan(3);
  expect(held / 1_000).toBeLessThanOrEqual(4);
  state.isUrgent = true;
  vi.advanceTimersByTime(20);
  expect(rejected).toHaveLength(20_000);
});

test('rejections: more than can be held are rejected at once, and all when the server stops', () => {
  const { rejected, state, addMany } = open();
  addMany(heldMax + 3);
  expect(rejected).toHaveLength(3);
  state.isUrgent = true;
  addMany(1);
  expect(rejected).toHaveLength(4);
  vi.advanceTimersByTime(20);
  expect(rejected).toHaveLength(heldMax + 4);
});

test('rejections: a client that leaves while its rejection is held back is counted, and a server that stops rejects at once', async () => {
  const { listener, events, state } = await openShedding();
  const { port } = new URL(listener.url);
  const ask = (path: string): Socket => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(60));
    return socket.on('error', () => {});
  };
  try {
    const leaving = Array.from({ length: 60 }, () => ask('/api/v1/feeds'));
    await expect.poll(() => events.length).toBeGreaterThan(0);
    for (const socket of leaving) socket.destroy();
    await expect.poll(() => events.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(60);
    const waiting = Array.from({ length: 40 }, () => fetch(`${listener.url}/api/v1/feeds`));
    state.isDraining = true;
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
      answers.map(() => [503, '1']),
    );
    expect(new Set(events.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(['503 overloaded']));
  } finally {
    await listener.close(0);
  }
});
