// The options of a client: names, defaults, bounds. Only request/credentials.ts keeps the secret.
import { sendsUserAgent } from '#socket';
import { type ClientEvent, type ClientWarning, type EmitEvent, guard } from './client-events.ts';
import { SealpostError } from './errors.ts';
import { type Sleep, sleepOnTimer } from './request/call.ts';
import { type CredentialsSource, createSigner, type SecretSource, type Signer } from './request/credentials.ts';
import { parseBaseUrls, parseWsUrls } from './request/endpoints.ts';
import { clientVersion } from './version.ts';

export type ClientOptions = {
  /** Scheme, host and port of the server. Give this, or `baseUrls`. */
  readonly baseUrl?: string | undefined;
  /** Several servers of one deployment, in order of preference: the next is asked where one does not answer or answers 5xx. */
  readonly baseUrls?: readonly string[] | undefined;
  /** Where live connections go, if that is another host: `wss://` or `https://`, host and port. The base URLs unless given. */
  readonly wsUrl?: string | undefined;
  /** Several of them, in order of preference: the next is tried where one does not answer. Give this, or `wsUrl`. */
  readonly wsUrls?: readonly string[] | undefined;
  /** A UUID. With neither user ID nor secret, what is open to everyone can be read. */
  readonly userId?: string | undefined;
  /** Or a function that gives the current one, so that it can be rotated: asked every five seconds at most, and again after a 401. */
  readonly secret?: SecretSource | undefined;
  /** Instead of `userId` and `secret`, where both are rotated together. */
  readonly credentials?: CredentialsSource | undefined;
  /** Your program, as in `my-service/1.4`: put before the client's own name in User-Agent. Browsers send their own. */
  readonly userAgent?: string | undefined;
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
  /** Told of every attempt, retry, reconnect and gap, for logs and metrics. What it throws changes nothing. */
  readonly onEvent?: (event: ClientEvent) => void;
  /** This machine's clock, in milliseconds. */
  readonly nowMs?: () => number;
  /** From 0 to below 1; spreads the pauses between retries. */
  readonly random?: () => number;
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
    /** With `http(s)://`; the base URLs unless given. */
    wsUrls: readonly string[];
    /** Undefined where there are no credentials. */
    signer: Signer | undefined;
    /** What every request carries beside its signature. */
    headers: Readonly<Record<string, string>>;
    emit: EmitEvent;
  }
>;

const retriesMax = 10;
/** Timers hold no more. */
export const timeoutMaxMs = 2 ** 31 - 1;

/** Reads the options; what is wrong is named, what may be a secret is not repeated. */
export const readOptions = (options: ClientOptions): Settings => ({
  ...readAddresses(options),
  signer: createSigner(options, () => performance.now()),
  headers: readUserAgent(options.userAgent),
  // Bound: browsers refuse a fetch that is called as a method of something else.
  fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
  timeoutMs: readWhole('timeoutMs', options.timeoutMs ?? 30_000, 1, timeoutMaxMs),
  attemptTimeoutMs: readWhole('attemptTimeoutMs', options.attemptTimeoutMs ?? 5_000, 1, timeoutMaxMs),
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

/** Reads a whole number within bounds. */
export const readWhole = (name: string, value: number, min: number, max: number): number => {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new SealpostError(
    'invalid_option',
    `${name} is ${String(value)}, expected a whole number from ${min} to ${max}.`,
  );
};

// One product after the other, as HTTP has it. Browsers would ask the server for permission first, and it grants none.
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
  const [warn, emit] = [guard('onWarning', onWarning), guard('onEvent', onEvent)];
  return {
    emit,
    onWarning: (warning: ClientWarning): void => {
      emit({ kind: 'warning', ...warning });
      warn(warning);
    },
  };
};

const warnOnConsole = ({ message }: ClientWarning): void => {
  // biome-ignore lint/suspicious/noConsole: where nobody listens, the console is the one place that is seen
  console.warn(`sealpost: ${message}`);
};
