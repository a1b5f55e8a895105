import { expect, test } from 'vitest';
import { createChunks, LoadingError, type LoadingWindow } from './chunks.ts';

/** A page of the release `own` at a server with the release `served`; undefined if it is down. */
const createWindow = (own: string, served: string | undefined, stored = new Map<string, string>()) => {
  let reloads = 0;
  const window = {
    setTimeout,
    document: { querySelector: () => ({ getAttribute: () => own }) },
    sessionStorage: {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, text: string) => void stored.set(key, text),
    },
    location: {
      reload: () => {
        reloads += 1;
      },
    },
    fetch: async () => {
      if (served === undefined) throw new TypeError('Failed to fetch');
      return new Response(`<script type="module" crossorigin src="${served}"></script>`);
    },
  } as unknown as LoadingWindow;
  return { window, stored, reloads: () => reloads };
};

/** Fails so many times. */
const failing = (times: number) => {
  let left = times;
  return async () => {
    left -= 1;
    if (left >= 0) throw new TypeError('Failed to fetch dynamically imported module');
    return 'code';
  };
};

const never = Symbol('never');
const settled = async (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([
    promise.catch((error: unknown) => error),
    new Promise((resolve) => setTimeout(() => resolve(never), 50)),
  ]);

test('chunks: code that arrives at the third attempt is used', async () => {
  const { window, reloads } = createWindow('/a.js', '/a.js');
  expect(await createChunks(window, [0, 0]).load(failing(2))).toBe('code');
  expect(reloads()).toBe(0);
});

test.each(['/a.js', undefined])(
  'chunks: code that never arrives is an error, without a reload (server: %s)',
  async (served) => {
    const { window, reloads } = createWindow('/a.js', served);
    const error = await settled(createChunks(window, [0, 0]).load(failing(3)));
    expect(error).toBeInstanceOf(LoadingError);
    expect(reloads()).toBe(0);
  },
);

test('chunks: after a new release the page reloads, but only once', async () => {
  const first = createWindow('/a.js', '/b.js');
  expect(await settled(createChunks(first.window, []).load(failing(9)))).toBe(never);
  expect(first.reloads()).toBe(1);
  const again = createWindow('/a.js', '/b.js', first.stored); // a cache in between still has the old page
  expect(await settled(createChunks(again.window, []).load(failing(9)))).toBeInstanceOf(LoadingError);
  expect(again.reloads()).toBe(0);
  const third = createWindow('/a.js', '/c.js', first.stored); // servers of several releases behind one address
  expect(await settled(createChunks(third.window, []).load(failing(9)))).toBeInstanceOf(LoadingError);
  expect(third.reloads()).toBe(0);
});
