// Request signing: header names, the string to sign, the clock check (D1–D4). Runs in browsers; servers compute the HMAC of the same
// `stringToSign` with node:crypto.
import { ApiError } from './errors.ts';
import { hexOf, hmacSha256, sha256, utf8Bytes } from './primitives/hmac-sha256.ts';

/** The three headers of a signed request, as documented. */
export const authHeaders = {
  userId: 'Authorization',
  timestamp: 'X-Authorization-Timestamp',
  signature: 'X-Authorization-Signature-SHA256',
} as const;

/** SHA-256 of an empty body, which every request of this API has. */
export const emptyBodySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Default for how far a signed timestamp may be from the server's time, either way. */
export const skewMaxMs = 5_000;

export type RequestToSign = {
  /** Upper case. */
  readonly method: string;
  /** Path, `?` and query exactly as on the request line. */
  readonly target: string;
  /** Undefined for no body. */
  readonly body?: string | Uint8Array;
  readonly userId: string;
  readonly timestampMs: number;
};

/** The string to sign. Every part is used exactly as sent. */
export const stringToSign = (
  method: string,
  target: string,
  bodySha256: string,
  userId: string,
  timestampMs: number | string,
): string => `${method} ${target} ${bodySha256} ${userId} ${timestampMs}`;

/** HMAC-SHA256 of the request with the UTF-8 bytes of the secret as key, lower-case hex. */
export function signatureOf(request: RequestToSign, secret: string): string {
  const { method, target, body, userId, timestampMs } = request;
  const bodySha256 = body === undefined ? emptyBodySha256 : hexOf(sha256(toBytes(body)));
  const signed = stringToSign(method, target, bodySha256, userId, timestampMs);
  return hexOf(hmacSha256(utf8Bytes(secret), utf8Bytes(signed)));
}

/** Signs a request; returns the three headers. */
export const signRequest = (request: RequestToSign, secret: string): Record<string, string> => ({
  [authHeaders.userId]: request.userId,
  [authHeaders.timestamp]: String(request.timestampMs),
  [authHeaders.signature]: signatureOf(request, secret),
});

const toBytes = (body: string | Uint8Array): Uint8Array => (typeof body === 'string' ? utf8Bytes(body) : body);

/** The targets that a signature may cover: the received one and, if it starts with two slashes, the same with one (D3). */
export const signableTargets = (target: string): readonly string[] =>
  target.startsWith('//') ? [target, target.slice(1)] : [target];

/** A UUID in any case. */
export const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Parses the `Authorization` header: a bare UUID in any case, returned as sent, because that spelling is signed. */
export function parseUserId(raw: string): string {
  if (uuidPattern.test(raw)) return raw;
  throw malformedHeader(authHeaders.userId, 'the bare user ID, a UUID without a scheme word');
}

/** Parses the timestamp header: exactly 13 decimal digits. */
export function parseTimestampMs(raw: string): number {
  if (/^[0-9]{13}$/.test(raw)) return Number(raw);
  const hint = /^[0-9]{10}$/.test(raw) ? ' (these are seconds: multiply by 1000)' : '';
  throw malformedHeader(authHeaders.timestamp, `the current Unix time in milliseconds, 13 decimal digits${hint}`);
}

/** Parses the signature header: 64 hex digits in any case, returned in lower case. */
export function parseSignature(raw: string): string {
  if (/^[0-9a-fA-F]{64}$/.test(raw)) return raw.toLowerCase();
  throw malformedHeader(authHeaders.signature, 'an HMAC-SHA256 as 64 hex digits');
}

/** Throws if a timestamp is more than `toleranceMs` from `nowMs`, with the difference. */
export function checkSkew(timestampMs: number, nowMs: number, toleranceMs: number = skewMaxMs): void {
  const skewMs = timestampMs - nowMs;
  if (Math.abs(skewMs) <= toleranceMs) return;
  const side = skewMs < 0 ? 'behind' : 'ahead of';
  throw new ApiError(
    'clock_skew',
    `${authHeaders.timestamp} is ${Math.abs(skewMs)} ms ${side} the server time, at most ${toleranceMs} ms is accepted. Synchronize the clock and sign again.`,
    { header: authHeaders.timestamp, serverTimeMs: nowMs, skewMs },
  );
}

// The value is not repeated: a mistyped header may contain a secret.
const malformedHeader = (header: string, expected: string): ApiError =>
  new ApiError('malformed_header', `${header} has an incorrect value, expected ${expected}.`, { header, expected });
