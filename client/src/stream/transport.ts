// The interface of a transport: one connection, from the request to its end. Three files implement it.
import { type RawAnswer, toError } from '../request/answer.ts';
import type { Requester } from '../request/requester.ts';
import type { Valve } from './queue.ts';
import type { ReceivedReport } from './received-report.ts';

/** What a connection tells while it lasts. */
export type ConnectionHandlers = {
  readonly opened: () => void;
  /** So many bytes came. */
  readonly received: (bytes: number) => void;
  readonly report: (report: ReceivedReport, position: string | undefined) => void;
  /** The server cannot go on where the last connection ended; it goes on from `position`. */
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
  readonly fetch: typeof fetch;
  readonly nowMs: () => number;
  /** Where to go on, as the server called it; only where a transport knows positions. */
  readonly position: string | undefined;
  readonly valve: Valve;
  /** Nothing at all for so long means dead; milliseconds. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
};

/** Runs one connection. Resolves with why it ended, in words; rejects with the typed error of a refusal. */
export type Transport = (request: ConnectionRequest, handlers: ConnectionHandlers) => Promise<string>;

/** How long the answer to the request may take; milliseconds. */
export const handshakeMs = 10_000;

const originHeader = 'X-Cll-Origin';

export const originHeaders = (origin: string | undefined): Readonly<Record<string, string>> =>
  origin === undefined ? {} : { [originHeader]: origin };

/** The typed error of a refused request. */
export const toRefusal = (answer: RawAnswer, url: string, nowMs: () => number): Error =>
  toError(answer, new URL(url).host, nowMs());

/** Rings after `ms` without `touch`; silent while stopped. */
export const createWatchdog = (ms: number, ring: () => void) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => clearTimeout(timer);
  const touch = (): void => {
    stop();
    timer = setTimeout(ring, ms);
  };
  return { touch, stop };
};
