// A server whose clock jumps by 30 s and back while clients ask: who has its time is answered at once, who has not gets 400, nothing fails, and rate
// limits go by a clock that does not jump.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import type { Account } from '../../server/src/store/store.ts';
import { countOf, seedOf, tally } from '../support/full-count.ts';
import { createRandom } from '../support/random.ts';
import {
  createWorld,
  fetchSigned,
  processesOf,
  type Server,
  startServer,
  type World,
} from '../support/real-program.ts';
import { act } from '../support/running-ingest.ts';
import { jumpingClock } from './jumping-clock.ts';

const jumps = countOf(4, 60);
/** In full, as long as it takes to send some hundred requests in between. */
const betweenMs = jumps > 10 ? 5_000 : 300;
const limit = 10;
let world: World;
let server: Server;
let offsetFile: string;
let offsetMs = 0;

beforeAll(async () => {
  world = await createWorld();
  offsetFile = join(world.folder, 'offset');
  writeFileSync(offsetFile, '0');
  const store = await openStore(world.store, 'write');
  const limited = ([account]: readonly (Account | undefined)[]) => [
    { ...(account as Account), rateLimits: { '*': 0, feeds: limit } }, // the world has it
  ];
  await store.admin.update('account', [world.userId], limited, act);
  await store.close();
  server = await startServer(world, ['--failures-per-second', '0', '--log-level', 'error'], jumpingClock(offsetFile));
});
afterAll(async () => {
  await server.stop();
  world.remove();
});

const statusAt = async (target: string, timestampMs: number): Promise<number> => {
  const response = await fetchSigned(server.url, target, world, timestampMs);
  await response.arrayBuffer();
  return response.status;
};
const latest = (): string => `/api/v1/reports/latest?feedID=${world.feedId}`;

const jumpTo = async (ms: number): Promise<number> => {
  offsetMs = ms;
  writeFileSync(offsetFile, String(ms));
  const startedMs = performance.now();
  for (const pid of processesOf(server.child)) process.kill(pid, 'SIGUSR2');
  while ((await statusAt(latest(), Date.now() + ms)) !== 200);
  return performance.now() - startedMs;
};

test.skipIf(process.platform !== 'linux')(
  `clock jumps: ${jumps} of up to 30 s fail no client that has the server’s time, and no limit`,
  async () => {
    const roll = createRandom(seedOf());
    const counts = { 'right clients': 0, 'of these failed': 0, 'wrong clients': 0, 'not rejected with 400': 0 };
    let [isOver, granted, slowestMs] = [false, 0, 0];
    const startedMs = performance.now();
    const spend = async (): Promise<void> => {
      for (; !isOver; await new Promise((resolve) => setTimeout(resolve, 20)))
        if ((await statusAt('/api/v1/feeds', Date.now() + offsetMs)) === 200) granted += 1;
    };
    const spending = spend();
    for (let i = 0; i < jumps; i++) {
      const next = (roll(2) === 0 ? -1 : 1) * (offsetMs === 0 ? 30_000 : 0);
      slowestMs = Math.max(slowestMs, await jumpTo(next));
      for (const end = performance.now() + betweenMs; performance.now() < end; ) {
        const wrongBy = (roll(2) === 0 ? -1 : 1) * (6_000 + roll(60_000));
        const [right, wrong] = await Promise.all([
          statusAt(latest(), Date.now() + offsetMs),
          statusAt(latest(), Date.now() + offsetMs + wrongBy),
        ]);
        counts['right clients'] += 1;
        counts['wrong clients'] += 1;
        if (right !== 200) counts['of these failed'] += 1;
        if (wrong !== 400) counts['not rejected with 400'] += 1;
      }
    }
    isOver = true;
    await spending;
    const seconds = (performance.now() - startedMs) / 1_000;
    const rightful = limit * (1 + seconds);
    const [slowest, above] = ['ms until a right client is accepted after a jump', 'requests above the rate limit'];
    tally(
      { ...counts, [slowest]: Math.round(slowestMs), [above]: Math.max(0, Math.round(granted - rightful)) },
      { [slowest]: 1_000, [above]: 1 },
    );
    expect(server.child.exitCode).toBe(null);
    expect(counts).toMatchObject({ 'of these failed': 0, 'not rejected with 400': 0 });
    expect(granted).toBeLessThanOrEqual(Math.ceil(rightful) + 1);
    expect(server.child.exitCode).toBe(null);
  },
  3_600_000,
);
