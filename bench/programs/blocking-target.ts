// A whole node on a large store, in a process of its own, that measures for how long its event loop is blocked: the most CPU that its thread uses
// between two turns of the loop while the parent asks for something. CPU, because on a busy machine a thread also waits for others; Node counts
// it by thread from 23.9 on.
import { PerformanceObserver } from 'node:perf_hooks';
import type { FeedId } from '@sealpost/protocol';
import { parseFeedId } from '@sealpost/protocol';
import { createEventIds } from '../../server/src/live/event-id.ts';
import { testStream } from '../../tests/support/running-ingest.ts';
import { rekeyedReports } from '../rekeyed-reports.ts';
import { openBenchNode } from './bench-node.ts';

/** What Node has from 23.9 on. */
type CountsThreads = NodeJS.Process & { readonly threadCpuUsage: () => NodeJS.CpuUsage };

/** What the parent asks: to begin to measure, or for the longest time since, in milliseconds. */
export type BlockingRequest = 'begin' | 'end';

/** Milliseconds: the most CPU between two turns, and the longest collection of garbage, which may be in it. */
export type Blocked = { readonly longest: number; readonly collecting: number };

export type BlockingWorld = {
  readonly url: string;
  readonly opsUrl: string;
  readonly ingestToken: string;
  readonly userId: string;
  readonly secret: string;
  readonly feedIds: readonly FeedId[];
  readonly now: number;
  /** An id 100,000 positions back. */
  readonly lastEventId: string;
};

const streams = 2_000;
const daySeconds = 86_400;
/** As many candles of an hour as one request may ask for. */
const minutes = 60 * 1_440;
/** Streams with a few reports, for requests that name as many as they may. */
const small = 230;

const feedIds = Array.from({ length: streams }, (_, i) =>
  parseFeedId(`0x0003${(i + 1).toString(16).padStart(60, '0')}`),
);
const ingestToken = 'a-token-of-the-blocking-bench';
const { node, userId, secret, stop } = await openBenchNode(
  feedIds.map((feedId) => testStream(feedId)),
  undefined,
  { retentionDays: '100', feedIdsMax: String(small) },
  ingestToken,
);
const { reports } = node.write.store;
const now = Math.floor(Date.now() / 60_000) * 60;
const [dense, sparse] = feedIds as [FeedId, FeedId]; // there are more
const [perMillisecond, gappy] = feedIds.slice(-2) as [FeedId, FeedId]; // there are more

/** Appends reports of a stream, `apart` seconds from each other. The bytes are those of one report a second, whatever the window. */
const fill = async (feedId: FeedId, count: number, apart: number): Promise<void> => {
  let batch: Parameters<typeof reports.append>[0][number][] = [];
  let i = 0;
  for (const [one] of rekeyedReports(now - count, count, [feedId])) {
    const ms = Math.round((now - (count - i++) * apart) * 1_000);
    if (one !== undefined) batch.push({ ...one, validFromMs: ms, observationsMs: ms, price: BigInt(i % 1_000) });
    if (batch.length < 2_000 && i < count) continue;
    await reports.append(batch);
    batch = [];
  }
};

await fill(perMillisecond, 20_000, 0.001);
await fill(gappy, daySeconds / 2, 2);
await fill(sparse, minutes, 60);
await fill(dense, daySeconds, 1);
for (const feedId of feedIds.slice(2, 2 + small)) await fill(feedId, 100, 1);

let [longest, collecting, last, isMeasuring] = [0, 0, 0, false];
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collecting = Math.max(collecting, duration);
}).observe({ entryTypes: ['gc'] });
/** Milliseconds of CPU that this thread has used. The kernel counts a thread's at its ticks, 4 ms apart, and at once where a process asks for all of its own. */
const ranMs = (): number => {
  process.cpuUsage();
  const { user, system } = (process as CountsThreads).threadCpuUsage(); // the types are those of an older release
  return (user + system) / 1_000;
};
const turn = (): void => {
  const at = ranMs();
  longest = Math.max(longest, at - last);
  last = at;
  if (isMeasuring) setImmediate(turn);
};
process.on('message', (request: BlockingRequest) => {
  isMeasuring = request === 'begin';
  if (isMeasuring) {
    [longest, collecting, last] = [0, 0, ranMs()];
    turn();
  }
  const blocked: Blocked = { longest, collecting };
  setImmediate(() => process.send?.(blocked)); // the last collections are told on the next turn
});
const { encode } = createEventIds(await reports.lineage());
const world: BlockingWorld = {
  url: node.url,
  opsUrl: node.opsUrl,
  ingestToken,
  userId,
  secret,
  feedIds,
  now,
  lastEventId: encode((await reports.position()) - 100_000),
};
process.send?.(world);
process.once('SIGTERM', async () => {
  await stop();
  process.exit();
});
