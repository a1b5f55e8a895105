import { effect } from '@preact/signals';
import { expect, test } from 'vitest';
import { createPageCode } from './page-code.ts';

const loaders = { stream: async () => 'the stream page' };

test('page code: what preloading brought is told to whoever waits for it', async () => {
  const code = createPageCode(loaders, { load: () => new Promise<never>(() => {}) });
  const seen: unknown[] = [];
  const stop = effect(() => void seen.push(code.find('stream')));
  await code.preload('stream');
  stop();
  expect(seen).toEqual([undefined, 'the stream page']);
});

test('page code: a preload that fails is left for loading to report', async () => {
  const failing = { stream: async (): Promise<string> => Promise.reject(new Error('offline')) };
  const code = createPageCode(failing, { load: (load) => load() });
  await code.preload('stream');
  expect(code.find('stream')).toBeUndefined();
  await expect(code.load('stream')).rejects.toThrow('offline');
});

test('page code: loaded code is not loaded again', async () => {
  let count = 0;
  const counting = { stream: async () => ++count };
  const code = createPageCode(counting, { load: (load) => load() });
  await code.load('stream');
  await code.load('stream');
  await code.preload('stream');
  expect(code.find('stream')).toBe(1);
});
