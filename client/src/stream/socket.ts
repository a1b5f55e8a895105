// The interface of a WebSocket that a stream needs.
import type { RawAnswer } from '../request/answer.ts';

export type SocketHandlers = {
  readonly opened: () => void;
  readonly message: (text: string) => void;
  /** A ping or a pong was received. */
  readonly alive: () => void;
  /** The handshake was rejected; the body is cut at 64 KB. */
  readonly refused: (answer: RawAnswer) => void;
  /** The socket has closed; called once. `reason` is for people. */
  readonly closed: (reason: string) => void;
};

export type Socket = {
  readonly pause: () => void;
  readonly resume: () => void;
  /** Sends a ping; `alive` is called with the pong. */
  readonly ping: () => void;
  /** The handshake has timed out: calls `refused` if it is being rejected, with as much of the body as has arrived. */
  readonly expire: () => void;
  readonly close: () => void;
};

/** Opens a socket; the caller limits the time of the handshake. */
export type OpenSocket = (url: string, headers: Readonly<Record<string, string>>, handlers: SocketHandlers) => Socket;
