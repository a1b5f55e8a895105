// Chooses among several base URLs: stays with one that works, and tries the first of the list again after 60 s.
import { withoutTrailing } from '@sealpost/protocol';
import { SealpostError } from '../errors.ts';

/** How long the client stays with a later base URL before it tries the first again. */
export const comeBackMs = 60_000;

export type Endpoints = {
  /** All base URLs, starting with the one to try first. */
  readonly inOrder: () => readonly string[];
  /** Call when a base URL answered; true if it is not the one that answered last. */
  readonly answered: (url: string) => boolean;
};

/** `monotonicMs` is a monotonic clock. */
export function createEndpoints(urls: readonly string[], monotonicMs: () => number): Endpoints {
  let [current, sinceMs] = [0, 0];
  return {
    inOrder: () => {
      const start = monotonicMs() - sinceMs >= comeBackMs ? 0 : current;
      return [...urls.slice(start), ...urls.slice(0, start)];
    },
    answered: (url) => {
      const index = urls.indexOf(url);
      const moved = index !== current;
      // It answered because those before it failed again: the 60 s start over.
      if (moved || monotonicMs() - sinceMs >= comeBackMs) sinceMs = monotonicMs();
      current = index;
      return moved;
    },
  };
}

/** Parses base URLs: scheme, host, port and a path prefix (D252). Without a trailing slash. */
export function parseBaseUrls(baseUrl: unknown, baseUrls: unknown): readonly string[] {
  if ((baseUrl === undefined) === (baseUrls === undefined))
    throw new SealpostError('invalid_option', 'Give either baseUrl or baseUrls.');
  const raw: readonly unknown[] = Array.isArray(baseUrls) ? baseUrls : [baseUrl];
  if (raw.length === 0) throw new SealpostError('invalid_option', 'baseUrls is empty, expected at least one address.');
  return [...new Set(raw.map(parseBaseUrl))];
}

/**
 * Parses the addresses for WebSockets, `ws(s)://` or `http(s)://`; the base URLs by default. The result is `http(s)://`, like a base URL.
 */
export function parseWsUrls(wsUrl: unknown, wsUrls: unknown, baseUrls: readonly string[]): readonly string[] {
  if (wsUrl === undefined && wsUrls === undefined) return baseUrls;
  if (wsUrl !== undefined && wsUrls !== undefined)
    throw new SealpostError('invalid_option', 'Give either wsUrl or wsUrls.');
  const raw: readonly unknown[] = Array.isArray(wsUrls) ? wsUrls : [wsUrl];
  if (raw.length === 0) throw new SealpostError('invalid_option', 'wsUrls is empty, expected at least one address.');
  const toHttp = (one: unknown): unknown => (typeof one === 'string' ? one.replace(/^ws(?=s?:)/i, 'http') : one);
  return [...new Set(raw.map((one) => parseAddress(toHttp(one), 'wsUrl', 'wss://ws.example.org')))];
}

const parseBaseUrl = (raw: unknown): string => parseAddress(raw, 'baseUrl', 'https://api.example.org');

// The error does not repeat the address, which may contain a user and a password.
const parseAddress = (raw: unknown, option: string, example: string): string => {
  const url = typeof raw === 'string' && URL.canParse(raw) ? new URL(raw) : undefined;
  // No user, query or fragment, and no path of the API.
  const isBare = url !== undefined && url.origin + url.pathname === url.href && !/\/api\/v\d/.test(url.pathname);
  if (isBare && ['http:', 'https:'].includes(url.protocol)) return withoutTrailing(url.href, '/');
  throw new SealpostError(
    'invalid_option',
    `${option} is not the address of a server, expected scheme, host, port and perhaps a path, such as ${example}.`,
  );
};

export type Holds = {
  /** Call after each failure of a server, with its Retry-After, or 0. */
  readonly hold: (retryAfterMs: number, ...urls: readonly string[]) => void;
  /** How long it is still held; where there are several URLs, until the last of them is free. */
  readonly remainingMs: (...urls: readonly string[]) => number;
};

/** `monotonicMs` is a monotonic clock. */
export function createHolds(monotonicMs: () => number): Holds {
  const untilMs = new Map<string, number>();
  return {
    hold: (retryAfterMs, ...urls) => {
      for (const url of urls) untilMs.set(url, monotonicMs() + retryAfterMs);
    },
    remainingMs: (...urls) => Math.max(0, ...urls.map((url) => (untilMs.get(url) ?? 0) - monotonicMs())),
  };
}
