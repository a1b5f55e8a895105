import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createReadTurns, type TurnSocket, turnRequests } from './read-turns.ts';
import { openHttpServer } from './server.ts';

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
  const turns = createReadTurns(false);
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
  const turns = createReadTurns(false);
  const { socket, taken } = createSockets();
  const sockets = Array.from({ length: 20 }, (_, i) => socket(i));
  turns.accepted();
  for (const one of sockets) turns.begin(one, 0);
  await setImmediate();
  const paused = Array.from({ length: 12 }, (_, i) => `-${i + turnRequests.accepting}`);
  expect(taken()).toEqual([...paused, ...Array.from({ length: 8 }, (_, i) => `+${i + 8}`)]);
  turns.accepted();
  turns.begin(sockets[0] as TurnSocket, 0); // others wait, so it does too
  turns.begin(sockets[8] as TurnSocket, 0);
  await setImmediate();
  expect(taken()).toEqual(['-0', '-8', '+16', '+17', '+18', '+19', '+0', '+8']);
});

test('read turns: they are long again in the first turn after the one without a new connection', async () => {
  const turns = createReadTurns(false);
  const { socket, taken } = createSockets();
  turns.accepted();
  await setImmediate();
  await setImmediate(); // nothing came in this one
  for (let i = 0; i < 20; i++) turns.begin(socket(i), 0);
  await setImmediate();
  expect(taken()).toEqual([]);
});

test('read turns: a connection waits once, however many requests it sent together', async () => {
  const turns = createReadTurns(false);
  const { socket, taken } = createSockets();
  const one = socket('a');
  turns.accepted();
  for (let i = 0; i < 30; i++) turns.begin(one, 0);
  await setImmediate();
  expect(taken()).toEqual(['-a', '+a']);
});

test('read turns: a connection that Node reads although it waits is paused again, and keeps its place', async () => {
  const turns = createReadTurns(false);
  const { socket, taken } = createSockets();
  const sockets = Array.from({ length: 20 }, (_, i) => socket(i));
  turns.accepted();
  for (const one of sockets) turns.begin(one, 1);
  await setImmediate();
  taken();
  turns.accepted();
  for (const one of sockets.slice(18)) one.resume(); // as Node does
  taken();
  expect(turns.begin(sockets[18] as TurnSocket, 2)).toBe(0);
  expect(turns.begin(sockets[19] as TurnSocket, 4)).toBe(2);
  await setImmediate();
  expect(taken()).toEqual(['-18', '-19', '+16', '+17', '+18', '+19']);
});

test('read turns: over TLS more requests fit a turn with a handshake, and its time is no request’s', async () => {
  const turns = createReadTurns(true);
  const { socket, taken } = createSockets();
  turns.accepted();
  for (let i = 0; i < turnRequests.handshaking; i++) turns.begin(socket(i), 0);
  turns.accepted();
  expect(turns.begin(socket('last'), 3)).toBe(0);
  await setImmediate();
  expect(taken()).toEqual(['-last', '+last']);
});

test('read turns: while a server stops, no connection waits', async () => {
  const turns = createReadTurns(false);
  const { socket, taken } = createSockets();
  turns.accepted();
  for (let i = 0; i < 30; i++) turns.begin(socket(i), 0);
  await Promise.resolve();
  turns.drain();
  await setImmediate();
  expect(taken().filter((note) => note.startsWith('+'))).toHaveLength(22);
  turns.accepted();
  for (let i = 0; i < 2_000; i++) turns.begin(socket(i), 0);
  await setImmediate();
  expect(taken()).toEqual([]);
});

test('read turns: a request has waited since its turn began, or since its connection was last read, in time of requests', async () => {
  const turns = createReadTurns(false);
  const { socket } = createSockets();
  const [first, last] = [socket('first'), socket('last')];
  expect(turns.begin(first, 1_000)).toBe(0);
  expect(turns.begin(socket('b'), 1_002)).toBe(2);
  expect(turns.begin(socket('c'), 61_002)).toBe(7); // a stall of a minute, of which 5 ms may be a request's
  await setImmediate();
  expect(turns.begin(first, 61_003)).toBe(0);
  turns.accepted();
  for (let i = 1; i <= 10; i++) turns.begin(i === 10 ? last : socket(i), 61_003 + i);
  await setImmediate();
  expect(turns.begin(socket('d'), 61_020)).toBe(0);
  expect(turns.begin(last, 61_023)).toBe(3);
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
  expect(await countBetween(createReadTurns(false))).toBeLessThan(lateCount * 40);
});

test('read turns, control: without them each new connection waits for a request of every busy one', async () => {
  const enough = lateCount * 60;
  let most = 0;
  // Where other tests take the clients' CPU, the busy ones are not ready again in time.
  for (let attempt = 0; attempt < 20 && most <= enough; attempt++) most = Math.max(most, await countBetween(undefined));
  expect(most).toBeGreaterThan(enough);
});
