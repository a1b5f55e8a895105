// The events that a client emits for logs and metrics. No header, query, secret or signature is part of them.
import type { StreamGap, StreamState } from './stream/state.ts';

/** Something that the client mended by itself, and that someone should look at. */
export type ClientWarning = {
  readonly code: 'clock_skew' | 'failover';
  readonly message: string;
};

export type ClientEvent =
  /** One HTTP request, answered or failed. `attempt` counts those of a call from 1; `status` is there when an answer came. */
  | {
      readonly kind: 'attempt';
      /** Scheme, host and port. */
      readonly url: string;
      readonly path: string;
      readonly attempt: number;
      readonly status: number | undefined;
      /** Of the error, where it is one. */
      readonly code: string | undefined;
      readonly requestId: string | undefined;
      /** Of the body, uncompressed. */
      readonly bytes: number;
      readonly durationMs: number;
    }
  /** The call is repeated after a pause. */
  | { readonly kind: 'retry'; readonly path: string; readonly delayMs: number; readonly code: string }
  /** A stream's state has changed: every `reconnecting` is a reconnect. `streams` are those that it was opened with. */
  | { readonly kind: 'stream'; readonly streams: readonly string[]; readonly state: StreamState }
  /** A live connection was lost or closed after having been live for `liveMs`; 0 where it never was. */
  | {
      readonly kind: 'disconnected';
      readonly url: string;
      readonly feedIds: readonly string[];
      readonly reason: string;
      readonly liveMs: number;
      readonly reports: number;
      readonly bytes: number;
    }
  /** Reports that the server no longer has. */
  | ({ readonly kind: 'gap' } & StreamGap)
  | ({ readonly kind: 'warning' } & ClientWarning);

export type EmitEvent = (event: ClientEvent) => void;

/** Calls a function of the caller's: what it throws, or a promise of it rejects with, is told on the console once and changes nothing else. */
export const guard = <T>(name: string, listener: ((value: T) => unknown) | undefined): ((value: T) => void) => {
  if (listener === undefined) return () => {};
  let isTold = false;
  const onFailure = (error: unknown): void => {
    if (isTold) return;
    isTold = true;
    // biome-ignore lint/suspicious/noConsole: the function that should be told has failed
    console.warn(
      `sealpost: ${name} threw, which is ignored from now on: ${error instanceof Error ? error.message : error}`,
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
};
