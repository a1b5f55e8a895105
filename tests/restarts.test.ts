// Restarts under load with the real program: open connections lose nothing to a drain, and clients that keep the retry rules of the
// specification see no failure of a rolling restart.
import { connect } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOf, tally as tallyFound } from './support/full-count.ts';
import { head, openKeepAlive, toLines } from './support/raw-http.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from './support/real-program.ts';

type Node = { readonly world: World; server: Server };

const nodes: Node[] = [];

// However busy this machine is, requests are not to be shed here.
const serve = (world: World, args: readonly string[] = []): Promise<Server> =>
  startServer(world, ['--log-level', 'warn', ...args]);

beforeAll(async () => {
  const worlds = await Promise.all([createWorld(), createWorld()]);
  nodes.push(...(await Promise.all(worlds.map(async (world) => ({ world, server: await serve(world) })))));
});
afterAll(async () => {
  await Promise.all(nodes.map(({ server }) => server.stop()));
  for (const { world } of nodes) world.remove();
});

/** What became of the requests on open connections. `lost` were written and not answered. */
type Connections = { answered: number; announced: number; closedIdle: number; readonly lost: string[] };

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Asks on one connection as fast as answers come, until the server ends it. */
const askUntilClosed = async (port: number, world: World, offset: number, tally: Connections, onAnswer: () => void) => {
  const socket = connect(port, '127.0.0.1');
  let ended = false;
  socket.on('end', () => {
    ended = true;
  });
  const connection = openKeepAlive(socket);
  const { userId, secret, feedId } = world;
  for (let i = offset; ; i++) {
    await nextTurn(); // so that an end that has come is seen before the next request is written
    if (ended) {
      tally.closedIdle += 1;
      return;
    }
    const seconds = Math.floor(Date.now() / 1_000);
    const span = `from=${seconds - 60}&to=${seconds}`;
    // One route answers at once, the other waits for the store.
    const target =
      i % 2 ? `/api/v1/reports/latest?feedID=${feedId}` : `/api/v1/reports/coverage?feedID=${feedId}&${span}`;
    const auth = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
    try {
      const { status, headers } = await connection.ask(head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(auth)));
      if (status !== 200) tally.lost.push(`status ${status}`);
      tally.answered += 1;
      onAnswer();
      if (headers.connection !== 'close') continue;
      tally.announced += 1;
      return connection.close();
    } catch (error) {
      tally.lost.push(String(error));
      return;
    }
  }
};

test.each([
  ['of one process', []],
  ['of two workers', ['--workers', '2']],
] as const)(
  'restarts: SIGTERM under load loses no request on the open connections %s',
  // A machine that stalls for longer than the server waits for a last request may lose that one; hardly twice.
  { timeout: 300_000, retry: 1 },
  async (_, args) => {
    const world = await createWorld();
    const server = await serve(world, args);
    const tally: Connections = { answered: 0, announced: 0, closedIdle: 0, lost: [] };
    let finished: ReturnType<Server['stop']> | undefined;
    const onAnswer = (): void => {
      if (tally.answered === 320) finished = server.stop();
    };
    const asking = Array.from({ length: 16 }, (_, i) => askUntilClosed(server.port, world, i, tally, onAnswer));
    await Promise.all(asking);
    const { code } = await (finished ?? server.stop());
    world.remove();
    expect(tally.lost).toEqual([]);
    expect(tally.announced + tally.closedIdle).toBe(16);
    expect(code).toBe(0);
  },
);

type Tally = { answered: number; retried: number; readonly failed: string[] };

const attemptsMax = 6;
const backoffMs = 25;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One request as the specification has clients do it: 5xx and network errors again with growing pauses, here on the next node. */
const askWithRetries = async (i: number, tally: Tally): Promise<void> => {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const { world, server } = nodes[(i + attempt) % nodes.length] as Node; // there are two
    const target = `/api/v1/reports/latest?feedID=${world.feedId}`;
    const outcome = await fetchSigned(server.url, target, world)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((error: unknown) => ({ status: 0, text: String(error) }));
    if (outcome.status === 200 && outcome.text.endsWith('"}}')) {
      tally.answered += 1;
      return;
    }
    // Neither half an answer nor a refusal is anything to retry.
    if (outcome.status !== 0 && outcome.status < 500) {
      tally.failed.push(`${outcome.status} ${outcome.text}`);
      return;
    }
    tally.retried += 1;
    await pause(backoffMs * 2 ** attempt);
  }
  tally.failed.push('given up');
};

const restarts = countOf(2, 50);
/** Requests answered between two changes. */
const atLeast = countOf(50, 200);

test(`restarts: two nodes restarted in turn under load, ${restarts} times, fail no request, and end cleanly`, async () => {
  const tally: Tally = { answered: 0, retried: 0, failed: [] };
  let over = false;
  const client = async (offset: number): Promise<void> => {
    for (let i = offset; !over; i++) {
      await askWithRetries(i, tally);
      await pause(backoffMs); // some 300 requests a second are load enough
    }
  };
  const clients = Promise.all(Array.from({ length: 8 }, (_, i) => client(i)));
  const progressed = async (): Promise<void> => {
    const before = tally.answered;
    await expect.poll(() => tally.answered).toBeGreaterThan(before + atLeast);
  };
  const codes: (number | null)[] = [];
  let slowestMs = 0;
  for (let i = 0; i < restarts; i++) {
    const node = nodes[i % nodes.length] as Node; // there are two
    await progressed();
    const startedMs = performance.now();
    codes.push((await node.server.stop()).code);
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    await progressed();
    node.server = await serve(node.world);
  }
  await progressed();
  over = true;
  await clients;
  tallyFound(
    { answered: tally.answered, 'attempts retried': tally.retried, 'ms until a node ended': Math.round(slowestMs) },
    { 'ms until a node ended': 10_000 },
  );
  expect(tally.failed).toEqual([]);
  expect(codes).toEqual(codes.map(() => 0));
}, 3_600_000);
