// The interface of a transport: one connection, from the request to its end. Three files implement it.
import { type RawAnswer, toError } from '../request/answer.ts';
import type { Requester } from '../request/requester.ts';
import type { Backpressure } from './queue.ts';
import type { ReceivedReport } from './received-report.ts';

/** Events of a connection. */
export type ConnectionHandlers = {
  readonly opened: () => void;
  /** Bytes received. */
  readonly received: (bytes: number) => void;
  readonly report: (report: ReceivedReport, position: string | undefined) => void;
  /** The server cannot resume where the last connection ended; it continues from `position`. */
  readonly missed: (position: string | undefined) => void;
};

export type ConnectionRequest = {
  /** Scheme, host and port, of the REST API. */
  readonly baseUrl: string;
  /** The same, of WebSockets. */
  readonly wsUrl: string;
  readonly feedIds: readonly string[];
  readonly origin: string | undefined;
  readonly sign: (method: 'GET', target: string) => Promise<Readonly<Record<string, string>>>;
  readonly get: Requester['get'];
  readonly bounds: Requester['bounds'];
  readonly fetch: typeof fetch;
  readonly nowMs: () => number;
  /** The server's position to resume from; only where a transport has positions. */
  readonly position: string | undefined;
  readonly backpressure: Backpressure;
  /** The connection is dead after so long without any data; milliseconds. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
};

/** Runs one connection. Resolves with the reason why it ended; rejects with a typed error when the server rejects it. */
export type Transport = (request: ConnectionRequest, handlers: ConnectionHandlers) => Promise<string>;

/** Time-out of the whole handshake, however much of it arrives; milliseconds. */
export const handshakeMs = 10_000;

/** Why a connection ended whose handshake took too long. */
export const handshakeTimedOut = 'no answer within 10 s';

/** Why a connection ended that was open and received nothing for so long. */
export const silentFor = (silenceMs: number): string => `silent for ${Math.round(silenceMs / 1_000)} s`;

const originHeader = 'X-Cll-Origin';

export const originHeaders = (origin: string | undefined): Readonly<Record<string, string>> =>
  origin === undefined ? {} : { [originHeader]: origin };

/** The typed error of a rejected request. */
export const toRefusal = (answer: RawAnswer, url: string, nowMs: () => number): Error =>
  toError(answer, new URL(url).host, nowMs());

/** Calls `ring` after `ms` without `touch`, unless stopped. */
export function createWatchdog(ms: number, ring: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => clearTimeout(timer);
  const touch = (): void => {
    stop();
    timer = setTimeout(ring, ms);
  };
  return { touch, stop };
}
