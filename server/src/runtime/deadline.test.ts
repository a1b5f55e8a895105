import { setImmediate, setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../../tests/support/heap.ts';
import { anySignal, timedOut, within } from './deadline.ts';

const never = new Promise<never>(() => {});

test('deadline: a result or an error in time passes through', async () => {
  expect(await within(10_000, Promise.resolve(1))).toBe(1);
  expect(await within(10_000, Promise.resolve(undefined))).toBeUndefined();
  await expect(within(10_000, Promise.reject(new Error('no such disk')))).rejects.toThrow('no such disk');
});

test('deadline: a promise that takes longer times out', async () => {
  expect(await within(1, never)).toBe(timedOut);
});

test('deadline: an error after the deadline is ignored', async () => {
  let fail = (_: Error): void => {};
  const late = new Promise<never>((_, reject) => {
    fail = reject;
  });
  expect(await within(1, late)).toBe(timedOut);
  fail(new Error('late')); // were it not handled, the test run would fail
  await setImmediate();
});

test('deadline: a result that arrived while the process was blocked counts', async () => {
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => port1.addEventListener('message', ({ data }) => resolve(data)));
  port1.start();
  const bounded = within(1, answer);
  port2.postMessage('in time');
  const untilMs = performance.now() + 20;
  while (performance.now() < untilMs); // blocks past the deadline
  expect(await bounded).toBe('in time');
  port1.close();
});

test('deadline: of several signals the first one counts, also after garbage is collected', async () => {
  const ended = new AbortController();
  const abortOf = (first: AbortSignal): Promise<unknown> =>
    new Promise((resolve) => {
      const signal = anySignal([ended.signal, first]);
      signal.addEventListener('abort', () => resolve(signal.reason));
    });
  const late = abortOf(AbortSignal.timeout(100));
  for (let i = 0; i < 5; i++) {
    await setTimeout(10);
    collectGarbage();
  }
  expect(await Promise.race([late, setTimeout(10_000, 'never')])).toMatchObject({ name: 'TimeoutError' });
  const cut = abortOf(AbortSignal.timeout(60_000));
  ended.abort('cut');
  expect(await cut).toBe('cut');
});
