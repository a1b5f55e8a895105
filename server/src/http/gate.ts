// Admits requests: authentication as the route demands it, rate limits per account and address, and the streams that an account may read. Denies by
// default: a route that needs authentication cannot be reached without it (D21, D23).
import { ApiError, errorOf, type FeedId, type Route, type RouteName, statusOf } from '@sealpost/protocol';
import type { Authenticator, Caller } from '../access/authenticate.ts';
import type { RateDecision, RateLimiter } from '../access/rate-limit.ts';
import { type AddressSet, limitedNetworkOf } from '../runtime/ip-address.ts';
import { hasAuth, type RequestHeaders } from './headers.ts';

export type GateRules = {
  readonly requestsPerSecond: number;
  readonly anonymousRequestsPerSecond: number;
  readonly publicRequestsPerSecond: number;
  readonly failuresPerSecond: number;
  /** Addresses whose X-Forwarded-For is believed. */
  readonly trustedProxies: AddressSet;
};

export type GateParts = {
  readonly authenticator: Authenticator;
  /** One for accounts, one for addresses: neither can push the other out of its table. */
  readonly accounts: RateLimiter;
  readonly addresses: RateLimiter;
  readonly rules: GateRules;
  readonly monotonicMs: () => number;
  readonly readableOf: (userId: string) => ReadonlySet<FeedId>;
};

export type Gate = ReturnType<typeof createGate>;

export const createGate = ({ authenticator, accounts, addresses, rules, monotonicMs, readableOf }: GateParts) => {
  const limitOf = (caller: Caller, name: RouteName): number =>
    caller.rateLimits[name] ?? caller.rateLimits['*'] ?? rules.requestsPerSecond;
  const authenticate = (method: string, target: string, headers: RequestHeaders, nowMs: number): Caller => {
    if (headers.repeatedAuth !== undefined) {
      throw new ApiError('repeated_header', `${headers.repeatedAuth} is present more than once. Send it once.`, {
        header: headers.repeatedAuth,
      });
    }
    return authenticator.authenticate(method, target, headers, nowMs);
  };
  const limitPublic = (address: string, monotonicNowMs: number): void => {
    if (!addresses.take(`public ${address}`, rules.publicRequestsPerSecond, monotonicNowMs).allowed)
      throw new ApiError('rate_limited', 'Too many requests without authentication from this address.');
  };
  return {
    /** Takes a token of the address, for what needs no authentication. */
    limitPublic,
    /** The caller; undefined for an anonymous one where the route allows it. A failure from an address with too many of them is 429. */
    admit: (
      route: Route,
      method: string,
      target: string,
      headers: RequestHeaders,
      address: string,
      nowMs: number,
    ): Caller | undefined => {
      if (route.auth === 'none' || (route.auth === 'optional' && !hasAuth(headers))) return undefined;
      try {
        return authenticate(method, target, headers, nowMs);
      } catch (error) {
        const counted = error instanceof ApiError && statusOf(error) === 401;
        if (counted && !addresses.take(`failure ${address}`, rules.failuresPerSecond, monotonicMs()).allowed)
          throw errorOf('too_many_failures');
        throw error;
      }
    },
    /** Takes the request's cost in tokens, of the account or of an anonymous caller's address; an account's refusal is the pipeline's to answer. */
    limit: (
      caller: Caller | undefined,
      name: RouteName,
      route: Route,
      address: string,
      monotonicNowMs: number,
      cost: number,
    ): RateDecision | undefined => {
      if (caller === undefined) {
        if (route.auth === 'none') {
          limitPublic(address, monotonicNowMs);
          return undefined;
        }
        const decision = addresses.take(`anonymous ${address}`, rules.anonymousRequestsPerSecond, monotonicNowMs);
        if (!decision.allowed) throw new ApiError('rate_limited', 'Too many anonymous requests from this address.');
        return undefined;
      }
      return accounts.take(caller.bucketKeys[name], limitOf(caller, name), monotonicNowMs, cost);
    },
    /** Where the account's bucket stands, without taking from it: for answers that cost nothing. */
    stateOf: (caller: Caller, name: RouteName): RateDecision =>
      accounts.state(caller.bucketKeys[name], limitOf(caller, name), monotonicMs()),
    secretIdOf: authenticator.secretIdOf,
    readableOf: (caller: Caller): ReadonlySet<FeedId> => readableOf(caller.userId),
    /** The address that limits count. */
    addressOf: (peer: string | undefined, forwardedFor: string | undefined): string =>
      countedAddressOf(rules.trustedProxies, peer ?? '', forwardedFor),
  };
};

/** Entries of X-Forwarded-For that are read: more proxies in a row than anyone has. */
const hopsMax = 16;

/**
 * The address that limits count: from the peer leftwards through X-Forwarded-For, the first that is not a trusted proxy (D129). Each proxy
 * vouches for the entry before its own; what is left of a client's is the client's to write.
 */
export const countedAddressOf = (
  trustedProxies: AddressSet,
  peer: string,
  forwardedFor: string | undefined,
): string => {
  let client = peer;
  let rest = forwardedFor;
  for (let hop = 0; hop < hopsMax && rest !== undefined && trustedProxies.has(client); hop++) {
    const comma = rest.lastIndexOf(',');
    const entry = rest.slice(comma + 1).trim();
    if (limitedNetworkOf(entry) === undefined) break; // by such texts one client would count as many
    client = entry;
    rest = comma < 0 ? undefined : rest.slice(0, comma);
  }
  return limitedNetworkOf(client) ?? client;
};
