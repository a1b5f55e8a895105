// The worker threads: starts them, from source or built, assigns slices, and ends them.
import { Worker } from 'node:worker_threads';
import type { DeliveredReport } from './simulation.ts';
import type { Slice, ThreadOptions } from './slices.ts';

/** Signs slices, several at a time. */
export type SliceSigner = {
  readonly sign: (slice: Slice) => Promise<readonly DeliveredReport[]>;
  readonly close: () => Promise<void>;
};

/** Up to `count` threads, each started by its first slice. Slices are assigned round-robin; a thread signs its own in order. */
export function openThreads(count: number, options: ThreadOptions): SliceSigner {
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
}

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
    // A program started with --input-type passes that option to its workers, where Node rejects it for files.
    const isText = process.execArgv.some((option) => option.startsWith('--input-type'));
    return new Worker(new URL('./signing-thread.js', import.meta.url), { workerData, ...(isText && { execArgv: [] }) });
  }
  const bundles = process.env.SEALPOST_BUNDLED_THREADS; // of the tests
  if (bundles !== undefined) return new Worker(`${bundles}/signing-thread.mjs`, { workerData });
  // On Node 20, worker threads do not inherit the main thread's loader, so a worker from source registers tsx itself. JSON.stringify quotes
  // the URLs: a folder name may have an apostrophe.
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  const entry = JSON.stringify(new URL('./signing-thread.ts', import.meta.url).href);
  return new Worker(`import(${tsx}).then((tsx) => { tsx.register(); return import(${entry}); })`, {
    eval: true,
    workerData,
    execArgv: ['--conditions=source'],
  });
};
