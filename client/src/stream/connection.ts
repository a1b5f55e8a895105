// Keeps one connection open: reconnects with back-off until the stream ends or the server rejects it for good.

import { backOffMs, type ReconnectRules, retryAfterMsOf, sleep } from '../backoff.ts';
import { SealpostError } from '../errors.ts';
import { isKeyRefused } from '../request/attempt.ts';
import { raceSignal } from '../request/call.ts';
import { isSkewedByDate } from '../request/clock.ts';
import { createHolds, type Holds } from '../request/endpoints.ts';
import { isAbsent } from '../request/extensions.ts';
import { paths } from '../request/paths.ts';
import type { Requester, SignedHeaders } from '../request/requester.ts';
import type { Backpressure } from './queue.ts';
import type { ConnectionKey, Sequence } from './sequence.ts';
import type { ConnectionState } from './state.ts';
import { silentFor, type Transport } from './transport.ts';

export type ConnectionParts = {
  readonly requester: Requester;
  readonly feedIds: readonly string[];
  readonly transport: Transport;
  readonly sequence: Sequence;
  readonly backpressure: Backpressure;
  readonly silenceMs: number;
  readonly reconnect: ReconnectRules;
  readonly random: () => number;
  readonly signal: AbortSignal;
};

/** True when a retry fails too. A response that is not Sealpost's may come from a proxy, temporarily; a used signature is another one the next time. */
export const isFinal = (error: unknown): boolean =>
  error instanceof SealpostError && !error.retryable && !['unexpected_answer', 'signature_used'].includes(error.code);

/** The message of an error, for people. */
export const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : 'the connection failed');

type Attempt = {
  /** Why it ended. */
  readonly reason: string;
  /** Time since the connection opened; 0 if it never did. */
  readonly liveMs: number;
  /** Reports that it received. */
  readonly reports: number;
  readonly retryAfterMs: number;
};

/** The addresses of one server. */
type Server = { readonly baseUrl: string; readonly wsUrl: string };

/** As many steps after the last URL. The list may have been rotated since, because calls fail over too. */
const urlAfter = (urls: readonly string[], last: string, steps: number): string =>
  urls[(urls.indexOf(last) + steps) % urls.length] as string; // there is at least one, and the first attempt is one step

/** The last server (no step) or the one after it (one step). If it is held, another that is not, or the one that is free first. */
const serverAfter = (last: Server, steps: 0 | 1, { baseUrls, wsUrls }: Requester, { remainingMs }: Holds): Server => {
  const servers = Array.from({ length: Math.max(baseUrls.length, wsUrls.length) }, (_, i) => ({
    baseUrl: urlAfter(baseUrls, last.baseUrl, steps + i),
    wsUrl: urlAfter(wsUrls, last.wsUrl, steps + i),
  }));
  const waitMs = ({ baseUrl, wsUrl }: Server): number => remainingMs(baseUrl, wsUrl);
  return servers.reduce((best, one) => (waitMs(one) < waitMs(best) ? one : best));
};

/** Keeps a connection to one origin. Resolves when the signal is aborted, rejects with a final error. */
export async function keepConnection(
  origin: string | undefined,
  parts: ConnectionParts,
  reportState: (state: ConnectionState) => void,
): Promise<void> {
  const { requester, silenceMs, reconnect, random, signal } = parts;
  const connect = createAttempts(origin, parts, () => reportState({ phase: 'live' }));
  const holds = createHolds(() => performance.now());
  let [server, failures] = [serverAfter({ baseUrl: '', wsUrl: '' }, 1, requester, holds), 0];
  reportState({ phase: 'connecting' });
  while (!signal.aborted) {
    const { reason, liveMs, reports, retryAfterMs } = await connect(server);
    if (signal.aborted) return;
    holds.hold(retryAfterMs, server.baseUrl, server.wsUrl);
    const isSilent = reason === silentFor(silenceMs);
    // The silence at the end does not count: it would make a server stable that never sends anything.
    const isStable = liveMs > 0 && liveMs - (isSilent ? silenceMs : 0) >= reconnect.stableMs;
    if (isStable) failures = 0;
    // A server that has worked is tried first. One that accepts connections only to drop or ignore them is left.
    server = serverAfter(server, isStable || (reports > 0 && !isSilent) ? 0 : 1, requester, holds);
    const delayMs = backOffMs(reconnect, failures, random, holds.remainingMs(server.baseUrl, server.wsUrl));
    failures += 1;
    reportState({ phase: 'reconnecting', reason, delayMs });
    await sleep(delayMs, signal);
  }
}

/** State that the attempts of one connection share. */
type Memory = {
  connection: ConnectionKey;
  at: { readonly baseUrl: string; readonly position: string } | undefined;
  hasCorrectedClock: boolean;
  hasRenewedKey: boolean;
};

/** Makes single attempts that resume where the previous one ended. */
const createAttempts = (origin: string | undefined, parts: ConnectionParts, onLive: () => void) => {
  const { requester, feedIds, transport, sequence, backpressure, silenceMs, signal } = parts;
  const memory: Memory = { connection: { origin }, at: undefined, hasCorrectedClock: false, hasRenewedKey: false };

  const attempt = async ({ baseUrl, wsUrl }: Server): Promise<Attempt> => {
    const position = memory.at?.baseUrl === baseUrl ? memory.at.position : undefined;
    let [openedMs, signed]: [number | undefined, SignedHeaders | undefined] = [undefined, undefined];
    let [reports, bytes] = [0, 0];
    const handlers = {
      opened: () => {
        openedMs = performance.now();
        Object.assign(memory, { hasCorrectedClock: false, hasRenewedKey: false });
        // Without a position this is a new connection: it does not continue the last one.
        if (position === undefined) Object.assign(memory, { connection: { origin }, at: undefined });
        sequence.opened(memory.connection, position !== undefined);
        onLive();
      },
      received: (count: number) => {
        bytes += count;
      },
      report: (report: Parameters<Sequence['receive']>[1], id: string | undefined) => {
        reports += 1;
        sequence.receive(memory.connection, report);
        if (id !== undefined) memory.at = { baseUrl, position: id };
      },
      missed: (id: string | undefined) => {
        // A new connection: a backfill that runs for the old one does not cover it.
        sequence.closed(memory.connection);
        memory.connection = { origin };
        sequence.opened(memory.connection, true);
        sequence.missed();
        memory.at = id === undefined ? undefined : { baseUrl, position: id };
      },
    };
    const sign = async (method: 'GET', target: string) => {
      signed = await raceSignal(requester.sign(method, target), signal);
      return signed.headers;
    };
    const { get, bounds, fetch, nowMs, emit } = requester;
    const startedMs = nowMs();
    const options = { feedIds, origin, backpressure, silenceMs, signal };
    const request = { ...options, baseUrl, wsUrl, get, bounds, sign, fetch, nowMs, position };
    const end = (reason: string, retryAfterMs = 0): Attempt => {
      const liveMs = openedMs === undefined ? 0 : Math.max(1, performance.now() - openedMs);
      emit({ kind: 'disconnected', url: wsUrl, feedIds, reason, liveMs, reports, bytes });
      return { reason, liveMs, reports, retryAfterMs };
    };
    try {
      return end(await transport(request, handlers));
    } catch (error) {
      const failed = end(wordsOf(error), retryAfterMsOf(error));
      if (isFinal(error)) await recover(error, memory, { position, signed, startedMs }, parts);
      return failed;
    } finally {
      sequence.closed(memory.connection);
    }
  };
  return attempt;
};

/** The attempt that was rejected. */
type Tried = {
  readonly position: string | undefined;
  readonly signed: SignedHeaders | undefined;
  readonly startedMs: number;
};

/** Fixes the cause of a rejection, so that the next attempt may succeed; throws it where there is no fix. */
const recover = async (
  error: unknown,
  memory: Memory,
  { position, signed, startedMs }: Tried,
  { requester, signal }: ConnectionParts,
): Promise<void> => {
  if (position !== undefined && isPositionRefusal(error)) {
    // The position is probably another server's: start over, and read the gap over REST.
    memory.at = undefined;
    return;
  }
  if (error instanceof SealpostError && isKeyRefused(error) && !memory.hasRenewedKey && signed !== undefined) {
    memory.hasRenewedKey = true;
    // A secret function that fails is called again at the next attempt.
    if (await raceSignal(requester.renew(signed), signal).catch((failure) => !isFinal(failure))) return;
  }
  if (memory.hasCorrectedClock || !isClockRefusal(error, startedMs)) throw error;
  memory.hasCorrectedClock = true;
  await correctClock(requester, signal);
};

const isPositionRefusal = (error: unknown): boolean =>
  error instanceof SealpostError && error.details.header === 'Last-Event-ID';

const isClockRefusal = (error: unknown, signedMs: number): boolean =>
  error instanceof SealpostError && (error.code === 'clock_skew' || isSkewedByDate(error, signedMs));

/** Has the requester correct its clock, as any signed call does; throws an error that is not about the clock. */
export async function correctClock(requester: Requester, signal: AbortSignal): Promise<void> {
  // The first is small, and on nearly every server; the second is in the specification.
  for (const target of [paths.feeds, paths.discovery])
    try {
      await requester.get(target, { signal });
      return;
    } catch (error) {
      if (isAbsent(error)) continue;
      if (isFinal(error)) throw error;
      return;
    }
}
