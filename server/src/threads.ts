// Owns starting a worker thread, built or from the sources.
import { Worker } from 'node:worker_threads';

/** Starts the module at `entry` (its .ts address) in a thread. Node 20 does not carry a loader into threads, so unbuilt ones register tsx themselves. */
export const startThread = (entry: string, workerData: unknown): Worker => {
  if (!entry.endsWith('.ts')) return new Worker(new URL(entry), { workerData });
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return new Worker(`import(${tsx}).then((tsx) => { tsx.register(); return import(${JSON.stringify(entry)}); })`, {
    eval: true,
    workerData,
    execArgv: ['--conditions=source'],
  });
};
