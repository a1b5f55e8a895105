// Several processes on one store: a second writer, a killed writer, a reader killed inside a transaction.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDamageLog } from '../../server/src/store/damage.ts';
import { openEnvironment } from '../../server/src/store/lmdb/environment.ts';
import { createClosings, openWriter } from '../../server/src/store/lmdb/write/writer.ts';
import { takeWriterToken } from '../../server/src/store/lmdb/write/writer-token.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { Store } from '../../server/src/store/store.ts';
import type { StoreEvent } from '../../server/src/store/store-event.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { buildPrograms, ended, linesOf, type Programs } from './programs.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;
let programs: Programs;
let folder: string;

beforeAll(async () => {
  programs = await buildPrograms();
});
afterAll(() => programs.remove());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-sharing-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('sharing: while one process writes a second writer is refused, and a killed one’s lock is free at once', async () => {
  const child = programs.start('writer-program', [folder, 'honest', String(t0)]);
  const lines = linesOf(child);
  for (let line = await lines.next(); !String(line.value).startsWith('ack'); ) line = await lines.next();
  await expect(openStore(folder, 'write')).rejects.toMatchObject({
    code: 'store_locked',
    message: expect.stringContaining(`Process ${child.pid} is already writing`),
  });
  const reader = await openStore(folder, 'read');
  expect(reader.reports.latest(stream)).toBeDefined();
  await reader.close();
  child.kill('SIGKILL');
  await ended(child);
  const store = await openStore(folder, 'write');
  await store.close();
});

/** Rewrites the same span over and over by trimming and appending; tells how much the file grew meanwhile. */
const churn = async (store: Store, rounds: number): Promise<number> => {
  const before = (await store.reports.stats()).fileBytes;
  for (let round = 0; round < rounds; round++) {
    const from = t0 + 2_000 + round * 200;
    await store.reports.append(Array.from({ length: 200 }, (_, i) => report(stream, from + i, from + i)));
    while ((await store.reports.trim({ beforeMs: (from - 400) * 1_000, bytesMax: Number.POSITIVE_INFINITY })).more);
  }
  return (await store.reports.stats()).fileBytes - before;
};

test('sharing: a reader killed inside a transaction pins no pages; one that lives does', async () => {
  const growth: number[] = [];
  for (const fate of ['killed', 'alive'] as const) {
    const home = join(folder, fate);
    let store = await openStore(home, 'write');
    await store.reports.append(Array.from({ length: 1_000 }, (_, i) => report(stream, t0 + i, t0 + i)));
    await churn(store, 2);
    const child = programs.start('reader-program', ['hold', home]);
    await linesOf(child).next();
    if (fate === 'killed') {
      child.kill('SIGKILL');
      await ended(child);
      // The writer clears stale readers when it opens and every minute; opening again stands for the minute.
      await store.close();
      store = await openStore(home, 'write');
    }
    growth.push(await churn(store, 12));
    await store.close();
    child.kill('SIGKILL');
    await ended(child);
  }
  const [killed, alive] = growth as [number, number];
  expect(alive).toBeGreaterThan(500_000);
  expect(killed).toBeLessThan(alive / 4);
});

test('sharing: readers that were killed are counted as their places are freed, living ones are not', async () => {
  const store = await openStore(folder, 'write');
  await store.reports.append([report(stream, t0, t0)]);
  await store.close();
  const counts: number[] = [];
  let heard = (): void => {};
  const tell = (event: StoreEvent): void => {
    if (event.kind === 'staleReaders') counts.push(event.count);
    heard();
  };
  const place = { token: 'sharing', pid: process.pid, takenAt: '' };
  const reader = openEnvironment(join(folder, 'reports'), false);
  takeWriterToken(reader, place, createDamageLog());
  const writer = openWriter({
    folder,
    files: { reports: reader.files, admin: undefined },
    place,
    tell,
    closings: createClosings(),
    refresh: () => {},
    checkReadersEveryMs: 20,
  });
  await writer.ready();
  const children = [1, 2, 3].map(() => programs.start('reader-program', ['hold', folder]));
  for (const child of children) await linesOf(child).next();
  const checked = () =>
    new Promise<void>((resolve) => {
      heard = resolve;
    });
  await checked();
  expect(counts.every((count) => count === 0)).toBe(true);
  const killed = children.slice(0, 2);
  for (const child of killed) child.kill('SIGKILL');
  await Promise.all(killed.map(ended));
  while (counts.reduce((sum, count) => sum + count, 0) < 2) await checked();
  await checked();
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2);
  await writer.close();
  await reader.root.close();
  children[2]?.kill('SIGKILL');
});
