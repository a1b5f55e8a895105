// The thread behind `sealpost demo`: signs the simulated network's recent past and then its present, and hands lines over. It waits
// for each batch to be taken before it signs the next, so that the past never gets in the way of the present.
import { parentPort, workerData } from 'node:worker_threads';
import { createSimulation, generateHistory, systemClock } from '@sealpost/simulator';

export type DemoThreadOptions = {
  readonly seed: string;
  /** Signed first, then followed by what the clock brings. */
  readonly recentFrom: number;
  /** Signed after that, in the background. */
  readonly pastFrom: number;
  readonly now: number;
};

/** A batch of lines: `recent` is the last minutes, `live` the present, `past` the rest; the last one of a part says so. */
export type DemoBatch = {
  readonly part: 'recent' | 'live' | 'past';
  readonly lines: readonly string[];
  readonly last: boolean;
};

const { seed, recentFrom, pastFrom, now } = workerData as DemoThreadOptions; // given by demo-feed.ts
const port = parentPort;
const taken: (() => void)[] = [];
port?.on('message', () => taken.shift()?.());

const hand = (batch: DemoBatch): Promise<void> =>
  new Promise((resolve) => {
    taken.push(resolve);
    port?.postMessage(batch);
  });

const sendSpan = async (part: 'recent' | 'past', from: number, to: number, workers: number): Promise<void> => {
  if (from <= to) {
    for await (const batch of generateHistory({ seed, from, to, workers }))
      await hand({ part, lines: batch.map(({ report }) => JSON.stringify(report)), last: false });
  }
  await hand({ part, lines: [], last: true });
};

const sendLive = async (): Promise<void> => {
  const { deliverAt } = await createSimulation({ seed });
  for (let second = now + 1; ; second++) {
    await systemClock.waitUntil(second * 1_000, undefined);
    const lines = [...deliverAt(second)].map(({ report }) => JSON.stringify(report));
    await hand({ part: 'live', lines, last: false });
  }
};

// The past is signed in a thread of its own, or the present would wait for it.
await sendSpan('recent', recentFrom, now, 0);
void sendLive();
await sendSpan('past', pastFrom, recentFrom - 1, 1);
