import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { closeFailedStart, watchStart } from './start-watch.ts';

const everyMs = 5;

/** What is said until `count` sentences were. */
const listenTo = () => {
  const said: string[] = [];
  let wake = (): void => {};
  return {
    say: (text: string): void => {
      said.push(text);
      wake();
    },
    reached: async (count: number): Promise<readonly string[]> => {
      while (said.length < count)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      return said;
    },
  };
};

test('start watch: a slow start says what it waits for, again and again', async () => {
  const { say, reached } = listenTo();
  const { part, end } = watchStart(say, everyMs);
  const quick = await part('the quick part', async () => 1);
  let open = (_: number): void => {};
  const slow = part('the store', () => part('its thread', () => new Promise<number>((resolve) => (open = resolve))));
  expect((await reached(2)).slice(0, 2)).toEqual([
    'Still starting after 0 s. Waiting for: the store, its thread.',
    'Still starting after 0 s. Waiting for: the store, its thread.',
  ]);
  open(2);
  expect([quick, await slow]).toEqual([1, 2]);
  const { length } = await reached(3);
  expect((await reached(length + 1)).at(-1)).toMatch(/Waiting for: nothing that is known\.$/);
  end();
});

test('start watch: says nothing once the start is over', ({ onTestFinished }) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const say = vi.fn();
  const { end } = watchStart(say, everyMs);
  vi.advanceTimersByTime(2 * everyMs);
  expect(say).toHaveBeenCalledTimes(2);
  end();
  vi.advanceTimersByTime(20 * everyMs);
  expect(say).toHaveBeenCalledTimes(2);
});

test('start watch: a part that fails is no longer listed, and its error passes through', async () => {
  const { say, reached } = listenTo();
  const { part, end } = watchStart(say, everyMs);
  await expect(part('the store', () => Promise.reject(new Error('no such disk')))).rejects.toThrow('no such disk');
  expect((await reached(1))[0]).not.toContain('the store');
  end();
});

test('start watch: a failed start closes what it opened, and an error in closing does not hide its own', async () => {
  let closed = false;
  await closeFailedStart(async () => {
    await setImmediate();
    closed = true;
  });
  expect(closed).toBe(true);
  await closeFailedStart(() => Promise.reject(new Error('stuck')));
});
