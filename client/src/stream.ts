// Owns the live stream as its caller sees it: an async iterable of reports, each once and in order, whatever happens to the connections.
import { parseFeedId } from '@sealpost/protocol';
import type { ReportJson } from '@sealpost/protocol/report-json';
import { loadSocket } from '#socket';
import { readAfter } from './backfill.ts';
import { readArgument, SealpostError } from './errors.ts';
import { readWhole } from './options.ts';
import type { Requester } from './requester.ts';
import type { OpenSocket } from './socket.ts';
import { type ConnectionState, isFinal, keepConnection, retryAfterMsOf } from './stream-connection.ts';
import { askOrigins } from './stream-origins.ts';
import { defaultReconnect, type ReconnectRules } from './stream-pause.ts';
import { createQueue } from './stream-queue.ts';
import { createSequence } from './stream-sequence.ts';
import { serverSentEvents } from './stream-sse.ts';
import type { Transport } from './stream-transport.ts';
import { createWebSocketTransport } from './stream-websocket.ts';

/** Where a stream stands. With several origins it is live while one of them is; `origin` names the connection that changed. */
export type StreamState =
  | (ConnectionState & { readonly origin?: string })
  | { readonly phase: 'closed'; readonly error?: Error };

export type StreamOptions = {
  /** Deliver everything observed from this second on, then go on live. Without it: from now on. */
  readonly from?: number;
  /** One connection per origin of the service, so that one of them may fail. */
  readonly ha?: boolean;
  /** `auto`: a WebSocket in Node, Server-Sent Events in browsers. */
  readonly transport?: 'auto' | 'websocket' | 'sse';
  /** Reports that wait for the consumer, about; connections are held back at this number. 1,000 unless said otherwise. */
  readonly queueMax?: number;
  /** A connection that carries nothing for so long, not even a ping, is dead; 30,000 milliseconds unless said otherwise. */
  readonly silenceMs?: number;
  readonly reconnect?: Partial<ReconnectRules>;
  readonly onState?: (state: StreamState) => void;
  /** Ends the stream: the loop over it is then simply over. */
  readonly signal?: AbortSignal;
};

/** Reports as they come. One consumer: each report is given to one `next()`. */
export type ReportStream = AsyncIterableIterator<ReportJson, undefined> & {
  readonly state: StreamState;
  /** Ends the stream and its connections; reports that were not taken yet are dropped. */
  readonly close: () => void;
  readonly return: () => Promise<IteratorResult<ReportJson, undefined>>;
};

/** What a test may replace. */
export type StreamParts = { readonly random: () => number; readonly loadSocket: () => Promise<OpenSocket | undefined> };

const chooseTransport = async (
  wanted: StreamOptions['transport'],
  load: StreamParts['loadSocket'],
): Promise<Transport> => {
  const openSocket = wanted === 'sse' ? undefined : await load();
  if (openSocket !== undefined) return createWebSocketTransport(openSocket);
  if (wanted !== 'websocket') return serverSentEvents;
  throw new SealpostError(
    'invalid_option',
    'transport is websocket, which needs the package ws in Node and cannot be had in a browser. Use sse, or install ws.',
  );
};

type Settings = {
  readonly feedIds: readonly string[];
  readonly from: number | undefined;
  readonly queueMax: number;
  readonly silenceMs: number;
  readonly reconnect: ReconnectRules;
};

const readStreamOptions = (feedIds: readonly string[], options: StreamOptions): Settings => {
  const ids = readArgument(() => [...new Set(feedIds.map((id) => parseFeedId(id)))]);
  if (ids.length === 0) throw new SealpostError('invalid_option', 'No feed id is given, expected at least one.');
  return {
    feedIds: ids,
    from: options.from === undefined ? undefined : readWhole('from', options.from, 0, 2 ** 32 - 1),
    queueMax: readWhole('queueMax', options.queueMax ?? 1_000, 1, 1_000_000),
    silenceMs: readWhole('silenceMs', options.silenceMs ?? 30_000, 1, 2 ** 31 - 1),
    reconnect: { ...defaultReconnect, ...options.reconnect },
  };
};

/** What the stream tells about itself: the best of its connections, and the end once. */
const createStateTeller = (onState: StreamOptions['onState']) => {
  const connections = new Map<string, ConnectionState>();
  let state: StreamState = { phase: 'connecting' };
  const tell = (next: StreamState): void => onState?.(next);
  return {
    get: () => state,
    isClosed: () => state.phase === 'closed',
    connection: (origin: string | undefined, next: ConnectionState): void => {
      if (state.phase === 'closed') return;
      const told = origin === undefined ? next : { ...next, origin };
      connections.set(origin ?? '', next);
      const isLive = [...connections.values()].some(({ phase }) => phase === 'live');
      if (next.phase === 'live' || !isLive) state = told;
      tell(told);
    },
    closed: (error: Error | undefined): void => {
      state = error === undefined ? { phase: 'closed' } : { phase: 'closed', error };
      tell(state);
    },
  };
};

/** Opens a stream of these feed ids at once. What is wrong with the arguments is thrown here, what fails later by the iterator. */
export const stream = (
  requester: Requester,
  feedIds: readonly string[],
  options: StreamOptions = {},
  parts: StreamParts = { random: Math.random, loadSocket },
): ReportStream => {
  const settings = readStreamOptions(feedIds, options);
  const { signal: outer } = options;
  const queue = createQueue<ReportJson>(settings.queueMax);
  const controller = new AbortController();
  const teller = createStateTeller(options.onState);

  const finish = (error?: Error): void => {
    if (teller.isClosed()) return;
    teller.closed(error);
    controller.abort();
    outer?.removeEventListener('abort', close);
    queue.end(error);
  };
  const close = (): void => {
    finish();
    // After an error too: what is still queued is not wanted.
    queue.end();
  };
  const fail = (error: unknown): void => finish(error instanceof Error ? error : new Error(String(error)));

  if (outer?.aborted) close();
  else {
    outer?.addEventListener('abort', close);
    runConnections(requester, settings, options, parts, { queue, teller, signal: controller.signal, fail }).catch(fail);
  }
  const iterator: ReportStream = {
    next: queue.next,
    return: async () => {
      close();
      return { done: true, value: undefined };
    },
    close,
    get state() {
      return teller.get();
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
};

type Running = {
  readonly queue: ReturnType<typeof createQueue<ReportJson>>;
  readonly teller: ReturnType<typeof createStateTeller>;
  readonly signal: AbortSignal;
  readonly fail: (error: unknown) => void;
};

/** Keeps one connection per origin until the stream ends; rejects with what ends it. */
const runConnections = async (
  requester: Requester,
  { feedIds, from, silenceMs, reconnect }: Settings,
  options: StreamOptions,
  { random, loadSocket: load }: StreamParts,
  { queue, teller, signal, fail }: Running,
): Promise<void> => {
  const transport = await chooseTransport(options.transport, load);
  const sequence = createSequence({
    feedIds,
    fromSeconds: from,
    nowMs: requester.nowMs,
    readAfter: (feedId, lastMs) => readAfter(requester, feedId, lastMs, signal),
    deliver: ({ report }) => queue.push(report),
    room: queue.room,
    isFinal,
    retryAfterMsOf,
    fail,
    reconnect,
    random,
    signal,
  });
  const onFailure = (reason: string, delayMs: number): void =>
    teller.connection(undefined, { phase: 'reconnecting', reason, delayMs });
  const origins = options.ha ? await askOrigins(requester, reconnect, random, signal, onFailure) : [];
  const connection = { requester, feedIds, transport, sequence, valve: queue, silenceMs, reconnect, random, signal };
  await Promise.all(
    (origins.length > 0 ? origins : [undefined]).map((origin) =>
      keepConnection(origin, connection, (state) => teller.connection(origin, state)),
    ),
  );
};
