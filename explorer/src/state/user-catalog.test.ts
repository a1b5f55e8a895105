import { signal } from '@preact/signals';
import { type Client, SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import { type Catalog, createCatalog } from './user-catalog.ts';

const streams = (...feedIds: readonly string[]) => ({ feeds: feedIds.map((feedId) => ({ feedId })) });

/** A session whose server lists `a`, and `b` too when hidden streams are asked for; `a` may be read. */
const openSession = (userId: string | undefined, failures: unknown[] = []) => {
  const client = {
    discovery: async (filter?: { readonly hidden?: boolean }) => {
      if (failures.length > 0) throw failures.shift();
      return filter?.hidden === true ? streams('a', 'b') : streams('a');
    },
    feeds: async () => ({ feeds: [{ feedID: 'a' }] }),
  } as unknown as Client; // what the catalog asks
  return { client: signal(client), userId: signal(userId), isPending: signal(false) };
};

/** Waits for a phase of the catalog. */
const reach = (catalog: Catalog, phase: string) =>
  new Promise<Catalog['state']['value']>((resolve) => {
    catalog.state.subscribe((state) => {
      if (state.phase === phase) resolve(state);
    });
  });

test('catalog: without an account, public streams, none of them readable', async () => {
  const catalog = createCatalog(openSession(undefined));
  expect(catalog.state.value.phase).toBe('loading');
  expect(await reach(catalog, 'ready')).toEqual({
    phase: 'ready',
    streams: [{ feedId: 'a' }],
    readable: new Set(),
    hidden: new Set(),
  });
});

test('catalog: with an account, hidden streams too, marked as such', async () => {
  const catalog = createCatalog(openSession('someone'));
  expect(await reach(catalog, 'ready')).toEqual({
    phase: 'ready',
    streams: [{ feedId: 'a' }, { feedId: 'b' }],
    readable: new Set(['a']),
    hidden: new Set(['b']),
  });
  expect(catalog.find('b')).toEqual({ feedId: 'b' });
  expect(catalog.find('c')).toBeUndefined();
});

test('catalog: nothing is loaded until the user is known', async () => {
  const session = openSession('someone');
  session.isPending.value = true;
  const catalog = createCatalog(session);
  expect(catalog.state.value.phase).toBe('loading');
  session.isPending.value = false;
  await reach(catalog, 'ready');
});

test('catalog: retries after a network error', async () => {
  const catalog = createCatalog(openSession(undefined, [new SealpostError('network_error', 'no')]), 1);
  expect(await reach(catalog, 'failed')).toMatchObject({ willRetry: true });
  await reach(catalog, 'ready');
});

test('catalog: a final error stays until a reload', async () => {
  const catalog = createCatalog(openSession(undefined, [new SealpostError('unauthorized', 'no')]), 1);
  expect(await reach(catalog, 'failed')).toMatchObject({ willRetry: false });
  catalog.reload();
  expect(catalog.state.value.phase).toBe('loading');
  await reach(catalog, 'ready');
});
