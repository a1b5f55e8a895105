// The interface of a WebSocket, as far as a stream needs it.
import type { RawAnswer } from '../request/answer.ts';

export type SocketHandlers = {
  readonly opened: () => void;
  readonly message: (text: string) => void;
  /** Something came that is no message: a ping, or the answer to one. */
  readonly alive: () => void;
  /** The handshake was answered with a status; `body` is cut at 64 KB. */
  readonly refused: (answer: RawAnswer) => void;
  /** It is over, told once; `reason` is for people. */
  readonly closed: (reason: string) => void;
};

export type Socket = {
  readonly pause: () => void;
  readonly resume: () => void;
  /** Asks for a sign of life; `alive` tells it. */
  readonly ping: () => void;
  readonly close: () => void;
};

export type OpenSocket = (
  url: string,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
  handlers: SocketHandlers,
) => Socket;
