// Where attackers meet a server: connections that are never closed from our side, from addresses of their own, and a clock that stops.
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type SecureVersion } from 'node:tls';
import { signLive } from '../support/live-clients.ts';
import { toLines } from '../support/raw-http.ts';
import type { Credentials } from '../support/running-api.ts';

export type Targets = Readonly<Record<'latest' | 'page' | 'socket' | 'events', string>> & {
  /** The most costly arguments of every route that reads much. */
  readonly expensive: readonly string[];
};

export type GroundOptions = {
  readonly port: number;
  readonly opsPort: number;
  readonly isTls: boolean;
  /** Linux takes every address of 127.0.0.0/8 as its own. */
  readonly address: string;
  readonly account: Credentials;
  readonly targets: Targets;
  /** Of an event nearly as far back as a stream may resume. */
  readonly lastEventId: string;
};

type OpenOptions = {
  readonly maxVersion?: SecureVersion;
  /** Where it comes from; the attack's own address when absent. */
  readonly address?: string;
};

export type Ground = ReturnType<typeof createGround>;

export const createGround = ({ port, opsPort, isTls, address, account, targets, lastEventId }: GroundOptions) => {
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  let isOver = false;
  const keep = <S extends Socket>(socket: S): S => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const dial = (to: number, more: object = {}): Socket =>
    keep(connect({ host: '127.0.0.1', port: to, localAddress: address, allowHalfOpen: true, ...more }));
  const secure = (socket: Socket, maxVersion: SecureVersion = 'TLSv1.3'): Socket =>
    keep(connectTls({ socket, rejectUnauthorized: false, maxVersion }));
  return {
    targets,
    lastEventId,
    /** A TCP connection to the public listener. */
    raw: (): Socket => dial(port),
    /** A connection that a request can be written to: over TLS where the listener has it. */
    open: ({ maxVersion, address: from = address }: OpenOptions = {}): Socket => {
      const socket = dial(port, { localAddress: from });
      return isTls ? secure(socket, maxVersion) : socket;
    },
    /** The same, which takes one byte whenever it is resumed. Over TLS one read of the connection below. */
    openSlow: (): Socket => {
      if (isTls) return secure(dial(port)).pause();
      const socket: Socket = dial(port, { onread: { buffer: Buffer.alloc(1), callback: () => !socket.pause() } });
      return socket;
    },
    ops: (): Socket => dial(opsPort),
    sign: (target: string): readonly string[] => toLines(signLive(target, account)),
    /** Does something until the attack is over. */
    every: (ms: number, act: () => unknown): void => {
      if (isOver) return;
      act();
      timers.add(setInterval(act, ms));
    },
    /** Nothing more is done. Connections stay as they are, but for those that the system is still trying to open, for minutes if need be. */
    stop: (): void => {
      isOver = true;
      for (const timer of timers) clearInterval(timer);
      for (const socket of sockets) if (socket.connecting) socket.destroy();
    },
    /** Connections that the server has not ended. */
    left: (): number => sockets.size,
    close: (): void => {
      for (const socket of sockets) socket.destroy();
    },
  };
};
