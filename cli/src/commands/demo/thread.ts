// The thread behind `sealpost demo`: signs what is missing of the simulated network's recent past, then its present and the rest of the past, the newest
// part first, and hands lines over. The present comes first: the past waits while live reports are behind the clock.
import { setTimeout } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { createSimulation, generateHistory, systemClock } from '@sealpost/simulator';
import type { PastSpan } from './gaps.ts';

export type DemoThreadOptions = {
  readonly seed: string;
  /** Signed first; live reports follow. */
  readonly recent: readonly PastSpan[];
  /** Signed after that, in the background. */
  readonly past: readonly PastSpan[];
  readonly now: number;
};

/** A batch of lines: `recent` is the last minutes, `live` the present, `past` the rest; the last one of a part says so. */
export type DemoBatch = {
  readonly part: 'recent' | 'live' | 'past';
  readonly lines: readonly string[];
  readonly last: boolean;
};

const { seed, recent, past, now } = workerData as DemoThreadOptions; // given by feed.ts
const port = parentPort;
/** Resolve the pending batches of each part, in order. */
const taken: Readonly<Record<DemoBatch['part'], (() => void)[]>> = { recent: [], live: [], past: [] };
port?.on('message', (part: DemoBatch['part']) => taken[part].shift()?.());

const hand = (batch: DemoBatch): Promise<void> =>
  new Promise((resolve) => {
    taken[batch.part].push(resolve);
    port?.postMessage(batch);
  });

/** How far live reports may be behind before the past waits for them. */
const behindMaxMs = 2_000;
const lookEveryMs = 100;
/** Seconds of live reports that are signed at once where the machine was held up. */
const liveSecondsMax = 10;

let liveUpToMs = now * 1_000;

const liveFirst = async (): Promise<void> => {
  while (systemClock.nowMs() - liveUpToMs > behindMaxMs) await setTimeout(lookEveryMs);
};

const sendSpans = async (part: 'recent' | 'past', spans: readonly PastSpan[], workers: number): Promise<void> => {
  let before = Promise.resolve(); // two batches are under way: one is verified while the other is written
  for (const span of spans) {
    for await (const batch of generateHistory({ seed, ...span, workers, newestFirst: true })) {
      if (part === 'past') await liveFirst();
      const handed = hand({ part, lines: batch.map(({ report }) => JSON.stringify(report)), last: false });
      await before;
      before = handed;
    }
  }
  await before;
  await hand({ part, lines: [], last: true });
};

const sendLive = async (): Promise<void> => {
  const { deliverAt } = await createSimulation({ seed });
  for (let second = now + 1; ; ) {
    await systemClock.waitUntil(second * 1_000, undefined);
    const due = Math.min(Math.floor(systemClock.nowMs() / 1_000), second + liveSecondsMax - 1);
    const lines: string[] = [];
    for (; second <= due; second++) lines.push(...[...deliverAt(second)].map(({ report }) => JSON.stringify(report)));
    await hand({ part: 'live', lines, last: false });
    liveUpToMs = due * 1_000;
  }
};

// The past is signed in a separate thread, or live reports would wait for it.
await sendSpans('recent', recent, 0);
void sendLive();
await sendSpans('past', past, 1);
