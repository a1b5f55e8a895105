// The live stream that callers see: an async iterable of reports, each once and in order, across reconnects.
import { parseFeedId, secondsMax } from '@sealpost/protocol';
import type { ReportJson } from '@sealpost/protocol/report-json';
import { loadSockets } from '#socket';
import { defaultReconnect, type ReconnectRules, retryAfterMsOf } from '../backoff.ts';
import { type EmitEvent, isolateListener } from '../client-events.ts';
import { readArgument, SealpostError } from '../errors.ts';
import { readWhole } from '../options.ts';
import { timerMaxMs } from '../request/call.ts';
import type { Requester } from '../request/requester.ts';
import { readAfter } from './backfill.ts';
import { chooseTransport, type TransportName } from './choice.ts';
import { isFinal } from './connection.ts';
import { keepGroups, splitFeedIds } from './connection-groups.ts';
import { createQueue } from './queue.ts';
import { createSequence } from './sequence.ts';
import { createStaleWatch, type StaleStream, staleLookMs } from './staleness.ts';
import { createStateTracker, type StateTracker, type StreamGap, type StreamState } from './state.ts';
import type { Transport } from './transport.ts';

export type StreamOptions = {
  /** Deliver reports observed from this second on, then live ones; an object has one per feed ID. Default: from now on. */
  readonly from?: number | Readonly<Record<string, number>>;
  /** One connection per origin of the service, so that one origin may fail. */
  readonly ha?: boolean;
  /** `auto`, the default: a WebSocket in Node, else server-sent events, else polling, as the server supports. */
  readonly transport?: TransportName;
  /** Connections pause when about this many reports are queued for the consumer; 1,000 by default. */
  readonly queueMax?: number;
  /** A connection without data or a ping for this long is closed; 30,000 ms by default. */
  readonly silenceMs?: number;
  readonly reconnect?: Partial<ReconnectRules>;
  readonly onState?: (state: StreamState) => void;
  /** Called when reports are past the server's retention; by default, it writes a console warning. */
  readonly onGap?: (gap: StreamGap) => void;
  /** Called once when a live stream has had no report of a feed ID for three of its intervals, and at least a minute. */
  readonly onStale?: (stream: StaleStream) => void;
  /** Ends the stream and the loop over it, without an error. */
  readonly signal?: AbortSignal;
};

/** Live reports for one consumer: each report goes to one `next()`. */
export type ReportStream = AsyncIterableIterator<ReportJson, undefined> & {
  readonly state: StreamState;
  /** Ends the stream and its connections; drops queued reports. */
  readonly close: () => void;
  readonly return: () => Promise<IteratorResult<ReportJson, undefined>>;
};

/** Parts that tests replace. */
export type StreamParts = { readonly random: () => number; readonly loadSockets: () => Promise<Transport | undefined> };

/** Streams that are backfilled at once: few, because the rate limit for pages is 10 per second. */
const fillsMax = 4;

type Settings = {
  /** The feed IDs of each connection. */
  readonly groups: readonly (readonly string[])[];
  /** The first second of a stream; undefined: from now on. */
  readonly fromOf: (feedId: string) => number | undefined;
  readonly queueMax: number;
  readonly silenceMs: number;
  readonly reconnect: ReconnectRules;
};

/** Validates the options; throws if one is out of bounds. */
export const checkStreamOptions = (options: StreamOptions): Omit<Settings, 'groups'> => ({
  fromOf: readStarts(options.from),
  queueMax: readWhole('queueMax', options.queueMax ?? 1_000, 1, 1_000_000),
  silenceMs: readWhole('silenceMs', options.silenceMs ?? 30_000, 1, timerMaxMs),
  reconnect: { ...defaultReconnect, ...options.reconnect },
});

const readStreamOptions = (feedIds: readonly string[], options: StreamOptions): Settings => {
  const ids = readArgument(() => [...new Set(feedIds.map((id) => parseFeedId(id)))]);
  if (ids.length === 0) throw new SealpostError('invalid_option', 'No feed ID is given, expected at least one.');
  return { groups: splitFeedIds(ids), ...checkStreamOptions(options) };
};

const readStarts = (from: StreamOptions['from']): Settings['fromOf'] => {
  const read = (value: number) => readWhole('from', value, 0, secondsMax);
  if (typeof from !== 'object') {
    const start = from === undefined ? undefined : read(from);
    return () => start;
  }
  const starts = new Map(Object.entries(from).map(([id, value]) => [readArgument(() => parseFeedId(id)), read(value)]));
  return (feedId) => starts.get(parseFeedId(feedId));
};

const warnOfGap = ({ feedId, from, to }: StreamGap): void => {
  // biome-ignore lint/suspicious/noConsole: the default of onGap
  console.warn(
    `sealpost: Reports of ${feedId} from second ${from} to before ${to} are past the server’s retention; the stream continues from there.`,
  );
};

/** Wraps the listeners so that they cannot break the stream, and also emit events. */
export function observeStream(streams: readonly string[], options: StreamOptions, emit: EmitEvent): StreamOptions {
  const [onState, onGap] = [
    isolateListener('onState', options.onState),
    isolateListener('onGap', options.onGap ?? warnOfGap),
  ];
  return {
    ...options,
    ...(options.onStale && { onStale: isolateListener('onStale', options.onStale) }),
    onState: (state) => {
      emit({ kind: 'stream', streams, state });
      onState(state);
    },
    onGap: (gap) => {
      emit({ kind: 'gap', ...gap });
      onGap(gap);
    },
  };
}

/** Live reports of these feed IDs, each once and in order. With `from`, it starts with stored reports from that second on. */
export const stream = (requester: Requester, feedIds: readonly string[], options: StreamOptions = {}): ReportStream =>
  openStream(requester, feedIds, observeStream(feedIds, options, requester.emit));

/** Opens a stream of feed IDs. Throws on invalid arguments; later failures are thrown by the iterator. */
export function openStream(
  requester: Requester,
  feedIds: readonly string[],
  options: StreamOptions = {},
  parts: StreamParts = { random: Math.random, loadSockets },
): ReportStream {
  const settings = readStreamOptions(feedIds, options);
  const { signal: outer } = options;
  const queue = createQueue<ReportJson>(settings.queueMax);
  const controller = new AbortController();
  const tracker = createStateTracker(settings.groups, options.onState);

  const finish = (error?: Error): void => {
    if (tracker.isClosed()) return;
    tracker.closed(error);
    controller.abort();
    outer?.removeEventListener('abort', close);
    queue.end(error);
  };
  const close = (): void => {
    finish();
    // Also after an error: drops what is still queued.
    queue.end();
  };
  const fail = (error: unknown): void => finish(error instanceof Error ? error : new Error(String(error)));

  if (outer?.aborted) close();
  else {
    outer?.addEventListener('abort', close);
    runConnections(requester, settings, options, parts, { queue, tracker, signal: controller.signal, fail }).catch(
      fail,
    );
  }
  const iterator: ReportStream = {
    next: queue.next,
    return: async () => {
      close();
      return { done: true, value: undefined };
    },
    close,
    get state() {
      return tracker.get();
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

type Running = {
  readonly queue: ReturnType<typeof createQueue<ReportJson>>;
  readonly tracker: StateTracker;
  readonly signal: AbortSignal;
  readonly fail: (error: unknown) => void;
};

/** Keeps the connections until the stream ends; rejects with the final error. */
const runConnections = async (
  requester: Requester,
  { groups, fromOf, silenceMs, reconnect }: Settings,
  { transport: name = 'auto', ha = false, onGap = warnOfGap, onStale }: StreamOptions,
  { random, loadSockets: load }: StreamParts,
  { queue, tracker, signal, fail }: Running,
): Promise<void> => {
  const transport = await chooseTransport(name, load);
  const watch = onStale && createStaleWatch(groups.flat(), onStale, () => performance.now());
  if (watch !== undefined && !signal.aborted) {
    const look = (): void => watch.look(tracker.get().phase === 'live' && !queue.isFull());
    const timer = setInterval(look, staleLookMs);
    signal.addEventListener('abort', () => clearInterval(timer));
  }
  const createGroup = (feedIds: readonly string[]) => ({
    feedIds,
    sequence: createSequence({
      feedIds,
      fromOf,
      nowMs: requester.nowMs,
      readAfter: (feedId, lastMs, onGap) => readAfter(requester, feedId, lastMs, signal, onGap),
      onGap,
      fillsMax: Math.max(1, Math.floor(fillsMax / groups.length)),
      deliver: (received) => {
        watch?.received(received);
        queue.push(received.report);
      },
      drained: queue.drained,
      isFinal,
      retryAfterMsOf,
      fail,
      reconnect,
      random,
      signal,
    }),
  });
  const connection = { requester, transport, backpressure: queue, silenceMs, reconnect, random, signal };
  await keepGroups({ ...connection, groups: groups.map(createGroup), ha, tracker });
};
