import { signal } from '@preact/signals';
import { SealpostError } from '@sealpost/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchServer } from './sandbox.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const sandbox = { timeMs: 5_000_000, paused: false, speed: 2 };
const away = new SealpostError('network_error', 'no server');

/** Answers in turn; the last one stays. */
const watch = (answers: (object | undefined | Error)[], page = { hidden: false }) => {
  let asks = 0;
  const runs: (readonly [number, number])[] = [];
  const client = {
    status: async () => {
      asks += 1;
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Error) throw answer;
      return { status: answer !== undefined && 'historyLoaded' in answer ? answer : { sandbox: answer } };
    },
  };
  const { sandbox: watched, ...history } = watchServer(
    { client: signal(client) } as unknown as Parameters<typeof watchServer>[0], // of a client, it uses the status
    { runFrom: (timeMs, speed) => void runs.push([timeMs, speed]) },
    { document: page, setTimeout } as unknown as Parameters<typeof watchServer>[2], // of a document, whether it is hidden
  );
  return { watched, ...history, runs, asks: () => asks };
};

const pass = (minutes: number) => vi.advanceTimersByTimeAsync(minutes * 60_000);

test('sandbox: a first request that fails is repeated until the server answers', async () => {
  const { watched, runs, asks } = watch([away, away, sandbox]);
  await pass(0);
  expect([asks(), watched.value]).toEqual([1, undefined]);
  await pass(1);
  expect(watched.value).toEqual(sandbox);
  expect(runs[0]).toEqual([5_000_000, 2]);
});

test('sandbox: requests that fail on and on back off', async () => {
  const { asks } = watch([away]);
  await pass(60);
  expect(asks()).toBeGreaterThan(30);
  expect(asks()).toBeLessThan(150);
});

test.each([
  ['answers that it is none', undefined],
  ['has no status', new SealpostError('not_supported', 'no such route')],
])('sandbox: a server that %s is not asked again', async (_, answer) => {
  const { watched, asks } = watch([away, answer]);
  await pass(60);
  expect([asks(), watched.value]).toEqual([2, undefined]);
  expect(vi.getTimerCount()).toBe(0);
});

test('sandbox: a hidden page asks once, and again when it is visible', async () => {
  const page = { hidden: true };
  const { watched, asks } = watch([away, sandbox], page);
  await pass(60);
  expect(asks()).toBe(1);
  page.hidden = false;
  await pass(1);
  expect(watched.value).toEqual(sandbox);
  const known = asks();
  page.hidden = true;
  await pass(60);
  expect(asks()).toBe(known);
});

test('sandbox: a request that fails later is repeated as soon as any other', async () => {
  const { watched, asks } = watch([sandbox, away, away, away, { ...sandbox, timeMs: 6_000_000 }]);
  await pass(1);
  expect(watched.value).toEqual({ ...sandbox, timeMs: 6_000_000 });
  expect(asks()).toBeGreaterThan(20);
});

test('sandbox: a demo is asked again while it loads its history, and no more afterwards', async () => {
  const { watched, historyLoaded, historyShown, asks } = watch([
    { historyLoaded: 0.4 },
    away,
    { historyLoaded: 0.9 },
    undefined,
  ]);
  await vi.advanceTimersByTimeAsync(0);
  expect([historyLoaded.value, watched.value]).toEqual([0.4, undefined]);
  await pass(1);
  expect([historyLoaded.value, asks()]).toEqual([1, 4]);
  await pass(60);
  expect(asks()).toBe(4);
  historyShown();
  expect(historyLoaded.value).toBeUndefined();
});
