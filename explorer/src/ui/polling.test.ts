import { expect, test } from 'vitest';
import { afterFailure, keepRenewing, nothingYet, type Renewed, untilVisible } from './polling.ts';

/** Answers in turn; the last one ends the loop. */
const run = async (answers: readonly (number | Error)[]): Promise<readonly Renewed<number>[]> => {
  const states: Renewed<number>[] = [];
  const abort = new AbortController();
  let turn = 0;
  await keepRenewing(
    async () => {
      const answer = answers[turn++];
      if (typeof answer === 'number') return answer;
      throw answer;
    },
    1,
    (state) => {
      states.push(state);
      if (states.length === answers.length) abort.abort();
    },
    abort.signal,
  );
  return states;
};

test('the last value stays while attempts fail, until the next one', async () => {
  const lost = new Error('lost');
  const states = await run([1, lost, lost, 2]);
  expect(states.map(({ value }) => value)).toEqual([1, 1, 1, 2]);
  expect(states.map(({ failure }) => failure?.error)).toEqual([undefined, lost, lost, undefined]);
});

test('failures in a row have the time of the first', () => {
  const first = afterFailure<number>(nothingYet, 'a', 5);
  expect(afterFailure(first, 'b', 9)).toEqual({ value: undefined, failure: { error: 'b', sinceMs: 5 } });
});

test('nothing is reported after the end', async () => {
  const abort = new AbortController();
  const told: unknown[] = [];
  await keepRenewing(
    async () => {
      abort.abort();
      return 1;
    },
    1,
    (state) => told.push(state),
    abort.signal,
  );
  expect(told).toEqual([]);
});

test('waiting leaves no listener behind', async () => {
  const abort = new AbortController();
  const { signal } = abort;
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (type: string, listener: EventListener) => {
    listeners += 1;
    add(type, listener);
  };
  signal.removeEventListener = (type: string, listener: EventListener) => {
    listeners -= 1;
    remove(type, listener);
  };
  const counts: number[] = [];
  const tell = (): void => {
    counts.push(listeners);
    if (counts.length === 4) abort.abort();
  };
  await keepRenewing(async () => 1, 1, tell, signal);
  expect(counts).toEqual([0, 0, 0, 0]);
});

test('polling: nothing is loaded while the page is hidden, and at once when it is visible again', async () => {
  const page = Object.assign(new EventTarget(), { hidden: true }) as unknown as Document & { hidden: boolean }; // what is read of it
  const ended = new AbortController();
  let loads = 0;
  const load = async () => {
    loads += 1;
  };
  const polling = keepRenewing(
    load,
    0,
    () => {},
    ended.signal,
    () => untilVisible(page, ended.signal),
  );
  await expect.poll(() => loads).toBe(1);
  page.dispatchEvent(new Event('visibilitychange'));
  expect(loads).toBe(1);
  page.hidden = false;
  page.dispatchEvent(new Event('visibilitychange'));
  await expect.poll(() => loads).toBeGreaterThan(2);
  page.hidden = true;
  ended.abort();
  await polling;
  expect(await untilVisible(page, ended.signal)).toBeUndefined();
});
