// A scripted service: appends and pushes reports, cuts and rejects connections when a test says so. Sockets and fetch are simulated; nothing sleeps.
import type { ReportJson } from '@sealpost/protocol/report-json';
import { toError } from '../request/answer.ts';
import { paths } from '../request/paths.ts';
import type { Requester } from '../request/requester.ts';
import type { OpenSocket, SocketHandlers } from './socket.ts';
import type { StreamState } from './state.ts';
import { openStream, type ReportStream, type StreamOptions } from './stream.ts';
import type { Transport } from './transport.ts';
import { createWebSocketTransport } from './websocket.ts';

export const feedA = `0x0003${'a'.repeat(60)}`;
export const feedB = `0x0003${'b'.repeat(60)}`;
export const secretCanary = 'canary-of-a-secret';

/** A report with a window; its bytes are only unique, not valid. */
export const scriptedReport = (
  feedID: string,
  validFromTimestamp: number,
  observationsTimestamp: number,
): ReportJson => ({
  feedID,
  validFromTimestamp,
  observationsTimestamp,
  fullReport: `0x${observationsTimestamp.toString(16).padStart(64, '0')}`,
});

export type Refusal = {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** Null: the response has no code, as from a server other than Sealpost. */
  readonly code?: string | null;
  readonly details?: Record<string, unknown>;
};

/** One open connection of the client, over either transport. */
export type ScriptedConnection = {
  readonly origin: string | undefined;
  readonly lastEventId: string | undefined;
  readonly push: (report: ReportJson, position?: number) => void;
  /** Sends any text: half an event, a comment. */
  readonly raw: (text: string) => void;
  readonly ping: () => void;
  readonly cut: () => void;
  isPaused: boolean;
  isOpen: boolean;
  /** Pings that the client sent. */
  pings: number;
};

export type ScriptedService = {
  readonly requester: Requester;
  readonly loadSockets: () => Promise<Transport>;
  /** In the order of appending; the position of the first is 1. */
  readonly stored: ReportJson[];
  readonly connections: ScriptedConnection[];
  /** Targets of REST requests, in order. */
  readonly pages: string[];
  /** Every attempt to connect. */
  readonly attempts: {
    readonly url: string;
    readonly origin: string | undefined;
    readonly headers: Readonly<Record<string, string>>;
  }[];
  /** Errors for the next connections, pages or HEAD requests; empty: none. */
  readonly refusals: Refusal[];
  readonly pageRefusals: Refusal[];
  readonly headRefusals: Refusal[];
  /** Origins that do not answer. */
  readonly down: Set<string | undefined>;
  /** Hosts that accept a connection and never answer its request. */
  readonly stalled: Set<string>;
  /** Whether pages have a Link header, as Sealpost's do, and whether pings are answered. */
  readonly manners: { links: boolean; answersPings: boolean };
  /** Appends, and pushes to every open connection unless told otherwise. */
  readonly append: (report: ReportJson, pushed?: boolean) => void;
  readonly live: () => ScriptedConnection[];
};

const answerOf = ({ status, headers = {}, code = 'overloaded', details }: Refusal) => ({
  status,
  headers: new Headers(headers),
  text: JSON.stringify({ error: `Scripted ${status}.`, ...(code !== null && { code, requestId: 'r' }), ...details }),
});

type Script = Pick<
  ScriptedService,
  | 'stored'
  | 'connections'
  | 'pages'
  | 'attempts'
  | 'refusals'
  | 'pageRefusals'
  | 'headRefusals'
  | 'down'
  | 'stalled'
  | 'manners'
>;

/** A service with these origins; none: a plain one. */
export const createScriptedService = (origins: readonly string[] = []): ScriptedService => {
  const script: Script = {
    stored: [],
    connections: [],
    pages: [],
    attempts: [],
    refusals: [],
    pageRefusals: [],
    headRefusals: [],
    down: new Set(),
    stalled: new Set(),
    manners: { links: true, answersPings: false },
  };
  const live = (): ScriptedConnection[] => script.connections.filter(({ isOpen }) => isOpen);
  return {
    ...script,
    requester: createScriptedRequester(script, origins),
    loadSockets: async () => createWebSocketTransport(openScriptedSocket(script)),
    live,
    append: (report, pushed = true) => {
      script.stored.push(report);
      if (pushed) for (const connection of live()) connection.push(report, script.stored.length);
    },
  };
};

const createScriptedRequester = (script: Script, origins: readonly string[]): Requester => ({
  get: async <T>(target: string) => {
    script.pages.push(target);
    // Responses take a turn of the event loop, as over a network.
    await new Promise((resolve) => setImmediate(resolve));
    const refusal = script.pageRefusals.shift();
    if (refusal !== undefined) throw toError(answerOf(refusal), 'scripted', 0);
    const query = new URL(target, 'http://scripted').searchParams;
    const reports = script.stored
      .filter(({ feedID }) => feedID === query.get('feedID'))
      .filter(({ observationsTimestamp }) => observationsTimestamp >= Number(query.get('startTimestamp')))
      .sort((a, b) => a.observationsTimestamp - b.observationsTimestamp);
    const details = { status: 200, requestId: 'r', rateLimit: undefined, serverTimeMs: undefined };
    if (target.startsWith(`${paths.reportLatest}?`)) {
      if (reports.length === 0) throw toError(answerOf({ status: 404, code: null }), 'scripted', 0);
      return { body: { report: reports.at(-1) } as T, details }; // as a report is
    }
    const limit = Number(query.get('limit'));
    const body = { reports: reports.slice(0, limit) } as T; // as a page is
    return { body, details, more: script.manners.links ? reports.length > limit : undefined };
  },
  sign: async () => ({
    headers: { Authorization: 'user', 'X-Authorization-Signature-SHA256': secretCanary },
    key: undefined,
  }),
  renew: async () => false,
  emit: () => {},
  baseUrls: ['http://scripted'],
  wsUrls: ['http://scripted'],
  fetch: (url, init) => scriptedFetch(script, origins, String(url), init ?? {}),
  nowMs: () => 1_000_000,
});

const scriptedFetch = async (
  script: Script,
  origins: readonly string[],
  url: string,
  { method, headers: given, signal }: RequestInit,
): Promise<Response> => {
  const headers = given as Record<string, string>; // the client gives a plain object
  if (method === 'HEAD') {
    const refusal = script.headRefusals.shift();
    if (refusal !== undefined) return new Response(null, refusal);
    return new Response(null, { headers: origins.length > 0 ? { 'X-Cll-Available-Origins': `{${origins}}` } : {} });
  }
  if (!url.includes(`${paths.reportStream}?`)) throw new Error(`Not scripted: ${url}`);
  const origin = headers['X-Cll-Origin'];
  script.attempts.push({ url, origin, headers });
  if (script.stalled.has(new URL(url).host))
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  if (script.down.has(origin)) throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
  const refusal = script.refusals.shift();
  if (refusal !== undefined) {
    const answer = answerOf(refusal);
    return new Response(answer.text, answer);
  }
  return openEventStream(script, origin, headers['Last-Event-ID'], signal as AbortSignal); // the client gives one
};

const openEventStream = (
  script: Script,
  origin: string | undefined,
  lastEventId: string | undefined,
  signal: AbortSignal,
): Response => {
  let controller: ReadableStreamDefaultController<Uint8Array>;
  const encoder = new TextEncoder();
  const raw = (text: string): void => {
    if (connection.isOpen) controller.enqueue(encoder.encode(text));
  };
  const end = (error: Error): void => {
    if (!connection.isOpen) return;
    connection.isOpen = false;
    controller.error(error);
  };
  const connection: ScriptedConnection = {
    origin,
    lastEventId,
    push: (report, position) =>
      raw(`${position === undefined ? '' : `id: ${position}\n`}data: ${JSON.stringify(report)}\n\n`),
    raw,
    ping: () => raw(':\n\n'),
    cut: () => end(new TypeError('terminated')),
    isPaused: false,
    isOpen: true,
    pings: 0,
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start: (given) => {
        controller = given;
      },
    },
    { highWaterMark: 0 },
  );
  signal.addEventListener('abort', () => end(new DOMException('aborted', 'AbortError')));
  script.connections.push(connection);
  if (lastEventId !== undefined)
    script.stored.forEach((report, i) => {
      if (i + 1 > Number(lastEventId)) connection.push(report, i + 1);
    });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
};

const openScriptedSocket =
  (script: Script): OpenSocket =>
  (url, headers, handlers: SocketHandlers) => {
    const origin = headers['X-Cll-Origin'];
    script.attempts.push({ url, origin, headers });
    const message = (text: string): void => {
      if (connection.isOpen) handlers.message(text);
    };
    const connection: ScriptedConnection = {
      origin,
      lastEventId: undefined,
      push: (report) => message(JSON.stringify({ report })),
      raw: message,
      ping: () => connection.isOpen && handlers.alive(),
      cut: () => {
        if (!connection.isOpen) return;
        connection.isOpen = false;
        handlers.closed('closed by the server with 1006');
      },
      isPaused: false,
      isOpen: false,
      pings: 0,
    };
    let isClosed = false;
    setImmediate(() => {
      if (isClosed || script.stalled.has(new URL(url).host)) return;
      const refusal = script.refusals.shift();
      if (script.down.has(origin)) handlers.closed('connect ECONNREFUSED');
      else if (refusal !== undefined) handlers.refused(answerOf(refusal));
      else {
        connection.isOpen = true;
        script.connections.push(connection);
        handlers.opened();
      }
    });
    return {
      pause: () => {
        connection.isPaused = true;
      },
      resume: () => {
        connection.isPaused = false;
      },
      ping: () => {
        connection.pings += 1;
        if (script.manners.answersPings) handlers.alive();
      },
      expire: () => {},
      close: () => {
        isClosed = true;
        connection.isOpen = false;
      },
    };
  };

export type Watched = {
  readonly reports: ReportStream;
  readonly states: StreamState[];
  /** Resolves when the last or a later state of the stream matches. */
  readonly reached: (holds: (state: StreamState) => boolean) => Promise<StreamState>;
  /** Takes `count` reports; returns their observation timestamps. */
  readonly take: (count: number) => Promise<readonly number[]>;
};

/** Opens a stream on the scripted service, with short back-off by default. */
export const watch = (service: ScriptedService, feedIds: readonly string[], options: StreamOptions = {}): Watched => {
  const states: StreamState[] = [];
  const listeners = new Set<(state: StreamState) => void>();
  const onState = (state: StreamState): void => {
    states.push(state);
    for (const listen of [...listeners]) listen(state);
  };
  const reconnect = { minMs: 1, maxMs: 2 };
  const parts = { random: () => 0, loadSockets: service.loadSockets };
  const reports = openStream(service.requester, feedIds, { reconnect, ...options, onState }, parts);
  return {
    reports,
    states,
    reached: (holds) =>
      new Promise((resolve) => {
        const last = states.at(-1);
        if (last !== undefined && holds(last)) return resolve(last);
        const listen = (state: StreamState): void => {
          if (!holds(state)) return;
          listeners.delete(listen);
          resolve(state);
        };
        listeners.add(listen);
      }),
    take: async (count) => {
      const taken: number[] = [];
      while (taken.length < count) {
        const { done, value } = await reports.next();
        if (done) throw new Error(`Ended after ${taken.length} reports.`);
        taken.push(value.observationsTimestamp);
      }
      return taken;
    },
  };
};

export const isLive = ({ phase }: StreamState): boolean => phase === 'live';
export const isReconnecting = ({ phase }: StreamState): boolean => phase === 'reconnecting';
