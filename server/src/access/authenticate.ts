// Authenticates a request: the three headers, the clock, the signature (D1–D4, D22). An unknown user takes the same work as a known one
// and gets the same answer.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import {
  ApiError,
  authHeaders,
  checkSkew,
  emptyBodySha256,
  errorOf,
  parseSignature,
  parseTimestampMs,
  parseUserId,
  type RouteName,
  routes,
  signableTargets,
  stringToSign,
} from '@sealpost/protocol';
import { createHmacKey, type HmacKey, hmacHex } from './hmac.ts';

/** The three headers as they came; undefined where absent. */
export type AuthValues = {
  readonly userId: string | undefined;
  readonly timestamp: string | undefined;
  readonly signature: string | undefined;
};

/** An account as requests need it: unsealed keys, and what it may do. */
export type Caller = {
  readonly userId: string;
  /** Of its active secrets, one or two. */
  readonly keys: readonly HmacKey[];
  /** Ids of those secrets, in the same order. */
  readonly secretIds: readonly string[];
  readonly rateLimits: Readonly<Record<string, number>>;
  /** Its bucket of each route: made once, since a key is looked up at every request. */
  readonly bucketKeys: Readonly<Record<RouteName, string>>;
};

export type Authenticator = {
  /** The caller behind a signed request. Throws the ApiError that the order of checks demands. */
  readonly authenticate: (method: string, target: string, values: AuthValues, nowMs: number) => Caller;
  /** Which secret signed a request that passed, by id: a connection that outlives the request ends with it. Throws as `authenticate` where it has ended meanwhile. */
  readonly secretIdOf: (method: string, target: string, values: AuthValues) => string;
};

/** Makes an authenticator over a look-up by user id in lower case. `onSigned` is called for every authenticated request and must return at once. */
export function createAuthenticator(
  callerOf: (userId: string) => Caller | undefined,
  skewMaxMs: number,
  onSigned: (userId: string, secretId: string, nowMs: number) => void = () => {},
): Authenticator {
  const dummyKey = createHmacKey(randomBytes(32));
  // A stranger has a key apart, and no secret: keys that every request uses are in the processor's cache, and those of a known user are not.
  const stranger: Pick<Caller, 'keys' | 'secretIds'> = { keys: [createHmacKey(randomBytes(32))], secretIds: [] };
  return {
    authenticate: (method, target, values, nowMs) => {
      const { userId, timestamp, timestampMs, signature } = parseHeaders(values);
      checkSkew(timestampMs, nowMs, skewMaxMs);
      // Not kept: a user who was seen before would take 3 µs less than an unknown one.
      const caller = callerOf(userId.toLowerCase());
      const signed = signedTexts(method, target, userId, timestamp);
      // A failure always takes two comparisons, so that timing reveals neither unknown users nor those with a single secret.
      // A caller that passes knows a secret, and may learn which of two it is.
      const { keys, secretIds } = caller ?? stranger;
      const [first = dummyKey, second = dummyKey] = keys;
      const index = isSigned(first, signed, signature) ? 0 : isSigned(second, signed, signature) ? 1 : -1;
      const secretId = secretIds[index];
      if (caller === undefined || secretId === undefined) throw errorOf('unauthorized');
      onSigned(caller.userId, secretId, nowMs);
      return caller;
    },
    secretIdOf: (method, target, values) => {
      const { userId, timestamp, signature } = parseHeaders(values);
      const { keys, secretIds } = callerOf(userId.toLowerCase()) ?? stranger;
      const signed = signedTexts(method, target, userId, timestamp);
      const secretId = secretIds[keys.findIndex((key) => isSigned(key, signed, signature))];
      if (secretId === undefined) throw errorOf('unauthorized');
      return secretId;
    },
  };
}

/** The keys that limits count an account's requests by. */
export const bucketKeysOf = (userId: string): Caller['bucketKeys'] =>
  Object.fromEntries(Object.keys(routes).map((name) => [name, `${name} ${userId}`])) as Caller['bucketKeys']; // the table's own keys

/** What may have been signed for a target, in each of its spellings. */
const signedTexts = (method: string, target: string, userId: string, timestamp: string): readonly string[] =>
  signableTargets(target).map((one) => stringToSign(method, one, emptyBodySha256, userId, timestamp));

/** The three headers in the order in which their errors are answered: user ID and timestamp as sent, which is what is signed, the signature in lower case. */
const parseHeaders = (values: AuthValues) => {
  const userId = parseUserId(required(values.userId, authHeaders.userId));
  const timestamp = required(values.timestamp, authHeaders.timestamp);
  const timestampMs = parseTimestampMs(timestamp);
  const signature = parseSignature(required(values.signature, authHeaders.signature));
  return { userId, timestamp, timestampMs, signature };
};

const required = (value: string | undefined, header: string): string => {
  if (value !== undefined) return value;
  throw new ApiError('missing_header', `${header} is missing. Send the three authentication headers together.`, {
    header,
  });
};

/** Is the signature, 64 hex digits in lower case, that of the key over any of the texts? Every comparison takes constant time. */
const isSigned = (key: HmacKey, signed: readonly string[], signature: string): boolean => {
  let found = false;
  given.write(signature, 'latin1');
  for (const text of signed) {
    // node hands the target over byte by byte as latin1: written back as such, the received bytes are what is signed.
    expected.write(hmacHex(key, text), 'latin1');
    if (timingSafeEqual(expected, given)) found = true;
  }
  return found;
};

// Written and compared within one call: a buffer for each request would cost as much as a third of its HMAC.
const given = Buffer.alloc(64);
const expected = Buffer.alloc(64);
