// Processes that read while the one that writes is killed over and over, and readers that are killed inside a transaction.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pagesFile } from '../../server/src/store/lmdb/pages-file.ts';
import { countOf, tally } from '../support/full-count.ts';
import { runKillLoop } from './kill.ts';
import { buildPrograms, ended, linesOf, type Programs } from './programs.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await buildPrograms();
});
afterAll(() => programs.remove());

const readerCount = 4;
const lives = countOf(5, 300);
/** Lives of the writer after which a reader with an open transaction is killed. */
const readerKilledEvery = 10;

type Watcher = { readonly stop: () => Promise<readonly string[]> };

/** Starts a reader; `stop` returns what it printed. */
const watch = async (folder: string): Promise<Watcher> => {
  const child = programs.start('reader-program', ['watch', folder]);
  const lines: string[] = [];
  let isWatching = (): void => {};
  const watching = new Promise<void>((resolve) => {
    isWatching = resolve;
  });
  const read = (async () => {
    for await (const line of linesOf(child)) {
      if (line === 'watching') isWatching();
      else lines.push(line);
    }
  })();
  await watching;
  return {
    stop: async () => {
      child.kill('SIGTERM');
      await read;
      await ended(child);
      return lines;
    },
  };
};

const killInsideTransaction = async (folder: string): Promise<void> => {
  const child = programs.start('reader-program', ['hold', folder]);
  await linesOf(child).next();
  child.kill('SIGKILL');
  await ended(child);
};

test(`readers: ${lives} kills of the writer, no read fails and latest never goes back`, {
  timeout: 7_200_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-readers-'));
  try {
    await runKillLoop(programs, 1, 'honest', { folder }); // there is a store to open
    const watchers = await Promise.all(Array.from({ length: readerCount }, () => watch(folder)));
    let killedReaders = 0;
    const afterLife = async (life: number): Promise<void> => {
      if (life % readerKilledEvery > 0) return;
      await killInsideTransaction(folder);
      killedReaders += 1;
    };
    const result = await runKillLoop(programs, lives, 'honest', { folder, afterLife });
    const lines = (await Promise.all(watchers.map(({ stop }) => stop()))).flat();
    const counted = (word: string): number => lines.filter((line) => line.startsWith(word)).length;
    const reads = lines.reduce((sum, line) => sum + Number(/^reads (\d+)$/.exec(line)?.[1] ?? 0), 0);
    const { acknowledged, lost, altered } = result;
    tally({
      acknowledged,
      lost: lost + altered,
      reads,
      'reads that failed': counted('error') + counted('miss'),
      'times `latest` went back': counted('back') + result.wentBack,
      'readers killed': killedReaders,
      'bytes of the file for a report': Math.round(statSync(pagesFile(join(folder, 'reports'))).size / acknowledged),
    });
    expect(lines.filter((line) => !line.startsWith('reads'))).toEqual([]);
    expect(result).toMatchObject({ lives, lost: 0, altered: 0, wentBack: 0 });
    expect(reads).toBeGreaterThan(readerCount * 10);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
