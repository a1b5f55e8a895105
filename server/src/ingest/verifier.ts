// Verifies signatures in threads, away from the event loop that serves requests. A thread that ends is replaced, and another thread verifies its
// reports again, once. Without threads, this process verifies in chunks, with other work between them.
import type { SignerSets } from '@sealpost/protocol';
import { openChannel, startThread, type ThreadChannel } from '../runtime/threads.ts';
import { StoreError } from '../store/store.ts';
import type { Verdict } from './verification.ts';
import type { VerifierRequest } from './verifier-work.ts';

/** A sender of reports, for example one stream of lines. Compared by identity. */
export type Sender = object;

export type Verifier = {
  /** Resolves once the first thread runs; rejects when it ends before. */
  readonly ready: () => Promise<void>;
  /** Verdicts in the order of the full reports. Senders take turns, a chunk of reports each. */
  readonly verify: (fullReports: readonly string[], sender?: Sender) => Promise<readonly Verdict[]>;
  /** The sets that reports are checked against from now on. */
  readonly use: (signerSets: SignerSets) => void;
  readonly close: () => Promise<void>;
};

/** Reports per message at most: some 20 ms of a thread, for which another sender waits. A smaller batch is shared among the threads. */
const chunkReportsMax = 32;
/** Messages that a thread has at once: one that it works on, and one that hides the hand-over. */
const chunksPerThread = 2;

type Channel = ThreadChannel<VerifierRequest, readonly Verdict[]>;

/**
 * Starts a thread, and the others with the first reports: each takes a tenth of a second of CPU (D212). With none, this process verifies. `onEnded`
 * is called with the reason when one ends that was not closed.
 */
export const openVerifier = (threadCount: number, onEnded: (why: string) => void = () => {}): Verifier => {
  let signerSets: SignerSets = new Map();
  const others: Sender = {};
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
  const inTurn = createSenderTurns(shares * chunksPerThread);
  const ask = (fullReports: readonly string[]): Promise<readonly Verdict[]> => {
    // A text with a comma in it is no report: it must not become two.
    const reports = fullReports.map((text) => text.replaceAll(',', ';')).join(',');
    return leastBusy(threads).ask({ reports });
  };
  return {
    ready: first.ready,
    verify: async (fullReports, sender = others) => {
      if (fullReports.length === 0) return [];
      while (threads.length < shares && !isClosed) threads.push(openThread(false));
      const size = Math.min(chunkReportsMax, Math.ceil(fullReports.length / shares));
      const chunks = Array.from({ length: Math.ceil(fullReports.length / size) }, (_, i) =>
        fullReports.slice(i * size, (i + 1) * size),
      );
      const verdicts = await Promise.all(
        chunks.map((chunk) => inTurn(sender, () => ask(chunk).catch(() => ask(chunk)))),
      );
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
};

/** A chunk takes this process about as long as a request may take. */
const openOwnLoop = (): Channel => {
  const working = import('./verifier-work.ts').then(({ startVerifying }) => startVerifying());
  working.catch(() => {}); // reported by `ready` and `ask`
  return {
    ready: async () => void (await working),
    ask: async (request) => {
      const handle = await working;
      await new Promise((resolve) => setImmediate(resolve));
      return handle(request);
    },
    send: (request) => void working.then((handle) => handle(request)).catch(() => {}),
    isRunning: () => true,
    waiting: () => 0,
    close: async () => {},
  };
};

/** Runs `slots` pieces at once; senders take turns, one piece each. */
const createSenderTurns = (slots: number) => {
  const waiting = new Map<Sender, (() => void)[]>();
  let free = slots;
  const startNext = (): void => {
    for (const [sender, queue] of waiting) {
      if (free === 0) return;
      free -= 1;
      waiting.delete(sender); // and behind the others, where it has more: the loop comes to it again
      const start = queue.shift();
      if (queue.length > 0) waiting.set(sender, queue);
      start?.();
    }
  };
  return async <T>(sender: Sender, act: () => Promise<T>): Promise<T> => {
    await new Promise<void>((start) => {
      const queue = waiting.get(sender) ?? [];
      queue.push(start);
      waiting.set(sender, queue);
      startNext();
    });
    try {
      return await act();
    } finally {
      free += 1;
      startNext();
    }
  };
};

/** The running thread with the fewest questions. */
const leastBusy = (threads: readonly Channel[]): Channel =>
  threads.reduce((least, one) => {
    if (one.isRunning() !== least.isRunning()) return one.isRunning() ? one : least;
    return one.waiting() < least.waiting() ? one : least;
  });
