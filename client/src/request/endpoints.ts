// Chooses among several base URLs: the first that works, and the first of the list again after 60 s.
import { SealpostError } from '../errors.ts';

/** How long a client stays away from the base URLs before the one that works. */
export const comeBackMs = 60_000;

export type Endpoints = {
  /** All of them, the one to ask first in front. */
  readonly inOrder: () => readonly string[];
  /** This one answered; true when it is not the one that answered before. */
  readonly answered: (url: string) => boolean;
};

/** `monotonicMs` is a clock that nobody sets. */
export const createEndpoints = (urls: readonly string[], monotonicMs: () => number): Endpoints => {
  let [current, sinceMs] = [0, 0];
  return {
    inOrder: () => {
      const start = monotonicMs() - sinceMs >= comeBackMs ? 0 : current;
      return [...urls.slice(start), ...urls.slice(0, start)];
    },
    answered: (url) => {
      const index = urls.indexOf(url);
      const moved = index !== current;
      // One that answers because those before it do not is kept for another while.
      if (moved || monotonicMs() - sinceMs >= comeBackMs) sinceMs = monotonicMs();
      current = index;
      return moved;
    },
  };
};

/** Reads base URLs: scheme, host and port only, because a path would be part of what is signed. Without a slash at the end. */
export const parseBaseUrls = (baseUrl: unknown, baseUrls: unknown): readonly string[] => {
  if ((baseUrl === undefined) === (baseUrls === undefined))
    throw new SealpostError('invalid_option', 'Give either baseUrl or baseUrls.');
  const raw: readonly unknown[] = Array.isArray(baseUrls) ? baseUrls : [baseUrl];
  if (raw.length === 0) throw new SealpostError('invalid_option', 'baseUrls is empty, expected at least one address.');
  return [...new Set(raw.map(parseBaseUrl))];
};

/**
 * Reads the addresses of live connections, as `ws(s)://` or `http(s)://`; the base URLs where none is given. The result has `http(s)://`, like a
 * base URL.
 */
export const parseWsUrls = (wsUrl: unknown, wsUrls: unknown, baseUrls: readonly string[]): readonly string[] => {
  if (wsUrl === undefined && wsUrls === undefined) return baseUrls;
  if (wsUrl !== undefined && wsUrls !== undefined)
    throw new SealpostError('invalid_option', 'Give either wsUrl or wsUrls.');
  const raw: readonly unknown[] = Array.isArray(wsUrls) ? wsUrls : [wsUrl];
  if (raw.length === 0) throw new SealpostError('invalid_option', 'wsUrls is empty, expected at least one address.');
  const toHttp = (one: unknown): unknown => (typeof one === 'string' ? one.replace(/^ws(?=s?:)/i, 'http') : one);
  return [...new Set(raw.map((one) => parseAddress(toHttp(one), 'wsUrl', 'wss://ws.example.org')))];
};

const parseBaseUrl = (raw: unknown): string => parseAddress(raw, 'baseUrl', 'https://api.example.org');

// Not repeated in the error: an address with a user and a password in it is refused here too.
const parseAddress = (raw: unknown, option: string, example: string): string => {
  const url = typeof raw === 'string' && URL.canParse(raw) ? new URL(raw) : undefined;
  const isBare = url !== undefined && `${url.origin}/` === url.href;
  if (isBare && ['http:', 'https:'].includes(url.protocol)) return url.origin;
  throw new SealpostError(
    'invalid_option',
    `${option} is not the address of a server, expected scheme, host and port, such as ${example}.`,
  );
};
