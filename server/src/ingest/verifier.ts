// The verifier: threads that check signatures, so that no request loop ever does. A thread that ends is replaced; what it had is checked again by
// another, once.
import type { SignerSets } from '@sealpost/protocol';
import { StoreError } from '../store/store.ts';
import { openChannel, startThread, type ThreadChannel } from '../threads.ts';
import type { Verdict } from './verification.ts';
import type { VerifierRequest } from './verifier-thread.ts';

export type Verifier = {
  /** Resolves once every thread runs; rejects when one ends before. */
  readonly ready: () => Promise<void>;
  /** Verdicts in the order of the full reports. */
  readonly verify: (fullReports: readonly string[]) => Promise<readonly Verdict[]>;
  /** The sets that reports are checked against from now on. */
  readonly use: (signerSets: SignerSets) => void;
  readonly close: () => Promise<void>;
};

/** Reports per message at most: large enough to hide the hand-over. A smaller batch is shared among the threads. */
const chunkReportsMax = 64;

type Channel = ThreadChannel<VerifierRequest, readonly Verdict[]>;

/** Starts the threads. `onEnded` hears why one ended that nobody closed. */
export const openVerifier = (threadCount: number, onEnded: (why: string) => void = () => {}): Verifier => {
  let signerSets: SignerSets = new Map();
  const threads = Array.from({ length: threadCount }, () =>
    openChannel<VerifierRequest, readonly Verdict[]>({
      start: () => startThread('./verifier-thread', import.meta.url, undefined),
      first: () => ({ signerSets }),
      onEnded,
      failure: (why) =>
        new StoreError('store_unavailable', `A thread that verifies signatures is not running: ${why}. Retry shortly.`),
    }),
  );
  const ask = (fullReports: readonly string[]): Promise<readonly Verdict[]> => {
    // A text with a comma in it is no report: it must not become two.
    const reports = fullReports.map((text) => text.replaceAll(',', ';')).join(',');
    return leastBusy(threads).ask({ reports });
  };
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
      const verdicts = await Promise.all(chunks.map((chunk) => ask(chunk).catch(() => ask(chunk))));
      return verdicts.flat();
    },
    use: (sets) => {
      signerSets = sets;
      for (const { send } of threads) send({ signerSets });
    },
    close: async () => {
      await Promise.all(threads.map(({ close }) => close()));
    },
  };
};

/** The running thread with the fewest questions. */
const leastBusy = (threads: readonly Channel[]): Channel =>
  threads.reduce((least, one) => {
    if (one.isRunning() !== least.isRunning()) return one.isRunning() ? one : least;
    return one.waiting() < least.waiting() ? one : least;
  });
