// A live stream of names: looks them up first, with the same retries as a connection, then streams their feed IDs.
import type { FeedId } from '@sealpost/protocol';
import type { ReportJson } from '@sealpost/protocol/report-json';
import { backOffMs, defaultReconnect, retryAfterMsOf, sleep } from '../backoff.ts';
import { isFinal } from './connection.ts';
import type { StreamState } from './state.ts';
import { checkStreamOptions, type ReportStream, type StreamOptions } from './stream.ts';

export type NamedStreamParts = {
  readonly lookUp: (signal: AbortSignal) => Promise<readonly FeedId[]>;
  readonly open: (feedIds: readonly FeedId[]) => ReportStream;
  readonly random: () => number;
};

/** Opens the stream once the names are looked up. Throws on invalid options; an unknown name is thrown by the iterator. */
export function streamByName({ lookUp, open, random }: NamedStreamParts, options: StreamOptions): ReportStream {
  checkStreamOptions(options);
  const rules = { ...defaultReconnect, ...options.reconnect };
  const controller = new AbortController();
  let state: StreamState = { phase: 'connecting' };
  let inner: ReportStream | undefined;
  const failed: unknown[] = []; // the error of the lookup, until it is thrown
  const reportState = (next: StreamState): void => {
    state = next;
    options.onState?.(next);
  };
  const close = (): void => {
    failed.length = 0;
    if (controller.signal.aborted) return;
    controller.abort();
    options.signal?.removeEventListener('abort', close);
    if (inner === undefined) reportState({ phase: 'closed' });
    else inner.close();
  };
  const start = async (): Promise<ReportStream | undefined> => {
    const { signal } = controller;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        const feedIds = await lookUp(signal);
        if (signal.aborted) return undefined;
        inner = open(feedIds);
        // The inner stream listens to the caller's signal itself.
        options.signal?.removeEventListener('abort', close);
        return inner;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (isFinal(error)) {
          failed.push(error);
          controller.abort();
          options.signal?.removeEventListener('abort', close);
          reportState({ phase: 'closed', ...(error instanceof Error && { error }) });
          return undefined;
        }
        const reason = error instanceof Error ? error.message : 'the catalog cannot be read';
        const delayMs = backOffMs(rules, failures, random, retryAfterMsOf(error));
        reportState({ phase: 'reconnecting', reason, delayMs });
        await sleep(delayMs, signal);
      }
    }
    return undefined;
  };
  if (options.signal?.aborted) close();
  else options.signal?.addEventListener('abort', close);
  const started = start();
  const iterator: ReportStream = {
    next: async () => (await started)?.next() ?? throwFirst(failed),
    return: async () => {
      close();
      return over;
    },
    close,
    get state() {
      return inner?.state ?? state;
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

const over: IteratorResult<ReportJson, undefined> = { done: true, value: undefined };

/** The end; instead the error that led to it, once. */
const throwFirst = (failed: unknown[]): typeof over => {
  if (failed.length > 0) throw failed.shift();
  return over;
};
