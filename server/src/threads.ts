// Owns starting a worker thread, built or from the sources.
import { Worker } from 'node:worker_threads';

/**
 * Starts a module beside the caller in a thread: `startThread('./x', import.meta.url, …)` takes x.ts or x.js as the caller is one.
 * Node 20 does not carry a loader into threads, so an unbuilt one registers tsx itself.
 */
export const startThread = (module: string, callerUrl: string, workerData: unknown): Worker => {
  const extension = callerUrl.slice(callerUrl.lastIndexOf('.'));
  const entry = new URL(`${module}${extension}`, callerUrl).href;
  if (extension !== '.ts') return new Worker(new URL(entry), { workerData });
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return new Worker(`import(${tsx}).then((tsx) => { tsx.register(); return import(${JSON.stringify(entry)}); })`, {
    eval: true,
    workerData,
    execArgv: ['--conditions=source'],
  });
};
