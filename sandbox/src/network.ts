// The simulated network of a sandbox: one thread signs what is due, others help to sign history before it starts.
import { availableParallelism } from 'node:os';
import { openChannel, startThread, type ThreadChannel } from '@sealpost/server/runtime/threads';
import type { NewReport } from '@sealpost/server/store/store';
import type { Effect, ScenarioOptions } from '@sealpost/simulator';
import type { NetworkRequest } from './network-thread.ts';
import type { ReplayOptions } from './replay/replay.ts';

/** Where the reports of a sandbox come from. */
export type SandboxSource = {
  /** The lines that are delivered in these seconds, both ends included, in order. */
  readonly deliver: (from: number, to: number) => Promise<readonly string[]>;
  /** Makes effects known; they are in force for what is asked for later. */
  readonly add: (effects: readonly Effect[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

type Channel = ThreadChannel<NetworkRequest, readonly string[] | readonly NewReport[]>;

const openThread = (options: ScenarioOptions): Channel =>
  openChannel({
    start: () => startThread('./network-thread', import.meta.url, options),
    failure: (why) => new Error(`The simulated network has stopped: ${why}`),
  });

/** Starts the thread of a replay. */
export async function openReplaySource(options: ReplayOptions): Promise<SandboxNetwork> {
  const thread: Channel = openChannel({
    start: () => startThread('./replay/replay-thread', import.meta.url, options),
    failure: (why) => new Error(`The replay has stopped: ${why}`),
  });
  await thread.ready();
  return { ...sourceOf(thread), signHistory: async () => {} };
}

const sourceOf = (thread: Channel): SandboxSource => ({
  deliver: (from, to) => thread.ask({ act: 'lines', from, to }) as Promise<readonly string[]>, // as the thread answers
  add: async (effects) => void (await thread.ask({ act: 'add', effects })),
  close: () => thread.close(),
});

export type SandboxNetwork = SandboxSource & {
  /** Signs the reports of a time span, both ends included, and appends them in order. Nothing is verified: they were just signed here. */
  readonly signHistory: (
    span: { readonly from: number; readonly to: number },
    append: (reports: readonly NewReport[]) => Promise<unknown>,
    signal: AbortSignal,
  ) => Promise<void>;
};

/** Starts the network's thread. */
export async function openNetwork(options: ScenarioOptions, reportsPerSecond: number): Promise<SandboxNetwork> {
  const thread = openThread(options);
  await thread.ready();
  return {
    ...sourceOf(thread),
    signHistory: async ({ from, to }, append, signal) => {
      const sliceSeconds = Math.max(1, Math.ceil(reportsPerSlice / reportsPerSecond));
      const slices = Math.ceil((to - from + 1) / sliceSeconds);
      // A thread takes longer to start than a few slices to sign.
      const helpers = Math.min(availableParallelism() - 1, threadsMax, Math.floor(slices / slicesPerHelper));
      const others = Array.from({ length: helpers }, () => openThread(options));
      try {
        await signSlices([thread, ...others], { from, to, sliceSeconds }, append, signal);
      } finally {
        await Promise.all(others.map((other) => other.close()));
      }
    },
  };
}

/** Reports that a thread signs at once: about 0.1 s of work. */
const reportsPerSlice = 256;
const slicesPerHelper = 8;
const threadsMax = 8;

const signSlices = async (
  threads: readonly Channel[],
  { from, to, sliceSeconds }: { readonly from: number; readonly to: number; readonly sliceSeconds: number },
  append: (reports: readonly NewReport[]) => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> => {
  const pending: Promise<readonly NewReport[]>[] = [];
  const storeNext = async (): Promise<void> => {
    const reports = (await pending.shift()) ?? [];
    if (reports.length > 0) await append(reports);
  };
  for (let start = from; start <= to && !signal.aborted; start += sliceSeconds) {
    const thread = threads.reduce((least, one) => (one.waiting() < least.waiting() ? one : least));
    const request: NetworkRequest = { act: 'reports', from: start, to: Math.min(to, start + sliceSeconds - 1) };
    const asked = thread.ask(request) as Promise<readonly NewReport[]>; // as the thread answers
    asked.catch(() => {}); // thrown when its turn comes
    pending.push(asked);
    if (pending.length >= 2 * threads.length) await storeNext();
  }
  while (pending.length > 0 && !signal.aborted) await storeNext();
};
