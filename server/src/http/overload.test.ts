import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type RouteName, routes } from '@sealpost/protocol';
import { afterEach, expect, test, vi } from 'vitest';
import {
  createOverload,
  createReadTurns,
  createRejections,
  heldMax,
  isShed,
  type LoadLevel,
  type TurnSocket,
  turnRequests,
} from './overload.ts';
import { openHttpServer } from './server.ts';
import { openShedding } from './shedding-listener.fixture.ts';

/** Connections that note when they are paused and resumed. */
const createSockets = () => {
  const notes: string[] = [];
  const socket = (name: string | number): TurnSocket => {
    const one = { pause: () => note('-'), resume: () => note('+') };
    let last = '+';
    const note = (sign: string) => {
      if (sign !== last) notes.push(`${sign}${name}`);
      last = sign;
      return one as never; // a socket returns itself, which nobody uses
    };
    return one as never; // as above
  };
  return { socket, taken: () => notes.splice(0) };
};

test('read turns: up to a thousand requests of a turn, no connection waits; those beyond wait for the next turn', async () => {
  const turns = createReadTurns();
  const { socket, taken } = createSockets();
  for (let i = 0; i < turnRequests.otherwise; i++) turns.begin(socket(i), 0);
  turns.begin(socket('a'), 0);
  turns.begin(socket('b'), 0);
  turns.begin(undefined, 0); // handed over
  await Promise.resolve(); // after what runs on the next tick
  await setImmediate();
  expect(taken()).toEqual(['-a', '-b', '+a', '+b']);
  await setImmediate();
  turns.begin(socket('c'), 0);
  await setImmediate();
  expect(taken()).toEqual([]);
});

test('read turns: while connections are accepted, turns are short, and connections are read again in their order', async () => {
  const turns = createReadTurns();
  const { socket, taken } = createSockets();
  const { accepting } = turnRequests;
  const sockets = Array.from({ length: 2 * accepting + 4 }, (_, i) => socket(i));
  const names = (sign: string, from: number, count: number) =>
    Array.from({ length: count }, (_, i) => `${sign}${from + i}`);
  turns.accepted();
  for (const one of sockets) turns.begin(one, 0);
  await setImmediate();
  expect(taken()).toEqual([...names('-', accepting, accepting + 4), ...names('+', accepting, accepting)]);
  turns.accepted();
  turns.begin(sockets[0] as TurnSocket, 0); // others wait, so it does too
  turns.begin(sockets[accepting] as TurnSocket, 0);
  await setImmediate();
  expect(taken()).toEqual(['-0', `-${accepting}`, ...names('+', 2 * accepting, 4), '+0', `+${accepting}`]);
});

test('read turns: they are long again in the first turn after the one without a new connection', async () => {
  const turns = createReadTurns();
  const { socket, taken } = createSockets();
  turns.accepted();
  await setImmediate();
  await setImmediate(); // nothing came in this one
  for (let i = 0; i < 60; i++) turns.begin(socket(i), 0);
  await setImmediate();
  expect(taken()).toEqual([]);
});

test('read turns: a connection waits once, however many requests it sent together', async () => {
  const turns = createReadTurns();
  const { socket, taken } = createSockets();
  const one = socket('a');
  turns.accepted();
  for (let i = 0; i < 60; i++) turns.begin(one, 0);
  await setImmediate();
  expect(taken()).toEqual(['-a', '+a']);
});

test('read turns: a connection that Node reads although it waits is paused again, and keeps its place', async () => {
  const turns = createReadTurns();
  const { socket, taken } = createSockets();
  const sockets = Array.from({ length: 2 * turnRequests.accepting + 4 }, (_, i) => socket(i));
  turns.accepted();
  for (const one of sockets) turns.begin(one, 1);
  await setImmediate();
  taken();
  turns.accepted();
  for (const one of sockets.slice(66)) one.resume(); // as Node does
  taken();
  expect(turns.begin(sockets[66] as TurnSocket, 2)).toBe(0);
  expect(turns.begin(sockets[67] as TurnSocket, 4)).toBe(2);
  await setImmediate();
  expect(taken()).toEqual(['-66', '-67', '+64', '+65', '+66', '+67']);
});

test('read turns: while a server stops, no connection waits', async () => {
  const turns = createReadTurns();
  const { socket, taken } = createSockets();
  turns.accepted();
  for (let i = 0; i < 50; i++) turns.begin(socket(i), 0);
  await Promise.resolve();
  turns.drain();
  await setImmediate();
  expect(taken().filter((note) => note.startsWith('+'))).toHaveLength(18);
  turns.accepted();
  for (let i = 0; i < 2_000; i++) turns.begin(socket(i), 0);
  await setImmediate();
  expect(taken()).toEqual([]);
});

test('read turns: a request has waited since its turn began, or since its connection was last read, in time of requests', async () => {
  const turns = createReadTurns();
  const { socket } = createSockets();
  const [first, last] = [socket('first'), socket('last')];
  expect(turns.begin(first, 1_000)).toBe(0);
  expect(turns.begin(socket('b'), 1_002)).toBe(2);
  expect(turns.begin(socket('c'), 61_002)).toBe(7); // a stall of a minute, of which 5 ms may be a request's
  await setImmediate();
  expect(turns.begin(first, 61_003)).toBe(0);
  turns.accepted();
  for (let i = 1; i <= 34; i++) turns.begin(i === 34 ? last : socket(i), 61_003 + i);
  await setImmediate();
  expect(turns.begin(socket('d'), 61_050)).toBe(0);
  expect(turns.begin(last, 61_053)).toBe(3);
});

/** Clients that ask again at once, and then new ones. */
const clients = `
  const { connect } = require('node:net');
  const [port, busy, late] = process.argv.slice(1).map(Number);
  const open = (path, onAnswer) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(path));
    socket.on('data', () => onAnswer(socket));
    socket.on('error', () => {});
  };
  const head = (name) => 'GET /' + name + ' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n';
  for (let i = 0; i < busy; i++) open(head('busy'), (socket) => socket.write(head('busy')));
  let isBegun = false;
  process.stdin.on('data', () => {
    if (isBegun) return;
    isBegun = true;
    for (let i = 0; i < late; i++) open(head('late'), () => {});
  });
`;

const [busyCount, lateCount] = [120, 20];

const later = (): { readonly promise: Promise<void>; readonly resolve: () => void } => {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
};

/** Busy requests that are handled from the first new connection's to the last one's. */
const countBetween = async (turns: ReturnType<typeof createReadTurns> | undefined): Promise<number> => {
  const counts = { busy: 0, late: 0, busyAtFirst: 0 };
  const isDone = later();
  const isBusy = later();
  const listener = await openHttpServer(
    { host: '127.0.0.1', port: 0, ...(turns && { onAccepted: turns.accepted }) },
    (request, response) => {
      turns?.begin(request.socket, performance.now());
      response.end('answered');
      for (const untilMs = performance.now() + 0.1; performance.now() < untilMs; ); // so that all are ready again when their turn comes
      if (request.url === '/busy') counts.busy += 1;
      else counts.late += 1;
      if (counts.busy === 1_000) isBusy.resolve();
      if (counts.late === 1) counts.busyAtFirst = counts.busy;
      if (counts.late === lateCount) isDone.resolve();
    },
    () => 'id',
  );
  const port = new URL(listener.url).port;
  const child = spawn(process.execPath, ['-e', clients, port, String(busyCount), String(lateCount)], {
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  try {
    await isBusy.promise;
    child.stdin.write('now');
    await isDone.promise;
    return counts.busy - counts.busyAtFirst;
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await listener.close(0);
  }
};

test('read turns: new connections are accepted while hundreds are busy, each after a few requests and not after one of each', async () => {
  expect(await countBetween(createReadTurns())).toBeLessThan(lateCount * 40);
});

test('read turns, control: without them each new connection waits for a request of every busy one', async () => {
  const enough = lateCount * 60;
  let most = 0;
  // Where other tests take the clients' CPU, the busy ones are not ready again in time.
  for (let attempt = 0; attempt < 20 && most <= enough; attempt++) most = Math.max(most, await countBetween(undefined));
  expect(most).toBeGreaterThan(enough);
});

const eventLoopLagMaxMs = 300;

/** The levels for requests that waited so long, one after the other at the same moment. */
const levelsAt = (judge: ReturnType<typeof createOverload>, nowMs: number, ...waits: readonly number[]) =>
  waits.map((waitedMs) => judge(waitedMs, nowMs));

test('shedding: nothing is shed up to the bound', () => {
  expect(levelsAt(createOverload(eventLoopLagMaxMs), 0, 0, 100, 299, 300)).toEqual([0, 0, 0, 0]);
});

test('shedding: beyond the bound, who waited for a third of it is shed if its request is expensive, for half of it in any case', () => {
  const judge = createOverload(eventLoopLagMaxMs);
  expect(levelsAt(judge, 0, 301)).toEqual([2]);
  expect(levelsAt(judge, 1, 0, 100, 101, 150, 151, 300)).toEqual([0, 0, 1, 1, 2, 2]);
});

test('shedding: it lasts until nothing waited for half of the bound for a second, whatever waited for a third', () => {
  const judge = createOverload(eventLoopLagMaxMs);
  expect(levelsAt(judge, 5_000, 301)).toEqual([2]);
  expect(levelsAt(judge, 6_000, 101, 151)).toEqual([1, 2]);
  expect(levelsAt(judge, 7_000, 100, 101)).toEqual([0, 1]);
  expect(levelsAt(judge, 7_001, 101, 151, 300)).toEqual([0, 0, 0]);
});

test('shedding: the clock and the status are never shed, single reports last', () => {
  const shedAt = (level: LoadLevel) => (Object.keys(routes) as RouteName[]).filter((route) => isShed(route, level)); // the table's own keys
  expect(shedAt(0)).toEqual([]);
  expect(shedAt(1)).not.toContain('reportLatest');
  expect(shedAt(1)).not.toContain('reportAt');
  expect(shedAt(1)).toEqual(
    expect.arrayContaining(['reportCandles', 'reportCandlesMany', 'reportCoverage', 'reportPage', 'reportBulk']),
  );
  expect(Object.keys(routes).filter((route) => !shedAt(2).includes(route as RouteName))).toEqual(['time', 'status']); // as above
});

afterEach(() => void vi.useRealTimers());

const open = () => {
  vi.useFakeTimers();
  const rejected: number[] = [];
  const state = { isUrgent: false };
  const add = createRejections<number>(
    () => Date.now(),
    () => state.isUrgent,
    (shed) => void rejected.push(shed),
  );
  const addMany = (count: number): void => {
    for (let i = 0; i < count; i++) add(i);
  };
  return { rejected, state, addMany };
};

test('rejections: a few are sent at once', () => {
  const { rejected, addMany } = open();
  addMany(4);
  vi.advanceTimersByTime(20);
  expect(rejected).toEqual([0, 1, 2, 3]);
  expect(vi.getTimerCount()).toBe(0);
});

test('rejections: thousands go out in their order, evenly, within four seconds', () => {
  const { rejected, addMany } = open();
  addMany(4_000);
  expect(rejected).toEqual([]);
  for (let second = 1; second < 4; second++) {
    vi.advanceTimersByTime(1_000);
    expect(rejected).toHaveLength(1_000 * second);
  }
  vi.advanceTimersByTime(1_020);
  expect(rejected).toEqual(Array.from({ length: 4_000 }, (_, i) => i));
  expect(vi.getTimerCount()).toBe(0);
});

test('rejections: where the load stays, none waits for more than four seconds', () => {
  const { rejected, state, addMany } = open();
  for (let ms = 0; ms < 20_000; ms += 20) {
    addMany(20); // a thousand a second
    vi.advanceTimersByTime(20);
  }
  const held = 20_000 - rejected.length;
  expect(held / 1_000).toBeGreaterThan(3);
  expect(held / 1_000).toBeLessThanOrEqual(4);
  state.isUrgent = true;
  vi.advanceTimersByTime(20);
  expect(rejected).toHaveLength(20_000);
});

test('rejections: more than can be held are rejected at once, and all when the server stops', () => {
  const { rejected, state, addMany } = open();
  addMany(heldMax + 3);
  expect(rejected).toHaveLength(3);
  state.isUrgent = true;
  addMany(1);
  expect(rejected).toHaveLength(4);
  vi.advanceTimersByTime(20);
  expect(rejected).toHaveLength(heldMax + 4);
});

test('rejections: a client that leaves while its rejection is held back is counted, and a server that stops rejects at once', async () => {
  const { listener, events, state } = await openShedding();
  const { port } = new URL(listener.url);
  const ask = (path: string): Socket => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(60));
    return socket.on('error', () => {});
  };
  try {
    const leaving = Array.from({ length: 60 }, () => ask('/api/v1/feeds'));
    await expect.poll(() => events.length).toBeGreaterThan(0);
    for (const socket of leaving) socket.destroy();
    await expect.poll(() => events.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(60);
    const waiting = Array.from({ length: 40 }, () => fetch(`${listener.url}/api/v1/feeds`));
    state.isDraining = true;
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
      answers.map(() => [503, '1']),
    );
    expect(new Set(events.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(['503 overloaded']));
  } finally {
    await listener.close(0);
  }
});
