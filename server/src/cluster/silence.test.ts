import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentSeconds, watchSilence } from './primary.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Two workers of which the first answers as long as it is not stopped. */
const watch = () => {
  const workers = [1, 2].map((id) => ({ id, unanswered: 0, isStopped: false }));
  const [first, second] = workers as [(typeof workers)[0], (typeof workers)[0]]; // two of them
  const events: string[] = [];
  const stop = watchSilence(() => workers, {
    ping: (one) => {
      if (!one.isStopped) one.unanswered = 0;
    },
    silent: ({ id }) => events.push(`silent ${id}`),
    hung: ({ id }) => events.push(`hung ${id}`),
  });
  return { workers, first, second, events, stop, seconds: (count: number) => vi.advanceTimersByTime(count * 1_000) };
};

test('silence: a worker without an answer to ten pings is silent, to thirty hangs; each is told once', () => {
  const { first, second, events, seconds } = watch();
  seconds(60);
  expect(events).toEqual([]);
  first.isStopped = true;
  seconds(10);
  expect([events, silentSeconds(first)]).toEqual([[], undefined]);
  seconds(1);
  expect([events, silentSeconds(first), silentSeconds(second)]).toEqual([['silent 1'], 10, undefined]);
  seconds(19);
  expect([events, silentSeconds(first)]).toEqual([['silent 1'], 29]);
  seconds(60);
  expect(events).toEqual(['silent 1', 'hung 1']);
});

test('silence: one that answers again is as one that always did', () => {
  const { first, events, seconds } = watch();
  first.isStopped = true;
  seconds(30);
  first.unanswered = 0; // a message of it
  expect(silentSeconds(first)).toBe(undefined);
  seconds(30);
  expect(events).toEqual(['silent 1', 'silent 1']);
});

test('silence: while no timer runs here, nothing counts', () => {
  const { first, events, seconds } = watch();
  first.isStopped = true;
  seconds(5);
  vi.setSystemTime(Date.now() + 3_600_000); // of a machine that was suspended
  seconds(5);
  expect([events, first.unanswered]).toEqual([[], 10]);
});

test('silence: one that leaves the list is pinged no more, and after the stop none is', () => {
  const { workers, first, second, events, stop, seconds } = watch();
  first.isStopped = true;
  second.isStopped = true;
  workers.shift();
  seconds(20);
  stop();
  seconds(60);
  expect([events, first.unanswered, second.unanswered]).toEqual([['silent 2'], 0, 20]);
});
