// 1,000 subscribers of 24 streams, a report of each twice a second: how long until all have it, what a delivered message costs against the
// `ws` package that sends the same bytes with no logic, and what a connection that waits takes.
import type { ChildProcess } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import type { Measurement } from './measure.ts';
import { startProgram } from './processes/target.ts';
import type { LiveTargetRequest, LiveUsage } from './programs/live-target.ts';

type Target = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly userId: string;
  readonly secret: string;
  readonly feedIds: readonly string[];
};

const subscribers = 1_000;
const warmUpRounds = 2;
const rounds = 12;
const roundMs = 500;

const startTarget = (mode: 'api' | 'bare'): Promise<Target> => startProgram('live-target', [mode], ['--expose-gc']);

const ask = <T>({ child }: Target, request: LiveTargetRequest): Promise<T> =>
  new Promise((resolve) => {
    child.once('message', (told) => resolve(told as T));
    child.send(request);
  });

/** Hears of bytes as they come: all frames have the same length, so that counting bytes is enough. */
type Hear = (subscriber: number, bytes: number) => void;

/** A handshake by hand, so that the readers cost as little as they can: they share the machine with what is measured. */
const subscribe = ({ url, userId, secret, feedIds }: Target, subscriber: number, hear: Hear): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const target = `/api/v1/ws?feedIDs=${feedIds.join(',')}`;
    const auth = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
    const lines = Object.entries(auth).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', reject);
    let answer = '';
    const readAnswer = (chunk: Buffer): void => {
      answer += chunk.toString('latin1');
      if (!answer.includes('\r\n\r\n')) return;
      socket.off('data', readAnswer);
      if (answer.startsWith('HTTP/1.1 101 ')) {
        socket.on('data', (frames: Buffer) => hear(subscriber, frames.length));
        resolve(socket);
      } else reject(new Error(answer));
    };
    socket.on('data', readAnswer);
    socket.write(
      `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${lines.join('')}\r\n`,
    );
  });

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const nowNs = (): number => Number(process.hrtime.bigint());

/** Notes when each message was whole at each subscriber; a round is over when all have all. */
const createWatch = (perRound: number, frameBytes: number) => {
  const received = new Float64Array(subscribers);
  const arrivals: number[] = [];
  let missing = 0;
  let whenAll = (): void => {};
  return {
    hear: (subscriber: number, bytes: number): void => {
      const before = Math.floor((received[subscriber] as number) / frameBytes); // one for each
      received[subscriber] = (received[subscriber] as number) + bytes;
      const whole = Math.floor((received[subscriber] as number) / frameBytes) - before;
      const now = nowNs();
      for (let i = 0; i < whole; i++) arrivals.push(now);
      missing -= whole;
      if (missing === 0) whenAll();
    },
    round: (): Promise<void> => {
      arrivals.length = 0;
      missing = subscribers * perRound;
      return new Promise((resolve) => {
        whenAll = resolve;
      });
    },
    arrivals,
  };
};

/** Bytes of a frame of the bench's reports: those of two signatures, and of the JSON around them. */
const frameBytesOf = async (target: Target): Promise<number> => {
  let bytes = 0;
  const socket = await subscribe(target, 0, (_, more) => {
    bytes += more;
  });
  await ask(target, 'send');
  await pause(roundMs);
  socket.destroy();
  await pause(50);
  return bytes / target.feedIds.length;
};

type Figures = { readonly cpuPerMessage: number; readonly bytesPerSocket: number; readonly delays: Float64Array };

const measure = async (mode: 'api' | 'bare'): Promise<Figures> => {
  const target = await startTarget(mode);
  const perRound = target.feedIds.length;
  const watch = createWatch(perRound, await frameBytesOf(target));
  const before = await ask<LiveUsage>(target, 'usage');
  const sockets: Socket[] = [];
  for (let i = 0; i < subscribers; i++) sockets.push(await subscribe(target, i, watch.hear));
  await pause(500);
  const idle = await ask<LiveUsage>(target, 'usage');
  const delays = new Float64Array(rounds * perRound * subscribers);
  let begin = idle;
  for (let i = -warmUpRounds; i < rounds; i++) {
    if (i === 0) begin = await ask<LiveUsage>(target, 'usage');
    const all = watch.round();
    const [begun] = await Promise.all([ask<number>(target, 'send'), all, pause(roundMs)]);
    if (i >= 0)
      for (const [j, at] of watch.arrivals.entries()) delays[i * watch.arrivals.length + j] = (at - begun) / 1e6;
  }
  const end = await ask<LiveUsage>(target, 'usage');
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => {
    target.child.once('exit', resolve);
    target.child.kill('SIGTERM');
  });
  return {
    cpuPerMessage: (end.cpu - begin.cpu) / delays.length,
    bytesPerSocket: (idle.bytes - before.bytes) / subscribers,
    delays: delays.sort(),
  };
};

export const benchLive = async (): Promise<readonly Measurement[]> => {
  const bare = await measure('bare');
  const api = await measure('api');
  const quantile = (delays: Float64Array, q: number): number => delays[Math.floor((delays.length - 1) * q)] as number; // within
  const perKiB = (bytes: number): number => bytes / 1_024;
  const note = `${subscribers} subscribers of 24 streams`;
  return [
    { name: 'stored → delivered, p50', value: quantile(api.delays, 0.5), unit: 'ms', note },
    { name: 'stored → delivered, p99', value: quantile(api.delays, 0.99), unit: 'ms', note },
    {
      name: 'sent → delivered by bare ws, p99',
      value: quantile(bare.delays, 0.99),
      unit: 'ms',
      note: 'nothing is stored',
    },
    { name: 'CPU per delivered message', value: api.cpuPerMessage, unit: 'µs', note: 'storing it included' },
    { name: 'CPU per message of bare ws', value: bare.cpuPerMessage, unit: 'µs' },
    { name: 'ratio to bare ws', value: api.cpuPerMessage / bare.cpuPerMessage, unit: '×' },
    { name: 'memory of an idle socket', value: perKiB(api.bytesPerSocket), unit: 'KiB' },
    {
      name: 'memory of an idle socket beyond that of bare ws',
      value: perKiB(api.bytesPerSocket - bare.bytesPerSocket),
      unit: 'KiB',
    },
  ];
};
