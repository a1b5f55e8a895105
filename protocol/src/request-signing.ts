// A signed request: header names, the string that is signed, the clock rule (D1–D4). Node-free: servers compute the HMAC with
// node:crypto over the same `stringToSign`.
import { ApiError } from './errors.ts';
import { hexOf, hmacSha256, sha256, utf8Bytes } from './primitives/hmac-sha256.ts';

/** The three headers of an authenticated request, as documented; they arrive in any case. */
export const authHeaders = {
  userId: 'Authorization',
  timestamp: 'X-Authorization-Timestamp',
  signature: 'X-Authorization-Signature-SHA256',
} as const;

/** SHA-256 of no bytes: the body hash of every request that this API reads. */
export const emptyBodySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** How far a signed timestamp may lie from server time, either way, unless configured otherwise. */
export const skewMaxMs = 5_000;

export type RequestToSign = {
  /** Upper case. */
  readonly method: string;
  /** Path, `?` and query exactly as they stand on the request line. */
  readonly target: string;
  /** Absent means no body. */
  readonly body?: string | Uint8Array;
  readonly userId: string;
  readonly timestampMs: number;
};

/** The string under the HMAC, from a body hash already at hand. Every part is used as it came. */
export const stringToSign = (
  method: string,
  target: string,
  bodySha256: string,
  userId: string,
  timestampMs: number | string,
): string => `${method} ${target} ${bodySha256} ${userId} ${timestampMs}`;

/** Lower-case hex HMAC-SHA256 of the request under the UTF-8 bytes of the secret. */
export const signatureOf = (request: RequestToSign, secret: string): string => {
  const { method, target, body, userId, timestampMs } = request;
  const bodySha256 = body === undefined ? emptyBodySha256 : hexOf(sha256(toBytes(body)));
  const signed = stringToSign(method, target, bodySha256, userId, timestampMs);
  return hexOf(hmacSha256(utf8Bytes(secret), utf8Bytes(signed)));
};

/** The three headers, ready to send. */
export const signRequest = (request: RequestToSign, secret: string): Record<string, string> => ({
  [authHeaders.userId]: request.userId,
  [authHeaders.timestamp]: String(request.timestampMs),
  [authHeaders.signature]: signatureOf(request, secret),
});

const toBytes = (body: string | Uint8Array): Uint8Array => (typeof body === 'string' ? utf8Bytes(body) : body);

/** The targets whose signature is good for a received one: itself, and with a doubled leading slash also the single one (D3). */
export const signableTargets = (target: string): readonly string[] =>
  target.startsWith('//') ? [target, target.slice(1)] : [target];

/** A UUID with its digits in either case. */
export const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads the `Authorization` header: a bare UUID in any case, returned as sent because that spelling is signed. */
export const parseUserId = (raw: string): string => {
  if (uuidPattern.test(raw)) return raw;
  throw malformedHeader(authHeaders.userId, 'the bare user ID, a UUID without a scheme word');
};

/** Reads the timestamp header: exactly 13 decimal digits. */
export const parseTimestampMs = (raw: string): number => {
  if (/^[0-9]{13}$/.test(raw)) return Number(raw);
  const hint = /^[0-9]{10}$/.test(raw) ? ' (these are seconds: multiply by 1000)' : '';
  throw malformedHeader(authHeaders.timestamp, `the current Unix time in milliseconds, 13 decimal digits${hint}`);
};

/** Reads the signature header: 64 hex digits in either case, returned in lower case. */
export const parseSignature = (raw: string): string => {
  if (/^[0-9a-fA-F]{64}$/.test(raw)) return raw.toLowerCase();
  throw malformedHeader(authHeaders.signature, 'an HMAC-SHA256 as 64 hex digits');
};

/** Refuses a timestamp further than `toleranceMs` from `nowMs`, telling both clocks' difference; exactly the tolerance passes. */
export const checkSkew = (timestampMs: number, nowMs: number, toleranceMs: number = skewMaxMs): void => {
  const skewMs = timestampMs - nowMs;
  if (Math.abs(skewMs) <= toleranceMs) return;
  const side = skewMs < 0 ? 'behind' : 'ahead of';
  throw new ApiError(
    'clock_skew',
    `${authHeaders.timestamp} is ${Math.abs(skewMs)} ms ${side} the server time, at most ${toleranceMs} ms is accepted. Synchronize the clock and sign again.`,
    { header: authHeaders.timestamp, serverTimeMs: nowMs, skewMs },
  );
};

// The value is not repeated: a mistyped header may hold a secret.
const malformedHeader = (header: string, expected: string): ApiError =>
  new ApiError('malformed_header', `${header} has an incorrect value, expected ${expected}.`, { header, expected });
