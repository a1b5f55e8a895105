// The credentials of a client: fixed, or returned by a function so that they can rotate while calls and streams run (D101). The secret
// stays in the closures of this file.
import { parseUserId, signRequest } from '@sealpost/protocol';
import { SealpostError } from '../errors.ts';

/** A user ID with its secret. */
export type Credentials = { readonly userId: string; readonly secret: string };

/** The secret, or a function that returns the current one: called at most every five seconds, and again after a 401. */
export type SecretSource = string | (() => string | Promise<string>);

/** Returns both, if user ID and secret rotate together. */
export type CredentialsSource = () => Credentials | Promise<Credentials>;

/** Credentials that sign requests. Keys are compared by identity. */
export type SigningKey = {
  readonly sign: (method: 'GET' | 'HEAD', target: string, timestampMs: number) => Readonly<Record<string, string>>;
};

export type RequestSigner = {
  readonly key: () => Promise<SigningKey>;
  /** After a 401 for a request that this key signed: reads the credentials again; true if there is a new key. */
  readonly renew: (refused: SigningKey) => Promise<boolean>;
};

/** How long credentials are cached: short enough to notice a rotation, long enough for a burst of requests to share them. */
const cacheMs = 5_000;
/** Time-out of the function. */
const askedMs = 10_000;

export type CredentialOptions = {
  readonly userId?: string | undefined;
  readonly secret?: SecretSource | undefined;
  readonly credentials?: CredentialsSource | undefined;
};

/** Validates the options; undefined without credentials. Errors never repeat a value that may be a secret. */
export function createSigner(
  { userId, secret, credentials }: CredentialOptions,
  monotonicMs: () => number,
): RequestSigner | undefined {
  if (credentials !== undefined) {
    if (userId !== undefined || secret !== undefined)
      throw new SealpostError('invalid_option', 'Give either credentials, or userId and secret.');
    if (typeof credentials !== 'function')
      throw new SealpostError('invalid_option', 'credentials is not a function that returns userId and secret.');
    return createAskingSigner(async () => readCredentials(await credentials()), monotonicMs);
  }
  if (userId === undefined && secret === undefined) return undefined;
  const user = readUserId(userId, 'invalid_option');
  if (typeof secret === 'function')
    return createAskingSigner(
      async () => ({ userId: user, secret: readSecret(await secret(), 'secret_unavailable') }),
      monotonicMs,
    );
  const key = toKey({ userId: user, secret: readSecret(secret, 'invalid_option') });
  return { key: async () => key, renew: async () => false };
}

type Failure = 'invalid_option' | 'secret_unavailable';

const readUserId = (raw: unknown, failure: Failure): string => {
  if (typeof raw === 'string' && isUserId(raw)) return raw;
  throw new SealpostError(failure, 'userId is not a user ID, expected a UUID.'); // not repeated: it may be the secret by mistake
};

const readSecret = (raw: unknown, failure: Failure): string => {
  if (typeof raw === 'string' && raw !== '') return raw;
  const [given, asked] = [
    'secret is missing: userId and secret go together.',
    'The function returned no secret, expected a string.',
  ];
  throw new SealpostError(failure, failure === 'invalid_option' ? given : asked);
};

const readCredentials = (raw: unknown): Credentials => {
  const { userId, secret } = Object(raw) as Readonly<Record<string, unknown>>; // both are checked here
  return { userId: readUserId(userId, 'secret_unavailable'), secret: readSecret(secret, 'secret_unavailable') };
};

const isUserId = (raw: string): boolean => {
  try {
    return parseUserId(raw) === raw;
  } catch {
    return false;
  }
};

const toKey = ({ userId, secret }: Credentials): SigningKey => ({
  sign: (method, target, timestampMs) => signRequest({ method, target, userId, timestampMs }, secret),
});

type CachedKey = { readonly credentials: Credentials; readonly key: SigningKey; readonly askedMs: number };

const createAskingSigner = (ask: () => Promise<Credentials>, monotonicMs: () => number): RequestSigner => {
  let cached: CachedKey | undefined;
  let asking: Promise<CachedKey> | undefined;
  const askAgain = async (): Promise<CachedKey> => {
    const startedMs = monotonicMs();
    const credentials = await inTime(ask);
    const isSame =
      cached?.credentials.userId === credentials.userId && cached.credentials.secret === credentials.secret;
    // The same credentials are the same key, so that `renew` does not retry with credentials that were rejected.
    const key = isSame && cached !== undefined ? cached.key : toKey(credentials);
    cached = { credentials, key, askedMs: startedMs };
    return cached;
  };
  /** Concurrent callers share one read. */
  const refresh = (): Promise<CachedKey> => {
    asking ??= askAgain().finally(() => {
      asking = undefined;
    });
    return asking;
  };
  return {
    key: async () => {
      if (cached !== undefined && monotonicMs() - cached.askedMs < cacheMs) return cached.key;
      return (await refresh()).key;
    },
    renew: async (refused) => {
      if (cached !== undefined && cached.key !== refused) return true;
      return (await refresh()).key !== refused;
    },
  };
};

/** What the function throws becomes the cause, not part of the message: it may contain a secret. */
const inTime = async (ask: () => Promise<Credentials>): Promise<Credentials> => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const text = `The secret function did not return within ${askedMs / 1_000} s.`;
    timer = setTimeout(() => reject(new SealpostError('secret_unavailable', text)), askedMs);
  });
  try {
    return await Promise.race([ask(), late]);
  } catch (cause) {
    if (cause instanceof SealpostError && cause.code === 'secret_unavailable') throw cause;
    throw new SealpostError('secret_unavailable', 'The secret function failed; the cause says why.', {
      cause,
    });
  } finally {
    clearTimeout(timer);
  }
};
