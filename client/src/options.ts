// The options of a client: names, defaults, bounds. Only request/credentials.ts keeps the secret.
import { sendsUserAgent } from '#socket';
import { type ClientEvent, type ClientWarning, type EmitEvent, isolateListener } from './client-events.ts';
import { SealpostError } from './errors.ts';
import { type Sleep, sleepOnTimer, timerMaxMs } from './request/call.ts';
import { type CredentialsSource, createSigner, type RequestSigner, type SecretSource } from './request/credentials.ts';
import { parseBaseUrls, parseWsUrls } from './request/endpoints.ts';
import { clientVersion } from './version.ts';

export type ClientOptions = {
  /** Address of the server: scheme, host, port, and the prefix of a proxy in front of it, such as `https://example.org/streams`. Give this, or `baseUrls`. */
  readonly baseUrl?: string | undefined;
  /** Several servers of one deployment, in order of preference. The client fails over to the next on network errors and 5xx. */
  readonly baseUrls?: readonly string[] | undefined;
  /** Address for WebSockets, if it differs from the base URL: `wss://` or `https://`, host and port. */
  readonly wsUrl?: string | undefined;
  /** Several addresses for WebSockets, in order of preference, with fail-over. Give this, or `wsUrl`. */
  readonly wsUrls?: readonly string[] | undefined;
  /** A UUID. Without user ID and secret, only public calls work. */
  readonly userId?: string | undefined;
  /** The secret, or a function that returns the current one, for rotation: called at most every five seconds, and again after a 401. */
  readonly secret?: SecretSource | undefined;
  /** A function that returns both, instead of `userId` and `secret`, if they rotate together. */
  readonly credentials?: CredentialsSource | undefined;
  /** Your program, such as `my-service/1.4`; precedes the client's name in User-Agent. Browsers send their own. */
  readonly userAgent?: string | undefined;
  /** Replaces the platform's `fetch`. */
  readonly fetch?: typeof fetch;
  /** Time-out of a whole call, retries included; 30,000 ms by default. */
  readonly timeoutMs?: number;
  /** An attempt that receives no byte for this long fails, and the next one starts; 5,000 ms by default. */
  readonly attemptTimeoutMs?: number;
  /** How often a call is retried at every base URL after 5xx and network errors; 3 by default. */
  readonly retries?: number;
  /** Also wait and retry on 429; by default it is an error like any 4xx. */
  readonly retryRateLimited?: boolean;
  /** Called when the client worked around a problem; by default, it writes a console warning. */
  readonly onWarning?: (warning: ClientWarning) => void;
  /** Called on every attempt, retry, reconnect and gap, for logs and metrics. Exceptions are ignored. */
  readonly onEvent?: (event: ClientEvent) => void;
  /** Replaces the system clock; milliseconds. */
  readonly nowMs?: () => number;
  /** Replaces `Math.random`, the jitter of the back-off; from 0 to below 1. */
  readonly random?: () => number;
  /** Replaces the timer that waits between retries. */
  readonly sleep?: Sleep;
};

export type Settings = Readonly<
  Required<
    Pick<
      ClientOptions,
      | 'fetch'
      | 'timeoutMs'
      | 'attemptTimeoutMs'
      | 'retries'
      | 'retryRateLimited'
      | 'onWarning'
      | 'nowMs'
      | 'random'
      | 'sleep'
    >
  > & {
    baseUrls: readonly string[];
    /** As `http(s)://`; the base URLs by default. */
    wsUrls: readonly string[];
    /** Undefined without credentials. */
    signer: RequestSigner | undefined;
    /** Headers of every request, apart from the signature. */
    headers: Readonly<Record<string, string>>;
    emit: EmitEvent;
  }
>;

const retriesMax = 10;

/** Validates the options. Errors name the option but never repeat a value that may be a secret. */
export const readOptions = (options: ClientOptions): Settings => ({
  ...readAddresses(options),
  signer: createSigner(options, () => performance.now()),
  headers: readUserAgent(options.userAgent),
  // Bound, because browsers throw if fetch is called as a method of another object.
  fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
  timeoutMs: readWhole('timeoutMs', options.timeoutMs ?? 30_000, 1, timerMaxMs),
  attemptTimeoutMs: readWhole('attemptTimeoutMs', options.attemptTimeoutMs ?? 5_000, 1, timerMaxMs),
  retries: readWhole('retries', options.retries ?? 3, 0, retriesMax),
  retryRateLimited: options.retryRateLimited ?? false,
  ...readListeners(options),
  nowMs: options.nowMs ?? Date.now,
  random: options.random ?? Math.random,
  sleep: options.sleep ?? sleepOnTimer,
});

const readAddresses = ({ baseUrl, baseUrls, wsUrl, wsUrls }: ClientOptions) => {
  const bases = parseBaseUrls(baseUrl, baseUrls);
  return { baseUrls: bases, wsUrls: parseWsUrls(wsUrl, wsUrls, bases) };
};

/** Validates a whole number within bounds. */
export function readWhole(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new SealpostError(
    'invalid_option',
    `${name} is ${String(value)}, expected a whole number from ${min} to ${max}.`,
  );
}

// Not in browsers: the header would need a CORS preflight, which the server rejects.
const readUserAgent = (own: string | undefined): Readonly<Record<string, string>> => {
  if (own !== undefined && !/^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(own))
    throw new SealpostError(
      'invalid_option',
      'userAgent is not a name of printable ASCII characters, such as my-service/1.4.',
    );
  const client = `sealpost-client/${clientVersion}`;
  return sendsUserAgent ? { 'User-Agent': own === undefined ? client : `${own} ${client}` } : {};
};

const readListeners = ({ onWarning = warnOnConsole, onEvent }: ClientOptions) => {
  const [warn, emit] = [isolateListener('onWarning', onWarning), isolateListener('onEvent', onEvent)];
  return {
    emit,
    onWarning: (warning: ClientWarning): void => {
      emit({ kind: 'warning', ...warning });
      warn(warning);
    },
  };
};

const warnOnConsole = ({ message }: ClientWarning): void => {
  // biome-ignore lint/suspicious/noConsole: the default of onWarning
  console.warn(`sealpost: ${message}`);
};
