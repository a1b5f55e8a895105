// Readers of live reports for benchmarks, by hand over plain sockets: they share the machine with what is measured, so they cost as little as they
// can. All frames have the same length, so counting bytes is enough.
import type { ChildProcess } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import type { LiveSent, LiveTargetRequest } from '../programs/live-target.ts';
import { startProgram } from './target.ts';

export type LiveTarget = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly userId: string;
  readonly secret: string;
  readonly feedIds: readonly string[];
};

/** Starts a server in its own process: a whole node, or bare `ws`. */
export const startLiveTarget = (mode: 'api' | 'bare'): Promise<LiveTarget> =>
  startProgram('live-target', [mode], ['--expose-gc']);

export const askTarget = <T>({ child }: LiveTarget, request: LiveTargetRequest): Promise<T> =>
  new Promise((resolve) => {
    child.once('message', (told) => resolve(told as T));
    child.send(request);
  });

export const stopLiveTarget = ({ child }: LiveTarget): Promise<void> =>
  new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });

/** Takes the bytes of frames as they arrive. */
type Hear = (reader: number, bytes: number) => void;

/** One for all sockets: what arrives is only counted. */
const scratch = Buffer.allocUnsafeSlow(262_144);

/** A signature opens one connection, and several are opened within a millisecond: their targets differ. */
const handshakeOf = ({ userId, secret, feedIds }: LiveTarget, reader: number): string => {
  const target = `/api/v1/ws?feedIDs=${feedIds.join(',')}&reader=${reader}`;
  const auth = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
  const lines = Object.entries(auth).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${lines.join('')}\r\n`;
};

const subscribe = (target: LiveTarget, reader: number, hear: Hear): Promise<Socket> =>
  new Promise((resolve, reject) => {
    let answer: string | undefined = '';
    const readAnswer = (text: string): void => {
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      if (!text.startsWith('HTTP/1.1 101 ')) return void reject(new Error(text));
      answer = undefined;
      resolve(socket);
      if (text.length > end + 4) hear(reader, text.length - end - 4);
    };
    const onread = {
      buffer: scratch,
      callback: (bytes: number): boolean => {
        if (answer === undefined) hear(reader, bytes);
        else {
          answer += scratch.toString('latin1', 0, bytes);
          readAnswer(answer);
        }
        return true;
      },
    };
    const socket = connect({ port: Number(new URL(target.url).port), host: '127.0.0.1', onread });
    socket.on('error', reject);
    socket.write(handshakeOf(target, reader));
  });

const handshakesAtOnce = 32;

/** Opens so many connections; they are numbered from 0. */
export const openReaders = async (target: LiveTarget, count: number, hear: Hear): Promise<readonly Socket[]> => {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const next = Math.min(handshakesAtOnce, count - sockets.length);
    const from = sockets.length;
    sockets.push(...(await Promise.all(Array.from({ length: next }, (_, i) => subscribe(target, from + i, hear)))));
  }
  return sockets;
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const nowNs = (): number => Number(process.hrtime.bigint());

/** Bytes of a frame of the bench's reports: those of two signatures, and of the JSON around them. */
const frameBytesOf = async (target: LiveTarget): Promise<number> => {
  let bytes = 0;
  const [socket] = await openReaders(target, 1, (_, more) => {
    bytes += more;
  });
  await askTarget(target, 'send');
  await pause(500);
  socket?.destroy();
  await pause(50);
  return bytes / target.feedIds.length;
};

/** Milliseconds from the start of an append, and from its commit, to each delivered message, ascending. */
export type Delays = { readonly sinceBegun: Float64Array; readonly sinceStored: Float64Array };

export type RoundRules = {
  readonly readers: number;
  /** Every so many readers read at once and note the time; the others read after them. */
  readonly every: number;
  readonly request: 'send' | 'sendOne';
  readonly rounds: number;
  readonly roundMs: number;
  /** Called when the warm-up is over, and after the last round. */
  readonly onMeasured?: (when: 'begun' | 'over') => void;
};

const warmUpRounds = 3;

/** Notes when each message has fully arrived at each reader that counts. */
const createArrivals = (readers: number, frameBytes: number) => {
  const received = new Float64Array(readers);
  const arrivals: number[] = [];
  let counts: (reader: number) => boolean = () => true;
  let missing = 0;
  let whenAll = (): void => {};
  return {
    arrivals,
    hear: (reader: number, bytes: number): void => {
      const before = Math.floor((received[reader] as number) / frameBytes); // one for each
      received[reader] = (received[reader] as number) + bytes;
      if (!counts(reader)) return;
      const whole = Math.floor((received[reader] as number) / frameBytes) - before;
      const now = nowNs();
      for (let i = 0; i < whole; i++) arrivals.push(now);
      missing -= whole;
      if (missing === 0) whenAll();
    },
    /** Resolves once so many messages have arrived at the readers that count. */
    next: (messages: number, which: (reader: number) => boolean): Promise<void> => {
      arrivals.length = 0;
      missing = messages;
      counts = which;
      return new Promise((resolve) => {
        whenAll = resolve;
      });
    },
    /** Messages that have arrived, at all readers. */
    total: (): number => Math.floor(received.reduce((sum, bytes) => sum + bytes, 0) / frameBytes),
  };
};

/** Sends reports in rounds and measures when they arrive. Throws if one does not arrive, or arrives twice. */
export const measureDelays = async (target: LiveTarget, rules: RoundRules): Promise<Delays> => {
  const { readers, every, request, rounds, roundMs, onMeasured } = rules;
  const perRound = request === 'send' ? target.feedIds.length : 1;
  const timed = Math.ceil(readers / every);
  const arrivals = createArrivals(readers, await frameBytesOf(target));
  const sockets = await openReaders(target, readers, arrivals.hear);
  await pause(500);
  const sinceBegun: number[] = [];
  const sinceStored: number[] = [];
  for (let i = -warmUpRounds; i < rounds; i++) {
    if (i === 0) onMeasured?.('begun');
    for (const [reader, socket] of sockets.entries()) if (reader % every !== 0) socket.pause();
    const all = arrivals.next(timed * perRound, (reader) => reader % every === 0);
    const [{ begun, stored }] = await Promise.all([askTarget<LiveSent>(target, request), all]);
    for (const at of i < 0 ? [] : arrivals.arrivals) {
      sinceBegun.push((at - begun) / 1e6);
      sinceStored.push((at - stored) / 1e6);
    }
    for (const socket of sockets) socket.resume();
    await pause(roundMs);
  }
  onMeasured?.('over');
  const expected = (rounds + warmUpRounds) * perRound * readers;
  if (arrivals.total() !== expected) throw new Error(`${arrivals.total()} of ${expected} messages arrived.`);
  for (const socket of sockets) socket.destroy();
  await pause(200);
  return { sinceBegun: Float64Array.from(sinceBegun).sort(), sinceStored: Float64Array.from(sinceStored).sort() };
};

export const quantile = (sorted: Float64Array, q: number): number =>
  sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN;
