import { expect, test } from 'vitest';
import { createWait } from './session.ts';

test('wait: repeated waits for a pending promise add no handlers', async () => {
  let settle = (_: string): void => {};
  const promise = new Promise<string>((resolve) => {
    settle = resolve;
  });
  let handlers = 0;
  const then = promise.then.bind(promise);
  // biome-ignore lint/suspicious/noThenProperty: the promise’s own, counted
  promise.then = ((...given: Parameters<typeof then>) => {
    handlers += 1;
    return then(...given);
  }) as typeof promise.then; // counts, and does what it did
  const wait = createWait(promise);
  for (let i = 0; i < 20; i += 1) expect(await wait(1)).toBeUndefined();
  expect(handlers).toBe(1);
  const last = wait(60_000);
  settle('next');
  expect([await last, await wait(0)]).toEqual(['next', 'next']);
});

test('wait: a failure is thrown by the current wait, and by each one after it', async () => {
  const wait = createWait(Promise.reject(new Error('gone')));
  await expect(wait(60_000)).rejects.toThrow('gone');
  await expect(wait(1)).rejects.toThrow('gone');
});
