// Verifies signatures in threads, away from the event loop that serves requests. A thread that ends is replaced, and another thread verifies its
// reports again, once. Without threads, this process verifies in chunks, with other work between them.
import type { SignerSets } from '@sealpost/protocol';
import { openChannel, startThread, type ThreadChannel } from '../runtime/threads.ts';
import { StoreError } from '../store/store.ts';
import { startVerifying, type Verdict, type VerifierRequest } from './verification.ts';

export type Verifier = {
  /** Resolves once the first thread runs; rejects when it ends before. */
  readonly ready: () => Promise<void>;
  /** Verdicts in the order of the full reports. */
  readonly verify: (fullReports: readonly string[]) => Promise<readonly Verdict[]>;
  /** Reports that keep all threads busy while the next ones are handed over. */
  readonly reportsAtOnce: number;
  /** The sets that reports are checked against from now on. */
  readonly use: (signerSets: SignerSets) => void;
  readonly close: () => Promise<void>;
};

/** Reports per message at most. A smaller batch is shared among the threads. */
const chunkReportsMax = 32;

type Channel = ThreadChannel<VerifierRequest, readonly Verdict[]>;

/**
 * Starts a thread, and the others with the first reports: each takes a tenth of a second of CPU (D212). With none, this process verifies. `onEnded`
 * is called with the reason when one ends that was not closed.
 */
export function openVerifier(threadCount: number, onEnded: (why: string) => void = () => {}): Verifier {
  let signerSets: SignerSets = new Map();
  const openThread = (isFirst: boolean): Channel =>
    openChannel<VerifierRequest, readonly Verdict[]>({
      start: () => startThread('./verifier-thread', import.meta.url, undefined),
      first: () => ({ signerSets }),
      onEnded,
      retriesStart: !isFirst,
      failure: (why) => new StoreError('store_unavailable', `A verifier thread is not running: ${why}. Retry shortly.`),
    });
  const first = threadCount === 0 ? openOwnLoop() : openThread(true);
  const threads = [first];
  const shares = Math.max(1, threadCount);
  let isClosed = false;
  const ask = (fullReports: readonly string[]): Promise<readonly Verdict[]> => {
    // A text with a comma in it is no report: it must not become two.
    const reports = fullReports.map((text) => text.replaceAll(',', ';')).join(',');
    return leastBusy(threads).ask({ reports });
  };
  return {
    ready: first.ready,
    reportsAtOnce: 2 * shares * chunkReportsMax,
    verify: async (fullReports) => {
      if (fullReports.length === 0) return [];
      while (threads.length < shares && !isClosed) threads.push(openThread(false));
      const size = Math.min(chunkReportsMax, Math.ceil(fullReports.length / shares));
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
      isClosed = true;
      await Promise.all(threads.map(({ close }) => close()));
    },
  };
}

/** One chunk after the other, with other work between them: each takes this process about as long as a request may take. */
const openOwnLoop = (): Channel => {
  const working = startVerifying();
  working.catch(() => {}); // reported by `ready` and `ask`
  let last: Promise<unknown> = working;
  return {
    ready: async () => void (await working),
    ask: (request) => {
      const answer = last.then(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return (await working)(request);
      });
      last = answer.catch(() => {});
      return answer;
    },
    send: (request) => void working.then((handle) => handle(request)).catch(() => {}),
    isRunning: () => true,
    waiting: () => 0,
    close: async () => {},
  };
};

/** The running thread with the fewest questions. */
const leastBusy = (threads: readonly Channel[]): Channel =>
  threads.reduce((least, one) => {
    if (one.isRunning() !== least.isRunning()) return one.isRunning() ? one : least;
    return one.waiting() < least.waiting() ? one : least;
  });
