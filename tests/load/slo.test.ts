// Latency of a server that has half and four fifths of the requests that it can answer, from the time that each was planned for.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ingestToken } from '../formats/senders.ts';
import { countOf, isFull, tally } from '../support/full-count.ts';
import { createWorld, type Server, startServer, type World } from '../support/real-program.ts';
import { type RunningPostgres, startPostgres } from '../support/running-postgres.ts';
import type { LoadResult } from './generator.ts';
import { type LoadedServer, startLoadedServer } from './loaded-server.ts';
import { measureVisible } from './visible.ts';

const minutes = countOf(0.02, 2);
const seconds = minutes * 60;
const connections = isFull ? 200 : 8;
const warmUpSeconds = isFull ? 30 : 0.2;
let loaded: LoadedServer;

beforeAll(async () => {
  loaded = await startLoadedServer(isFull ? 1_000_000 : 2_400, isFull);
}, 1_800_000);
afterAll(() => loaded?.close());

const errorsOf = ({ planned, answers }: LoadResult): number => planned - (answers['200'] ?? 0);

/** Loads the server in some way while a report comes in every second. */
const withReports = async <T>(run: () => Promise<T>) => {
  let isOver = false;
  const visible = measureVisible(loaded.server, loaded.server, loaded.world, () => isOver);
  const result = await run().finally(() => {
    isOver = true;
  });
  return { result, visible: await visible };
};

/** Runs a share of the capacity. What the first seconds need is compiled before. */
const runAt = async (share: number, capacity: number) => {
  const rate = Math.max(20, capacity * share);
  const warmUp = await withReports(() => loaded.load({ rate, seconds: warmUpSeconds, connections, opensFirst: true }));
  const run = await withReports(() => loaded.load({ rate, seconds, connections, opensFirst: true }));
  return { ...run, warmUp: warmUp.result };
};

test(`slo: requests at 50 and 80 % of the capacity for ${minutes} minutes each are all answered`, {
  timeout: (2 * minutes + 12) * 60_000,
}, async () => {
  const { result: capacity } = await withReports(() => loaded.measureCapacity(isFull ? 20 : 0.5, connections));
  const [half, most] = [await runAt(0.5, capacity), await runAt(0.8, capacity)];
  tally(
    {
      'requests per second, the capacity of one core': Math.round(capacity),
      'requests at half of it': half.result.planned,
      'requests at four fifths': most.result.planned,
      'not answered with 200': errorsOf(half.result) + errorsOf(most.result),
      'not answered in the warm-ups': errorsOf(half.warmUp) + errorsOf(most.warmUp),
      'ms at half, 50th percentile': half.result.latencyMs.p50,
      'ms at half, 99th percentile': half.result.latencyMs.p99,
      'ms at half, 99.9th percentile': half.result.latencyMs.p999,
      'ms at four fifths, 99th percentile': most.result.latencyMs.p99,
      'ms until a report is visible, 99th percentile': Math.round(half.visible.p99Ms),
    },
    {
      'not answered with 200': 0,
      'ms at half, 50th percentile': 2,
      'ms at half, 99th percentile': 10,
      'ms at half, 99.9th percentile': 50,
      'ms at four fifths, 99th percentile': 25,
      'ms until a report is visible, 99th percentile': 50,
    },
  );
  if (isFull) expect(loaded.isPinned).toBe(true); // server and generator have a core each
  // In `npm test` the machine is shared: what is planned may find no connection free in time, but nothing fails.
  for (const { result } of [half, most]) {
    expect(Object.keys(result.answers)).toEqual(['200']);
    expect(result.cut).toBe(0);
  }
  for (const { visible } of [half, most]) expect(visible.came).toBe(visible.sent);
});

// `npm test` has this in tests/postgres-nodes.test.ts.
test.runIf(isFull)(
  'slo: a report sent to one node on PostgreSQL is visible at the other',
  { timeout: 600_000 },
  async () => {
    const postgres: RunningPostgres = await startPostgres({ durable: true });
    const world: World = await createWorld(postgres.url('slo', ''));
    const start = (): Promise<Server> =>
      startServer(world, ['--log-level', 'warn'], { SEALPOST_INGEST_TOKEN: ingestToken });
    const [one, other] = [await start(), await start()];
    const end = performance.now() + Math.min(seconds, 120) * 1_000;
    const { sent, came, p99Ms } = await measureVisible(one, other, world, () => performance.now() > end);
    await Promise.all([one.stop(), other.stop()]);
    world.remove();
    await postgres.stop();
    const what = 'ms until it is visible at another node on PostgreSQL, 99th percentile';
    tally({ [what]: Math.round(p99Ms) }, { [what]: 200 });
    expect(came).toBe(sent);
  },
);
