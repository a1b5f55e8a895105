// Reads the request headers that matter in one pass over the raw list. Node merges or drops repeated headers; this rejects them, unless they are lists.
import { ApiError, authHeaders, errorOf } from '@sealpost/protocol';
import type { AuthValues } from '../access/authenticate.ts';

export type RequestHeaders = AuthValues & {
  /** The first authentication header that came twice. */
  readonly repeatedAuth: string | undefined;
  readonly hostCount: number;
  readonly hasBody: boolean;
  /** Does the body come in chunks? */
  readonly isChunked: boolean;
  readonly ifNoneMatch: string | undefined;
  readonly acceptsGzip: boolean;
  readonly origin: string | undefined;
  readonly forwardedFor: string | undefined;
  readonly lastEventId: string | undefined;
};

type Mutable = { -readonly [K in keyof RequestHeaders]: RequestHeaders[K] };

type Reader = (headers: Mutable, value: string, name: string) => void;

const readers: Readonly<Record<string, Reader>> = {
  authorization: (headers, value, name) => setOnce(headers, 'userId', value, name),
  'x-authorization-timestamp': (headers, value, name) => setOnce(headers, 'timestamp', value, name),
  'x-authorization-signature-sha256': (headers, value, name) => setOnce(headers, 'signature', value, name),
  host: (headers) => {
    headers.hostCount += 1;
  },
  'content-length': (headers, value) => {
    headers.hasBody ||= value !== '0';
  },
  'transfer-encoding': (headers) => {
    headers.hasBody = true;
    headers.isChunked = true;
  },
  'if-none-match': (headers, value) => {
    headers.ifNoneMatch = joined(headers.ifNoneMatch, value);
  },
  'accept-encoding': (headers, value) => {
    headers.acceptsGzip ||= /(^|,)\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*($|,))|,|$)/i.test(value);
  },
  'x-cll-origin': (headers, value) => {
    headers.origin = joined(headers.origin, value); // two are a name that no origin has
  },
  'x-forwarded-for': (headers, value) => {
    headers.forwardedFor = joined(headers.forwardedFor, value);
  },
  'last-event-id': (headers, value) => {
    headers.lastEventId = joined(headers.lastEventId, value); // two are no position
  },
};

/** Lines of a list are one list. */
const joined = (before: string | undefined, value: string): string =>
  before === undefined ? value : `${before}, ${value}`;

const setOnce = (headers: Mutable, key: 'userId' | 'timestamp' | 'signature', value: string, name: string): void => {
  if (headers[key] !== undefined) headers.repeatedAuth ??= name;
  headers[key] = value;
};

// By the spellings that clients use: these names need no lower-casing.
const byName = new Map<string, Reader>();
for (const [name, reader] of Object.entries(readers)) {
  byName.set(name, reader);
  byName.set(
    name.replace(/(^|-)[a-z]/g, (first) => first.toUpperCase()),
    reader,
  );
}
for (const name of Object.values(authHeaders)) byName.set(name, readers[name.toLowerCase()] as Reader); // each is above

// Lengths of the names above: most headers are skipped without a look-up.
const lengths: readonly boolean[] = Object.keys(readers).reduce<boolean[]>((known, name) => {
  known[name.length] = true;
  return known;
}, new Array(64).fill(false));

/** Reads a raw header list: name, value, name, value… */
export function readHeaders(raw: readonly string[]): RequestHeaders {
  const headers: Mutable = {
    userId: undefined,
    timestamp: undefined,
    signature: undefined,
    repeatedAuth: undefined,
    hostCount: 0,
    hasBody: false,
    isChunked: false,
    ifNoneMatch: undefined,
    acceptsGzip: false,
    origin: undefined,
    forwardedFor: undefined,
    lastEventId: undefined,
  };
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string; // below the length
    if (lengths[name.length] !== true) continue;
    const reader = byName.get(name) ?? byName.get(name.toLowerCase());
    reader?.(headers, raw[i + 1] as string, name); // names and values alternate
  }
  return headers;
}

/** Refuses a request that is framed as ours never are: two hosts, none where HTTP/1.1 asks for one, or a body. */
export function checkFraming({ hostCount, hasBody }: RequestHeaders, httpVersion: string): void {
  if (hostCount > 1) throw errorOf('repeated_host');
  if (hostCount === 0 && httpVersion === '1.1')
    throw new ApiError('malformed_target', 'The request has no Host header. HTTP/1.1 requires one.');
  if (hasBody) throw errorOf('unexpected_body');
}

/** Is any of the three authentication headers there? */
export const hasAuth = ({ userId, timestamp, signature }: AuthValues): boolean =>
  userId !== undefined || timestamp !== undefined || signature !== undefined;
