// The events that a client emits for logs and metrics. No header, query, secret or signature is part of them.
import type { StreamGap, StreamState } from './stream/state.ts';

/** A problem that the client worked around, but that an operator should fix. */
export type ClientWarning = {
  readonly code: 'clock_skew' | 'failover';
  readonly message: string;
};

export type ClientEvent =
  /** One HTTP request, answered or failed. `attempt` counts from 1 in each call; `status` is undefined if no response came. */
  | {
      readonly kind: 'attempt';
      /** Scheme, host and port. */
      readonly url: string;
      readonly path: string;
      readonly attempt: number;
      readonly status: number | undefined;
      /** The error code, if it failed. */
      readonly code: string | undefined;
      readonly requestId: string | undefined;
      /** Size of the body, uncompressed. */
      readonly bytes: number;
      readonly durationMs: number;
    }
  /** The call is retried after `delayMs`. */
  | { readonly kind: 'retry'; readonly path: string; readonly delayMs: number; readonly code: string }
  /** A stream's state has changed; each `reconnecting` is a reconnect. `streams`: the feed IDs or names it was opened with. */
  | { readonly kind: 'stream'; readonly streams: readonly string[]; readonly state: StreamState }
  /** A live connection was lost or closed after being live for `liveMs`; 0 if it never was. */
  | {
      readonly kind: 'disconnected';
      readonly url: string;
      readonly feedIds: readonly string[];
      readonly reason: string;
      readonly liveMs: number;
      readonly reports: number;
      readonly bytes: number;
    }
  /** Reports are past the server's retention. */
  | ({ readonly kind: 'gap' } & StreamGap)
  | ({ readonly kind: 'warning' } & ClientWarning);

export type EmitEvent = (event: ClientEvent) => void;

/** Wraps a caller's listener: if it throws or rejects, that is written to the console once and changes nothing else. */
export function isolateListener<T>(name: string, listener: ((value: T) => unknown) | undefined): (value: T) => void {
  if (listener === undefined) return () => {};
  let isReported = false;
  const onFailure = (error: unknown): void => {
    if (isReported) return;
    isReported = true;
    // biome-ignore lint/suspicious/noConsole: the listener itself has failed
    console.warn(
      `sealpost: ${name} threw; later exceptions are not shown: ${error instanceof Error ? error.message : error}`,
    );
  };
  return (value) => {
    try {
      const result = listener(value);
      if (result instanceof Promise) result.catch(onFailure);
    } catch (error) {
      onFailure(error);
    }
  };
}
