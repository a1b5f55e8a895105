// A call ends with its deadline or its caller's signal, whichever comes first.
import { SealpostError } from '../errors.ts';

/** Options of every call. */
export type CallOptions = {
  /** Ends the call with the error `aborted`. */
  readonly signal?: AbortSignal;
  /** Time-out of the whole call, retries included; milliseconds. */
  readonly timeoutMs?: number;
};

/** Options of calls that the client makes itself. */
export type InnerCallOptions = CallOptions & {
  /** Wait and retry on 429, whatever the client's option is. */
  readonly retryRateLimited?: boolean;
};

/** The options of a call of several requests for one that starts now: with what is left of the time-out. */
export const withRest = (options: CallOptions | undefined, elapsedMs: number): CallOptions | undefined =>
  options?.timeoutMs === undefined
    ? options
    : { ...options, timeoutMs: Math.max(1, Math.ceil(options.timeoutMs - elapsedMs)) };

export type Call = {
  /** Aborted with the typed error when time is up or the caller ends the call. */
  readonly signal: AbortSignal;
  readonly remainingMs: () => number;
  /** Aborts the signal with this reason, unless it is aborted already. */
  readonly end: (reason: unknown) => void;
  /** Releases the timer and the caller's signal. */
  readonly close: () => void;
};

/** Waits; rejects with the signal's reason if that is aborted first. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** The typed error of a caller's signal. */
export const abortedBy = (signal: AbortSignal | undefined): SealpostError =>
  new SealpostError('aborted', 'The call was aborted.', { cause: signal?.reason });

/** Starts a call that ends after `timeoutMs`. */
export function openCall({ signal: given }: CallOptions, timeoutMs: number): Call {
  const controller = new AbortController();
  const startedMs = performance.now();
  const end = (reason: unknown): void => controller.abort(reason);
  const late = () => new SealpostError('timeout', `No answer within ${timeoutMs} ms, retries included.`);
  const timer = setTimeout(() => end(late()), timeoutMs);
  const onAbort = () => end(abortedBy(given));
  if (given?.aborted) onAbort();
  given?.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    remainingMs: () => startedMs + timeoutMs - performance.now(),
    end,
    close: () => {
      clearTimeout(timer);
      given?.removeEventListener('abort', onAbort);
    },
  };
}

/** Waits for a promise that ignores the signal; rejects with the signal's reason if that is aborted first. */
export async function raceSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: (() => void) | undefined;
  const ended = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, ended]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

/** Longest delay of a timer; with a longer one, it fires at once. */
export const timerMaxMs = 2 ** 31 - 1;

/** Waits on the platform's timer, at most 24 days. */
export const sleepOnTimer: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      },
      Math.min(ms, timerMaxMs),
    );
    signal.addEventListener('abort', onAbort, { once: true });
  });
