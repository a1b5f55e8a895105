import { PassThrough } from 'node:stream';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { Node } from '@sealpost/server/node/node';
import { createStoreMemory, openStore } from '@sealpost/server/store/open';
import { StoreError } from '@sealpost/server/store/store';
import { expect, test } from 'vitest';
import { createSession } from '../../session.ts';
import { startFeed } from './feed.ts';

const openFeed = async (submit: (lines: readonly string[]) => Promise<readonly LineResult[]>) => {
  const store = await openStore('memory:', 'write', { memory: createStoreMemory() });
  const session = createSession({ ...process, stderr: new PassThrough() } as unknown as NodeJS.Process); // all that it draws on
  const world = { seed: 'a feed under test' } as Parameters<typeof startFeed>[1]['world']; // all that a feed takes of it
  return startFeed({ write: { store, ingest: { submit } } } as unknown as Node, {
    session,
    world,
    pastSeconds: 1,
    recentSeconds: 1,
    json: true,
  });
};

const full = new StoreError('store_disk_full', 'The disk is full.');
const storedAll = (lines: readonly string[]): readonly LineResult[] =>
  lines.map((_, i) => ({ line: i + 1, result: 'stored' }) as LineResult); // more is not looked at

test('demo feed: what the store cannot take for a while is offered again, and the network goes on', async () => {
  let isReady = false;
  const offered: string[] = [];
  const feed = await openFeed(async (lines) => {
    if (!isReady) return storedAll(lines);
    offered.push(lines.join('\n'));
    if (offered.length <= 2) throw full;
    return storedAll(lines);
  });
  await Promise.race([feed.ready, feed.failed]);
  isReady = true;
  await Promise.race([feed.failed, expect.poll(() => new Set(offered.slice(2)).size).toBeGreaterThan(2)]);
  expect(offered.slice(2)).toEqual(expect.arrayContaining(offered.slice(0, 2)));
  await feed.stop();
});

test('demo feed: a store that takes nothing at the start fails it', async () => {
  const feed = await openFeed(async () => {
    throw full;
  });
  await expect(Promise.race([feed.ready, feed.failed])).rejects.toBe(full);
  await feed.stop();
});
