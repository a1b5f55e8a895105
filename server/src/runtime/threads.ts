// Starts a module in a thread or a process, built or from the sources, and keeps a channel to a thread: answers in the order of requests, a thread that
// ends is replaced, and closing always completes (D135).
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { timedOut, within } from './deadline.ts';

/**
 * Starts a module next to the caller in a thread: `startThread('./x', import.meta.url, …)` takes x.ts or x.js as the caller is one.
 * Node 20 does not carry a loader into threads, so an unbuilt one registers tsx itself, unless it was bundled for the tests.
 */
export function startThread(module: string, callerUrl: string, workerData: unknown): Worker {
  const extension = callerUrl.slice(callerUrl.lastIndexOf('.'));
  const entry = new URL(`${module}${extension}`, callerUrl).href;
  if (extension !== '.ts') return new Worker(new URL(entry), { workerData, ...ownOptions() });
  const bundles = process.env.SEALPOST_BUNDLED_THREADS;
  if (bundles !== undefined) return new Worker(join(bundles, `${basename(module)}.mjs`), { workerData });
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return new Worker(`import(${tsx}).then((tsx) => { tsx.register(); return import(${JSON.stringify(entry)}); })`, {
    eval: true,
    workerData,
    execArgv: ['--conditions=source'],
  });
}

/**
 * Threads and processes take over the options of this one. Where its program is text, by `--eval` or on stdin, `--input-type` is among
 * them, and Node refuses to run a file with it: then they take over none.
 */
const ownOptions = (): { execArgv?: string[] } =>
  process.execArgv.some((option) => option.startsWith('--input-type')) ? { execArgv: [] } : {};

/** A thread ended that was not closed; another one replaces it. */
export type ThreadEnded = {
  readonly kind: 'threadEnded';
  readonly thread: (typeof replacedThreads)[number];
  readonly reason: string;
};
export const replacedThreads = ['writer', 'verifier'] as const;

/** What a thread says: that it runs, the answer to the oldest question, something unasked. */
export type ThreadMessage<Answer, Remark = never> =
  | { readonly ready: true }
  | { readonly answer: Answer }
  | { readonly remark: Remark };

export type ThreadChannel<Request, Answer> = {
  /** Resolves once the first thread runs; rejects when it ends before. */
  readonly ready: () => Promise<void>;
  /** Rejects when the thread ends before it answers, or is not running. */
  readonly ask: (request: Request) => Promise<Answer>;
  /** Sends what has no answer; dropped while no thread runs. */
  readonly send: (request: Request) => void;
  readonly isRunning: () => boolean;
  /** Questions without an answer. */
  readonly waiting: () => number;
  /** Lets the thread finish what it was asked and then `last`, within `closeMaxMs`; then ends it. What is asked later is rejected. */
  readonly close: (last?: Request) => Promise<void>;
};

export type ChannelOptions<Request, Remark> = {
  readonly start: () => Worker;
  /** What every new thread is sent first. */
  readonly first?: () => Request | undefined;
  readonly onRemark?: (remark: Remark) => void;
  /** A thread ended that was not closed; another one replaces it. */
  readonly onEnded?: (why: string) => void;
  /** Starts another thread also where the first one ends before it runs. Without it, that is a failed start. */
  readonly retriesStart?: boolean;
  /** The error for a question: the thread ended while it had it, or was not running. */
  readonly failure: (why: string, wasAsked: boolean) => Error;
  readonly closeMaxMs?: number;
  /** False: a thread without a question does not keep the process alive. */
  readonly keepsProcess?: boolean | undefined;
};

type Question<Answer> = { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void };

/** A thread that ended within this time of its start is replaced after as long a pause, so that one that cannot run costs little. */
const restartPauseMs = 1_000;
const closeMaxMsDefault = 10_000;
const terminateMaxMs = 1_000;

/** Starts a thread and keeps one running until closed. */
export function openChannel<Request, Answer, Remark = never>(
  options: ChannelOptions<Request, Remark>,
): ThreadChannel<Request, Answer> {
  const questions: Question<Answer>[] = [];
  const readiness = createReadiness();
  let worker: Worker | undefined;
  let hasRun = options.retriesStart === true;
  let isClosed = false;
  let restart: NodeJS.Timeout | undefined;
  const noteEnd = (why: string, livedMs: number): void => {
    worker = undefined;
    for (const { reject } of questions.splice(0)) reject(options.failure(why, true));
    readiness.fail(options.failure(why, false)); // of no effect once it ran
    if (isClosed || !hasRun) return;
    options.onEnded?.(why);
    if (livedMs > restartPauseMs) begin();
    else restart = setTimeout(begin, restartPauseMs).unref();
  };
  const receive = (message: ThreadMessage<Answer, Remark>): void => {
    if ('answer' in message) questions.shift()?.resolve(message.answer);
    else if ('remark' in message) options.onRemark?.(message.remark);
    else {
      hasRun = true;
      readiness.reached();
    }
    if (options.keepsProcess === false && questions.length === 0) worker?.unref();
  };
  const begin = (): void => {
    const startedMs = performance.now();
    let why: string | undefined;
    try {
      const started = options.start();
      worker = started;
      started.on('message', receive);
      started.on('error', (error) => {
        why = describeEnd(error);
      });
      // An answer that cannot be read is lost, and its caller would wait forever.
      started.on('messageerror', (error) => {
        why = describeEnd(error);
        void started.terminate();
      });
      started.on('exit', (code) => noteEnd(why ?? `exit code ${code}`, performance.now() - startedMs));
      const first = options.first?.();
      if (first !== undefined) started.postMessage(first);
    } catch (error) {
      noteEnd(describeEnd(error), 0);
    }
  };
  begin();
  return {
    ready: readiness.wait,
    ask: (request) =>
      new Promise((resolve, reject) => {
        if (worker === undefined || isClosed)
          return reject(options.failure(isClosed ? 'it is closed' : 'it is being restarted', false));
        questions.push({ resolve, reject });
        worker.ref();
        worker.postMessage(request);
      }),
    send: (request) => worker?.postMessage(request),
    isRunning: () => worker !== undefined,
    waiting: () => questions.length,
    close: async (last) => {
      isClosed = true;
      clearTimeout(restart);
      if (worker !== undefined) await endThread(worker, last, options.closeMaxMs ?? closeMaxMsDefault);
    },
  };
}

const describeEnd = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A thread in a system call that does not return cannot be ended; closing then stops waiting for it. */
const endThread = async (worker: Worker, last: unknown, closeMaxMs: number): Promise<void> => {
  worker.ref();
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  if (last !== undefined) {
    worker.postMessage(last);
    if ((await within(closeMaxMs, exited)) !== timedOut) return;
  }
  void worker.terminate();
  if ((await within(terminateMaxMs, exited)) === timedOut) worker.unref();
};

/** Whether a thread has come to run, for those who wait for it. */
const createReadiness = () => {
  let reached = (): void => {};
  let fail = (_: Error): void => {};
  const ready = new Promise<void>((resolve, reject) => {
    reached = resolve;
    fail = reject;
  });
  ready.catch(() => {}); // without a waiter, requests to the thread fail instead
  return { wait: () => ready, reached, fail };
};

/** A module next to the caller as a program for child processes; without `execArgv` they inherit this process's. */
export function programBeside(
  module: string,
  callerUrl: string,
): { readonly exec: string; readonly execArgv?: readonly string[] } {
  const extension = callerUrl.slice(callerUrl.lastIndexOf('.'));
  const exec = fileURLToPath(new URL(`${module}${extension}`, callerUrl));
  if (extension !== '.ts') return { exec, ...ownOptions() };
  return { exec, execArgv: ['--conditions=source', '--import', import.meta.resolve('tsx')] };
}
