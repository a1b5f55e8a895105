// The worker threads: starts them, built or unbuilt, assigns slices, and ends them. Slices come back as promises.
import { Worker } from 'node:worker_threads';
import type { DeliveredReport } from './simulation.ts';
import type { Slice, ThreadOptions } from './slices.ts';

/** Signs slices, several at a time. */
export type SliceSigner = {
  readonly sign: (slice: Slice) => Promise<readonly DeliveredReport[]>;
  readonly close: () => Promise<void>;
};

/** Up to `count` threads, each started by its first slice; slices go round, and one thread takes its own in order. */
export const openThreads = (count: number, options: ThreadOptions): SliceSigner => {
  const threads: SliceSigner[] = [];
  let handedOut = 0;
  return {
    sign: (slice) => {
      const index = handedOut % count;
      handedOut += 1;
      const thread = threads[index] ?? openThread(options);
      threads[index] = thread;
      return thread.sign(slice);
    },
    close: async () => {
      await Promise.all(threads.map((thread) => thread.close()));
    },
  };
};

const openThread = (options: ThreadOptions): SliceSigner => {
  const worker = startWorker(options);
  const waiting: Waiting[] = [];
  let failure: Error | undefined;
  const fail = (cause: Error) => {
    failure ??= cause;
    for (const { reject } of waiting.splice(0)) reject(failure);
  };
  worker.on('message', (reports: readonly DeliveredReport[]) => waiting.shift()?.resolve(reports));
  worker.on('messageerror', fail);
  worker.on('error', fail);
  worker.on('exit', (code) => fail(new Error(`A simulator thread ended early, with code ${code}.`)));
  return {
    sign: (slice) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure);
        waiting.push({ resolve, reject });
        worker.postMessage(slice);
      }),
    close: async () => {
      await worker.terminate();
    },
  };
};

type Waiting = {
  readonly resolve: (reports: readonly DeliveredReport[]) => void;
  readonly reject: (cause: Error) => void;
};

const startWorker = (workerData: ThreadOptions): Worker => {
  if (!import.meta.url.endsWith('.ts')) {
    // Node refuses to run a file with --input-type, which a program that is text passes on: then nothing is passed on.
    const isText = process.execArgv.some((option) => option.startsWith('--input-type'));
    return new Worker(new URL('./worker.js', import.meta.url), { workerData, ...(isText && { execArgv: [] }) });
  }
  const bundles = process.env.SEALPOST_BUNDLED_THREADS; // of the tests
  if (bundles !== undefined) return new Worker(`${bundles}/worker.mjs`, { workerData });
  // A loader of the main thread does not reach worker threads on Node 20, so an unbuilt worker registers tsx itself.
  // JSON quotes the addresses: a folder may have an apostrophe in its name.
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  const entry = JSON.stringify(new URL('./worker.ts', import.meta.url).href);
  return new Worker(`import(${tsx}).then((tsx) => { tsx.register(); return import(${entry}); })`, {
    eval: true,
    workerData,
    execArgv: ['--conditions=source'],
  });
};
