// Owns who is asking: the three headers, the clock, the signature (D1–D4, D22). An unknown user costs the same work as a known one
// and gets the same answer.
import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  ApiError,
  authHeaders,
  checkSkew,
  emptyBodySha256,
  parseSignature,
  parseTimestampMs,
  parseUserId,
  signableTargets,
  stringToSign,
} from '@sealpost/protocol';

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
  readonly keys: readonly KeyObject[];
  readonly rateLimits: Readonly<Record<string, number>>;
};

export type Authenticator = {
  /** The caller behind a signed request. Throws the ApiError that the order of checks demands. */
  readonly authenticate: (method: string, target: string, values: AuthValues, nowMs: number) => Caller;
};

/** Makes an authenticator over a look-up by user id in lower case. */
export const createAuthenticator = (
  callerOf: (userId: string) => Caller | undefined,
  skewMaxMs: number,
): Authenticator => {
  const dummyKey = createSecretKey(randomBytes(32));
  const stranger: Caller = { userId: '', keys: [], rateLimits: {} };
  return {
    authenticate: (method, target, values, nowMs) => {
      const userId = parseUserId(required(values.userId, authHeaders.userId));
      const timestampMs = parseTimestampMs(required(values.timestamp, authHeaders.timestamp));
      const signature = Buffer.from(parseSignature(required(values.signature, authHeaders.signature)), 'hex');
      checkSkew(timestampMs, nowMs, skewMaxMs);
      const caller = callerOf(userId.toLowerCase()) ?? stranger;
      const signed = signableTargets(target).map((one) =>
        stringToSign(method, one, emptyBodySha256, userId, timestampMs),
      );
      // Two comparisons for everyone: neither an unknown user nor one with a single secret can be told by the time taken.
      const keys = [caller.keys[0] ?? dummyKey, caller.keys[1] ?? dummyKey];
      if (matches(keys, signed, signature) && caller !== stranger) return caller;
      throw new ApiError('unauthorized');
    },
  };
};

const required = (value: string | undefined, header: string): string => {
  if (value !== undefined) return value;
  throw new ApiError('missing_header', `${header} is missing. Send the three authentication headers together.`, {
    header,
  });
};

/** Is the signature that of any key over any of the texts? Every comparison takes constant time. */
export const matches = (keys: readonly KeyObject[], signed: readonly string[], signature: Buffer): boolean => {
  let found = false;
  for (const key of keys) {
    for (const text of signed) {
      // node hands the target over byte by byte as latin1: written back as such, the received bytes are what is signed.
      const expected = createHmac('sha256', key).update(text, 'latin1').digest();
      if (timingSafeEqual(expected, signature)) found = true;
    }
  }
  return found;
};
