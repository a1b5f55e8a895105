// Owns what a client is made with: names, defaults, bounds. The secret goes into a function that signs, and nowhere else.
import { parseUserId, signRequest } from '@sealpost/protocol';
import { type Sleep, sleepOnTimer } from './call.ts';
import { parseBaseUrls, parseWsUrls } from './endpoints.ts';
import { SealpostError } from './errors.ts';

/** Something that the client mended by itself, and that someone should look at. */
export type ClientWarning = {
  readonly code: 'clock_skew' | 'failover';
  readonly message: string;
};

export type ClientOptions = {
  /** Scheme, host and port of the server. Give this, or `baseUrls`. */
  readonly baseUrl?: string | undefined;
  /** Several servers of one deployment, in order of preference: the next is asked where one does not answer or answers 5xx. */
  readonly baseUrls?: readonly string[] | undefined;
  /** Where live connections go, if that is another host: `wss://` or `https://`, host and port. The base URLs unless given. */
  readonly wsUrl?: string | undefined;
  /** Several of them, in order of preference: the next is tried where one does not answer. Give this, or `wsUrl`. */
  readonly wsUrls?: readonly string[] | undefined;
  /** A UUID. With neither user id nor secret, what is open to everyone can be read. */
  readonly userId?: string | undefined;
  readonly secret?: string | undefined;
  /** Instead of the platform's. */
  readonly fetch?: typeof fetch;
  /** For a whole call, retries included, unless the call says otherwise; 30,000 ms. */
  readonly timeoutMs?: number;
  /** An attempt that brings no byte for so long is given up, and the next one made; 5,000 ms. */
  readonly attemptTimeoutMs?: number;
  /** How often a call is repeated, at every base URL, after 5xx and failures of the network; 3. */
  readonly retries?: number;
  /** Wait and try again on 429 too; otherwise that is an error like any 4xx. */
  readonly retryRateLimited?: boolean;
  /** What the client mended by itself; the console's warning unless given. */
  readonly onWarning?: (warning: ClientWarning) => void;
  /** This machine's clock, in milliseconds. */
  readonly nowMs?: () => number;
  /** From 0 to below 1; spreads the pauses between retries. */
  readonly random?: () => number;
  readonly sleep?: Sleep;
};

/** Signs a request; undefined where there are no credentials. */
export type Sign = (method: 'GET' | 'HEAD', target: string, timestampMs: number) => Readonly<Record<string, string>>;

export type Settings = Readonly<
  Required<Omit<ClientOptions, 'baseUrl' | 'baseUrls' | 'wsUrl' | 'wsUrls' | 'userId' | 'secret'>> & {
    baseUrls: readonly string[];
    /** With `http(s)://`; the base URLs unless given. */
    wsUrls: readonly string[];
    sign: Sign | undefined;
  }
>;

const retriesMax = 10;
/** Timers hold no more. */
export const timeoutMaxMs = 2 ** 31 - 1;

/** Reads the options; what is wrong is named, what may be a secret is not repeated. */
export const readOptions = (options: ClientOptions): Settings => ({
  ...readAddresses(options),
  sign: createSign(options.userId, options.secret),
  // Bound: browsers refuse a fetch that is called as a method of something else.
  fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
  timeoutMs: readWhole('timeoutMs', options.timeoutMs ?? 30_000, 1, timeoutMaxMs),
  attemptTimeoutMs: readWhole('attemptTimeoutMs', options.attemptTimeoutMs ?? 5_000, 1, timeoutMaxMs),
  retries: readWhole('retries', options.retries ?? 3, 0, retriesMax),
  retryRateLimited: options.retryRateLimited ?? false,
  onWarning: options.onWarning ?? warnOnConsole,
  nowMs: options.nowMs ?? Date.now,
  random: options.random ?? Math.random,
  sleep: options.sleep ?? sleepOnTimer,
});

const readAddresses = ({ baseUrl, baseUrls, wsUrl, wsUrls }: ClientOptions) => {
  const bases = parseBaseUrls(baseUrl, baseUrls);
  return { baseUrls: bases, wsUrls: parseWsUrls(wsUrl, wsUrls, bases) };
};

/** Reads a whole number within bounds. */
export const readWhole = (name: string, value: number, min: number, max: number): number => {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new SealpostError(
    'invalid_option',
    `${name} is ${String(value)}, expected a whole number from ${min} to ${max}.`,
  );
};

const createSign = (userId: unknown, secret: unknown): Sign | undefined => {
  if (userId === undefined && secret === undefined) return undefined;
  if (typeof userId !== 'string' || !isUserId(userId))
    throw new SealpostError('invalid_option', 'userId is not a user id, expected a UUID.'); // it may be the secret, mixed up
  if (typeof secret !== 'string' || secret === '')
    throw new SealpostError('invalid_option', 'secret is missing: userId and secret go together.');
  return (method, target, timestampMs) => signRequest({ method, target, userId, timestampMs }, secret);
};

const isUserId = (raw: string): boolean => {
  try {
    return parseUserId(raw) === raw;
  } catch {
    return false;
  }
};

const warnOnConsole = ({ message }: ClientWarning): void => {
  // biome-ignore lint/suspicious/noConsole: where nobody listens, the console is the one place that is seen
  console.warn(`sealpost: ${message}`);
};
