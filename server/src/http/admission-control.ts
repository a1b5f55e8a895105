// Admits requests: authentication as the route demands it, rate limits per account and address, and the streams that an account may read. Denies by
// default: a route that needs authentication cannot be reached without it (D21, D23).
import { ApiError, errorOf, type FeedId, type Route, type RouteName, statusOf } from '@sealpost/protocol';
import type { Authenticator, Caller } from '../access/authenticate.ts';
import type { RateDecision, RateLimiter } from '../access/rate-limit.ts';
import type { UseSignature } from '../access/used-signatures.ts';
import { type AddressSet, limitedNetworkOf } from '../runtime/ip-address.ts';
import { hasAuth, type RequestHeaders } from './headers.ts';

export type AdmissionRules = {
  readonly requestsPerSecond: number;
  readonly anonymousRequestsPerSecond: number;
  readonly publicRequestsPerSecond: number;
  readonly failuresPerSecond: number;
  /** Addresses whose X-Forwarded-For is believed. */
  readonly trustedProxies: AddressSet;
  readonly origins: readonly string[];
};

export type AdmissionParts = {
  readonly authenticator: Authenticator;
  /** One for accounts, one for addresses: neither can push the other out of its table. */
  readonly accounts: RateLimiter;
  readonly addresses: RateLimiter;
  readonly rules: AdmissionRules;
  readonly useSignature: UseSignature;
  readonly monotonicMs: () => number;
  readonly readableOf: (userId: string) => ReadonlySet<FeedId>;
};

export type AdmissionControl = ReturnType<typeof createAdmissionControl>;

/** Makes what to throw for an error: a 401 counts against its address, which gets 429 for too many of them. */
const createFailures =
  ({ addresses, rules, monotonicMs }: AdmissionParts) =>
  (error: unknown, address: string): unknown => {
    if (!(error instanceof ApiError) || statusOf(error) !== 401) return error;
    const { allowed } = addresses.take(`failure ${address}`, rules.failuresPerSecond, monotonicMs());
    return allowed ? error : errorOf('too_many_failures');
  };

/** Uses up the signature of a live request, before anything of the account's is counted: a replay costs it nothing (D250). */
const createSignatureUse =
  ({ useSignature, rules }: AdmissionParts, failureOf: ReturnType<typeof createFailures>) =>
  async ({ userId }: Caller, headers: RequestHeaders, address: string): Promise<void> => {
    const signature = String(headers.signature).toLowerCase(); // it was verified
    const origin = rules.origins.find((one) => one === headers.origin);
    const refusal = await useSignature({ userId, signature, origin });
    if (refusal === 'too_many_sockets')
      throw new ApiError(refusal, 'This account opens live connections too fast. Try again in some seconds.');
    if (refusal !== undefined) throw failureOf(errorOf(refusal), address);
  };

export function createAdmissionControl(parts: AdmissionParts) {
  const { authenticator, accounts, addresses, rules, monotonicMs, readableOf } = parts;
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
  const failureOf = createFailures(parts);
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
        throw failureOf(error, address);
      }
    },
    useSignature: createSignatureUse(parts, failureOf),
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
    /** The client's address, as the peer or a proxy writes it. */
    clientOf: (peer: string | undefined, forwardedFor: string | undefined): string =>
      clientAddressOf(rules.trustedProxies, peer ?? '', forwardedFor),
  };
}

/** Entries of X-Forwarded-For that are read: more proxies in a row than anyone has. */
const hopsMax = 16;

/** What limits count a client by. */
export const countedAddressOf = (client: string): string => limitedNetworkOf(client) ?? client;

/**
 * The client's address: from the peer leftwards through X-Forwarded-For, the first that is not a trusted proxy (D129). Each proxy
 * vouches for the entry before its own; what is left of a client's is the client's to write.
 */
export function clientAddressOf(trustedProxies: AddressSet, peer: string, forwardedFor: string | undefined): string {
  let client = peer;
  let rest = forwardedFor;
  for (let hop = 0; hop < hopsMax && rest !== undefined && trustedProxies.has(client); hop++) {
    const comma = rest.lastIndexOf(',');
    const entry = rest.slice(comma + 1).trim();
    if (limitedNetworkOf(entry) === undefined) break; // by such texts one client would count as many
    client = entry;
    rest = comma < 0 ? undefined : rest.slice(0, comma);
  }
  return client;
}
