// Owns starting a module of ours in a thread or a process, built or from the sources.
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

/**
 * Starts a module beside the caller in a thread: `startThread('./x', import.meta.url, …)` takes x.ts or x.js as the caller is one.
 * Node 20 does not carry a loader into threads, so an unbuilt one registers tsx itself.
 */
export const startThread = (module: string, callerUrl: string, workerData: unknown): Worker => {
  const extension = callerUrl.slice(callerUrl.lastIndexOf('.'));
  const entry = new URL(`${module}${extension}`, callerUrl).href;
  if (extension !== '.ts') return new Worker(new URL(entry), { workerData, ...ownOptions() });
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return new Worker(`import(${tsx}).then((tsx) => { tsx.register(); return import(${JSON.stringify(entry)}); })`, {
    eval: true,
    workerData,
    execArgv: ['--conditions=source'],
  });
};

/**
 * Threads and processes take over the options of this one. Where its program is text, by `--eval` or on stdin, `--input-type` is among
 * them, and Node refuses to run a file with it: then they take over none.
 */
const ownOptions = (): { execArgv?: string[] } =>
  process.execArgv.some((option) => option.startsWith('--input-type')) ? { execArgv: [] } : {};

/** Whether a thread has come to run, for those who wait for it. */
export const createReadiness = () => {
  let reached = (): void => {};
  let fail = (_: Error): void => {};
  const ready = new Promise<void>((resolve, reject) => {
    reached = resolve;
    fail = reject;
  });
  ready.catch(() => {}); // a thread that nobody waited for fails what it is asked
  return { wait: () => ready, reached, fail };
};

/** A module beside the caller as a program for child processes; without `execArgv` they take over that of this process. */
export const programBeside = (
  module: string,
  callerUrl: string,
): { readonly exec: string; readonly execArgv?: readonly string[] } => {
  const extension = callerUrl.slice(callerUrl.lastIndexOf('.'));
  const exec = fileURLToPath(new URL(`${module}${extension}`, callerUrl));
  if (extension !== '.ts') return { exec, ...ownOptions() };
  return { exec, execArgv: ['--conditions=source', '--import', import.meta.resolve('tsx')] };
};
