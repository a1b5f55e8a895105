// Owns the verifier: threads that check signatures, so that no request loop ever does.
import type { Worker } from 'node:worker_threads';
import type { SignerSets } from '@sealpost/protocol';
import { createReadiness, startThread } from '../threads.ts';
import type { Verdict } from './verification.ts';
import type { VerifierAnswer, VerifierRequest } from './verifier-thread.ts';

export type Verifier = {
  /** Resolves once every thread runs; rejects when one ends before. */
  readonly ready: () => Promise<void>;
  /** Verdicts in the order of the full reports. */
  readonly verify: (fullReports: readonly string[]) => Promise<readonly Verdict[]>;
  /** The sets that reports are checked against from now on. */
  readonly use: (signerSets: SignerSets) => void;
  readonly close: () => Promise<void>;
};

type Waiting = { readonly resolve: (verdicts: readonly Verdict[]) => void; readonly reject: (error: Error) => void };

/** Reports per message at most: large enough to hide the hand-over. A smaller batch is shared among the threads. */
const chunkReportsMax = 64;

/** Starts the threads. A thread that dies rejects what it was asked, then and later. */
export const openVerifier = (threadCount: number): Verifier => {
  const threads = Array.from({ length: threadCount }, openVerifierThread);
  const leastBusy = () =>
    threads.reduce((least, thread) => (thread.waiting.length < least.waiting.length ? thread : least));
  return {
    ready: async () => {
      await Promise.all(threads.map(({ ready }) => ready()));
    },
    verify: async (fullReports) => {
      if (fullReports.length === 0) return [];
      const size = Math.min(chunkReportsMax, Math.ceil(fullReports.length / threadCount));
      const chunks = Array.from({ length: Math.ceil(fullReports.length / size) }, (_, i) =>
        fullReports.slice(i * size, (i + 1) * size),
      );
      const verdicts = await Promise.all(chunks.map((chunk) => leastBusy().ask(chunk)));
      return verdicts.flat();
    },
    use: (signerSets) => {
      for (const { worker } of threads) worker.postMessage({ signerSets } satisfies VerifierRequest);
    },
    close: async () => {
      await Promise.all(threads.map(({ worker }) => worker.terminate()));
    },
  };
};

type VerifierThread = {
  readonly worker: Worker;
  readonly ready: () => Promise<void>;
  readonly waiting: readonly Waiting[];
  readonly ask: (fullReports: readonly string[]) => Promise<readonly Verdict[]>;
};

const openVerifierThread = (): VerifierThread => {
  const worker = startThread('./verifier-thread', import.meta.url, undefined);
  const waiting: Waiting[] = [];
  const readiness = createReadiness();
  let failure: Error | undefined;
  const fail = (cause: unknown): void => {
    const why = cause instanceof Error ? cause.message : `exit code ${cause}`;
    failure ??= new Error(`A thread that verifies signatures has ended: ${why}`, { cause });
    readiness.fail(failure);
    for (const { reject } of waiting.splice(0)) reject(failure);
  };
  worker.on('message', (message: VerifierAnswer) => {
    if (message === 'ready') readiness.reached();
    else waiting.shift()?.resolve(message);
  });
  worker.on('error', fail);
  worker.on('exit', fail);
  const ask = (fullReports: readonly string[]): Promise<readonly Verdict[]> =>
    new Promise((resolve, reject) => {
      if (failure !== undefined) return reject(failure);
      waiting.push({ resolve, reject });
      // A text with a comma in it is no report: it must not become two.
      const reports = fullReports.map((text) => text.replaceAll(',', ';')).join(',');
      worker.postMessage({ reports } satisfies VerifierRequest);
    });
  return { worker, ready: readiness.wait, waiting, ask };
};
