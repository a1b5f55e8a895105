// Programs that collect their garbage at set times: what memory is left after it is in use. By itself, a heap of 50 MB may go uncollected for half an hour.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where the threads of programs write how much of their heaps is in use after each collection. */
const heapsFile = join(tmpdir(), `sealpost-heaps-${process.pid}.txt`);

/** Memory is compared by its lowest values, of five minutes each: see measures.ts. */
export const collectMs = 60_000;

/** For NODE_OPTIONS: each thread of the program collects all of its garbage every `collectMs`. */
export const collectOption = (): string => {
  const text = `import { appendFileSync } from 'node:fs'; import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm'; import { threadId } from 'node:worker_threads';
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    setInterval(() => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      try {
        appendFileSync(${JSON.stringify(heapsFile)}, process.pid + ' ' + threadId + ' ' + (heapUsed + external) + '\\n');
      } catch {} // of a full disk, say: the program goes on
    }, ${collectMs}).unref();`;
  return `--import=data:text/javascript,${encodeURIComponent(text)}`;
};

/** The main thread is thread 0. */
const mainThread = '0';

/** What was in use by all threads after each collection of the main one, in megabytes: without what allocators keep, of which only the whole process tells. */
export const heapsOf = (pid: number): readonly number[] => sumHeaps(readHeaps(), String(pid));

const readHeaps = (): readonly string[] =>
  existsSync(heapsFile) ? readFileSync(heapsFile, 'utf8').trim().split('\n') : [];

/** Threads collect at different times: to what the main one has is added what the others had last. */
export const sumHeaps = (lines: readonly string[], pid: string): readonly number[] => {
  const last = new Map<string, number>();
  return lines
    .map((line) => line.split(' '))
    .filter(([process]) => process === pid)
    .flatMap(([, thread = '', bytes]) => {
      last.set(thread, Number(bytes) / 2 ** 20);
      return thread === mainThread ? [[...last.values()].reduce((sum, one) => sum + one, 0)] : [];
    });
};

export const removeHeaps = (): void => rmSync(heapsFile, { force: true });
