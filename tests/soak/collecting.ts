// Programs that collect their garbage at set times: what memory is left after it is in use. By itself, a heap of 50 MB may go uncollected for half an hour.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where programs write how much of the heap of their main thread is in use after each collection. */
const heapsFile = join(tmpdir(), `sealpost-heaps-${process.pid}.txt`);

/** For NODE_OPTIONS: each thread of the program collects all of its garbage again and again. */
export const collectEvery = (ms: number): string => {
  const text = `import { appendFileSync } from 'node:fs'; import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm'; import { isMainThread } from 'node:worker_threads';
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    setInterval(() => {
      collect();
      if (!isMainThread) return;
      const { heapUsed, external } = process.memoryUsage();
      try {
        appendFileSync(${JSON.stringify(heapsFile)}, process.pid + ' ' + (heapUsed + external) + '\\n');
      } catch {} // of a full disk, say: the program goes on
    }, ${ms}).unref();`;
  return `--import=data:text/javascript,${encodeURIComponent(text)}`;
};

/** What was in use after each collection, in megabytes: without what the allocators keep, of which only the whole process tells. */
export const heapsOf = (pid: number): readonly number[] =>
  (existsSync(heapsFile) ? readFileSync(heapsFile, 'utf8').trim().split('\n') : [])
    .filter((line) => line.startsWith(`${pid} `))
    .map((line) => Number(line.split(' ')[1]) / 2 ** 20);

export const removeHeaps = (): void => rmSync(heapsFile, { force: true });
