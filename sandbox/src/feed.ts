// Feeds a sandbox's node: asks for the reports of each second when sandbox time gets there, stores them, and does what the scenario has for that second
// before them. Sandbox time waits while it works.
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { SandboxClock } from './clock.ts';
import type { SandboxSource } from './network.ts';
import type { ScenarioAct } from './scenario/compile.ts';

export type SandboxFeedParts = {
  readonly clock: SandboxClock;
  readonly source: SandboxSource;
  readonly submit: (lines: readonly string[]) => Promise<readonly LineResult[]>;
  /** Does something before the reports of its second. */
  readonly perform: (act: ScenarioAct) => Promise<void>;
  readonly startSecond: number;
  readonly reportsPerSecond: number;
};

export type Feed = {
  /** The first second that can still be changed: nothing of it was asked for. */
  readonly nextSecond: () => number;
  /** Reports stored, and those that the node rejected with the last reason. */
  readonly counts: () => FeedCounts;
  /** Schedules an act, which is not before `nextSecond`. */
  readonly schedule: (act: ScenarioAct) => void;
  /** Resolves once the reports up to a second, included, are stored, or as soon as the signal is aborted. */
  readonly storedUpTo: (second: number, signal: AbortSignal) => Promise<void>;
  /** Rejects when the feed fails; never resolves. */
  readonly failed: Promise<never>;
  readonly stop: () => Promise<void>;
};

export type FeedCounts = {
  readonly stored: number;
  readonly rejected: number;
  readonly lastRejection: string | null;
};

/** Reports of one batch: about 0.1 s of signing. */
const reportsPerBatch = 256;
/** Real time that one batch covers while time is not behind. */
const batchMs = 50;
const linesPerSubmit = 1_024;
/** Sandbox time that one batch covers at most: streams are late, and the node is not ready, after a minute. */
const batchSecondsMax = 30;

/** Starts to feed. The reports of the start itself are history. */
export function startSandboxFeed(parts: SandboxFeedParts): Feed {
  const { clock, startSecond } = parts;
  const acts: ScenarioAct[] = [];
  const counts = { stored: 0, rejected: 0, lastRejection: null as string | null }; // null until there is one
  const stopping = new AbortController();
  const waiting = new Set<() => void>();
  let next = startSecond + 1;
  let stored = startSecond;
  const batchMax = Math.min(
    batchSecondsMax,
    Math.max(1, Math.ceil(reportsPerBatch / Math.max(parts.reportsPerSecond, 0.001))),
  );
  const holdClock = (): void => {
    const { speed, behindMs } = clock.state();
    const ahead = behindMs > 2_000 * speed ? batchMax : Math.ceil((speed * batchMs) / 1_000);
    clock.holdAt((next + Math.min(batchMax, ahead)) * 1_000 + 999);
  };
  const performDue = async (): Promise<void> => {
    for (let act = acts[0]; act !== undefined && act.second <= next; act = acts[0]) {
      acts.shift();
      await parts.perform(act);
    }
  };
  const deliver = async (to: number): Promise<void> => {
    const from = next;
    next = to + 1;
    const lines = await parts.source.deliver(from, to);
    for (let i = 0; i < lines.length; i += linesPerSubmit)
      count(counts, await parts.submit(lines.slice(i, i + linesPerSubmit)));
    stored = to;
    for (const resolve of [...waiting]) resolve();
  };
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      holdClock();
      await clock.waitUntil(next * 1_000, stopping.signal);
      if (stopping.signal.aborted) return;
      await performDue();
      const until = Math.min(
        Math.floor(clock.nowMs() / 1_000),
        next + batchMax - 1,
        (acts[0]?.second ?? Number.POSITIVE_INFINITY) - 1,
      );
      if (until >= next) await deliver(until);
    }
  };
  let fail = (_: unknown): void => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {}); // a failure while stopping is ignored
  const running = run().catch(fail);
  return {
    nextSecond: () => next,
    counts: () => counts,
    schedule: (act) => insertInOrder(acts, act),
    storedUpTo: async (second, signal) => {
      while (stored < second && !signal.aborted) await nextOf(waiting, signal);
    },
    failed,
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

const insertInOrder = (acts: ScenarioAct[], act: ScenarioAct): void => {
  const index = acts.findLastIndex(({ second }) => second <= act.second); // from the end: a series comes in order
  acts.splice(index + 1, 0, act);
};

/** Resolves when those who wait are called, or the signal is aborted. */
const nextOf = (waiting: Set<() => void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      waiting.delete(end);
      signal.removeEventListener('abort', end); // the signal outlives those who wait
      resolve();
    };
    waiting.add(end);
    signal.addEventListener('abort', end);
  });

const count = (
  counts: { stored: number; rejected: number; lastRejection: string | null },
  results: readonly LineResult[],
): void => {
  for (const { result, code, message } of results) {
    if (result !== 'refused') counts.stored += 1;
    else {
      counts.rejected += 1;
      counts.lastRejection = `${code}: ${message}`;
    }
  }
};
