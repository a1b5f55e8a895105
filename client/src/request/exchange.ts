// Owns one request and its answer: sent once, given up when no byte comes for too long.
import { SealpostError } from '../errors.ts';
import { type RawAnswer, readText } from './answer.ts';

export type ExchangeOptions = {
  readonly fetch: typeof fetch;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the exchange with its reason. */
  readonly signal: AbortSignal;
  /** Without a byte for so long, the exchange has failed; milliseconds. */
  readonly idleTimeoutMs: number;
};

/** An answer, and how many bytes its body had. */
export type ExchangedAnswer = RawAnswer & { readonly bytes: number };

/** Sends a GET. Resolves with any answer; rejects with the signal's reason, or with a `network_error`. */
export const exchange = async (
  url: URL,
  { fetch, headers, signal, idleTimeoutMs }: ExchangeOptions,
): Promise<ExchangedAnswer> => {
  signal.throwIfAborted();
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  const onIdle = () => controller.abort(new Error(`No byte for ${idleTimeoutMs} ms.`));
  let timer = setTimeout(onIdle, idleTimeoutMs);
  const rearm = (): void => {
    clearTimeout(timer);
    timer = setTimeout(onIdle, idleTimeoutMs);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  // A fetch that does not look at its signal is left behind all the same.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
  });
  ended.catch(() => {}); // nobody may be waiting any more
  const send = async (): Promise<ExchangedAnswer> => {
    // Not followed: a redirect would carry the signed headers to someone else. Not from a browser's cache: what is told of the server's
    // clock and of limits would be that of an earlier answer.
    const init = {
      headers,
      redirect: 'manual',
      credentials: 'omit',
      cache: 'no-store',
      signal: controller.signal,
    } as const;
    const response = await fetch(url.href, init);
    rearm();
    return { status: response.status, headers: response.headers, ...(await readText(response, rearm)) };
  };
  try {
    return await Promise.race([send(), ended]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof SealpostError ? error : networkError(url, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
};

const networkError = ({ host }: URL, cause: unknown): SealpostError => {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const named = inner instanceof Error && 'code' in inner ? String(inner.code) : '';
  const what = named || (inner instanceof Error ? inner.message : String(inner));
  return new SealpostError('network_error', `${host} cannot be reached (${what}).`, { cause });
};
