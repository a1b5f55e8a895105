import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openStore } from '../store/open.ts';
import { announceKeys } from './key-announcement.ts';
import { createSecretBox } from './secrets.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-announced-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('key announcement: nodes with the same host name and process ID are listed each, with their own keys', async () => {
  const store = await openStore(join(folder, 'store'), 'write');
  const boxes = [1, 2].map((byte) => createSecretBox(Buffer.alloc(32, byte)));
  const troubles: unknown[] = [];
  const stops = boxes.map((box) => announceKeys(store.keyHolders, box, (error) => troubles.push(error)));
  const [stopFirst, stopSecond] = stops;
  const keysOf = async () => (await store.keyHolders.list()).flatMap(({ keyIds }) => keyIds).sort();
  try {
    await expect.poll(keysOf).toEqual(boxes.map(({ keyId }) => keyId).sort());
    for (const { node } of await store.keyHolders.list())
      expect(node.replace(/[0-9a-f]{12}$/, 'HEX')).toBe(`${hostname()}, process ${process.pid}, ID HEX`);
    await stopFirst?.();
    await expect.poll(keysOf).toEqual([boxes[1]?.keyId]);
    await stopSecond?.();
    await expect.poll(keysOf).toEqual([]);
    expect(troubles).toEqual([]);
  } finally {
    for (const stop of stops) await stop();
    await store.close();
  }
});
