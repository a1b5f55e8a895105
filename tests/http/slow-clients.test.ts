// Clients that are slow on purpose, many at once: a head or a body that trickles, an answer that is not read. All of them are closed in time, and a
// client beside them is answered.
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import { buildPrograms, type Programs } from '../faults/programs.ts';
import { bystanderProgram, startBystander } from '../hostile/bystander.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { head, toLines } from '../support/raw-http.ts';
import { createWorld, type Server, startProgram, startServer, type World } from '../support/real-program.ts';
import { createSignedReports } from '../support/signed-reports.ts';

const connections = countOf(20, 1_000);
/** For as long as they may be slow, others are watched; in full, or the 99th percentile of a few requests would be chance. */
const [beforeMs, duringMs] = connections > 100 ? [10_000, 15_000] : [2_000, 5_000];
/** They come one after the other, as those of slowhttptest do: a thousand requests for a page at once are load, however they are read. */
const arrivalMs = 5;
/** None may be open for longer; what is left then is counted. */
const patienceMs = 20_000;
let world: World;
let server: Server;
let programs: Programs;

beforeAll(async () => {
  programs = await buildPrograms([bystanderProgram]);
  world = await createWorld();
  const { report } = await createSignedReports();
  const store = await openStore(world.store, 'write');
  const from = Math.floor(Date.now() / 1_000) - 5_000;
  await store.reports.append(Array.from({ length: 1_000 }, (_, i) => report(world.feedId, from + i, from + i)));
  await store.close();
  server = await startServer(world, ['--log-level', 'silent']);
});
afterAll(async () => {
  await server.stop();
  programs.remove();
  world.remove();
});

const signed = (target: string): string => {
  const { userId, secret } = world;
  const auth = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
  return head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(auth));
};

/** Some 2 MB: more than a system buffers for a client that does not read, if it asks for many. */
const page = (): string => {
  const from = Math.floor(Date.now() / 1_000) - 5_100;
  return `/api/v1/reports/page?feedID=${world.feedId}&startTimestamp=${from}&limit=1000`;
};

/** What a client sends at first, then every second; `reads` is whether it takes all that comes, or stops at the first bytes. */
type SlowKind = { readonly name: string; readonly first: () => string; readonly next: string; readonly reads: boolean };
const kinds: readonly SlowKind[] = [
  { name: 'slow heads', first: () => 'GET /time HTTP/1.1\r\nHost: a\r\n', next: 'X-A: b\r\n', reads: true },
  {
    name: 'slow bodies',
    first: () => head('POST /time HTTP/1.1', 'Host: a', 'Content-Length: 1000000'),
    next: 'x',
    reads: true,
  },
  {
    name: 'slow readers',
    first: () => signed(page()).repeat(20),
    next: '',
    reads: false,
  },
];

/** Resolves with the ms that it was slow for until the server closed it, or undefined if it did not. */
const beSlow = (port: number, { first, next, reads }: SlowKind): Promise<number | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let startedMs = performance.now();
    const timer = setInterval(() => next !== '' && socket.writable && socket.write(next), 1_000);
    const end = (ms: number | undefined): void => {
      clearInterval(timer);
      clearTimeout(patience);
      socket.destroy();
      resolve(ms);
    };
    const patience = setTimeout(end, patienceMs, undefined);
    // One that does not read is not told of an end: it asks, by a write that fails.
    if (reads) socket.resume();
    else
      socket.once('data', () => {
        socket.pause();
        startedMs = performance.now();
      });
    const probe = reads ? undefined : setInterval(() => socket.writable && socket.write('G'), 500);
    socket.on('error', () => {});
    socket.once('connect', () => socket.write(first()));
    socket.once('close', () => {
      clearInterval(probe);
      end(performance.now() - startedMs);
    });
  });

const attack = async (port: number, kind: SlowKind, count: number) => {
  const closed = await Promise.all(
    Array.from({ length: count }, (_, i) => pause(i * arrivalMs).then(() => beSlow(port, kind))),
  );
  const known = closed.filter((ms) => ms !== undefined);
  return { left: closed.length - known.length, longestMs: Math.round(Math.max(0, ...known)) };
};

/** Alone in full, because times are compared. */
const run = connections > 100 ? test : test.concurrent;

run.each(kinds)(
  `slow clients: $name on ${connections} connections are all closed, and others are answered`,
  async (kind) => {
    const bystander = startBystander(programs, server.url, world.known, world);
    const before = await bystander.watch(beforeMs);
    const attacked = attack(server.port, kind, connections);
    const during = await bystander.watch(duringMs);
    const { left, longestMs } = await attacked;
    bystander.close();
    const [closed, times] = ['ms until the last was closed', `times what the 99th percentile was before, ${kind.name}`];
    tally(
      { [closed]: longestMs, 'requests beside them': during.asked, [times]: during.p99Ms / before.p99Ms },
      { [closed]: 10_000, [times]: kind.name === 'slow readers' ? 4 : 2 }, // they ask for pages of 2 MB, which is load
    );
    expect({ left, answered: during.answered, wrong: during.wrong }).toEqual({
      left: 0,
      answered: during.asked,
      wrong: [],
    });
  },
  120_000,
);

run(
  'slow clients: the control, a server with Node’s defaults, keeps them',
  async () => {
    const program = startProgram(
      [
        '-e',
        'const s=require("http").createServer((q,r)=>q.resume().on("end",()=>r.end())).listen(0,"127.0.0.1",()=>console.log("port "+s.address().port))',
      ],
      process.cwd(),
    );
    const [, port = ''] = await program.printed(/^port (\d+)$/m);
    const { left } = await attack(Number(port), kinds[0] as SlowKind, 3); // there are three
    program.child.kill();
    tallyControl({ 'connections left': left });
    expect(left).toBe(3);
  },
  120_000,
);
