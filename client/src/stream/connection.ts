// Keeps one connection open: reconnects with back-off until the stream ends or the server rejects it for good.

import { backOffMs, type ReconnectRules, retryAfterMsOf, sleep } from '../backoff.ts';
import { SealpostError } from '../errors.ts';
import { isKeyRefused } from '../request/attempt.ts';
import { raceSignal } from '../request/call.ts';
import { isSkewedByDate } from '../request/clock.ts';
import { isAbsent } from '../request/extensions.ts';
import { paths } from '../request/paths.ts';
import type { Requester, SignedHeaders } from '../request/requester.ts';
import type { Valve } from './queue.ts';
import type { Link, Sequence } from './sequence.ts';
import type { ConnectionState } from './state.ts';
import type { Transport } from './transport.ts';

export type ConnectionParts = {
  readonly requester: Requester;
  readonly feedIds: readonly string[];
  readonly transport: Transport;
  readonly sequence: Sequence;
  readonly valve: Valve;
  readonly silenceMs: number;
  readonly reconnect: ReconnectRules;
  readonly random: () => number;
  readonly signal: AbortSignal;
};

/** True when the same request fails again. An answer that is not Sealpost's may be a proxy's that passes. */
export const isFinal = (error: unknown): boolean =>
  error instanceof SealpostError && !error.retryable && error.code !== 'unexpected_answer';

type Attempt = { readonly ended: string; readonly liveMs: number; readonly retryAfterMs?: number | undefined };

/** Keeps a connection to one origin. Resolves when the signal is aborted, rejects with a refusal that is final. */
export const keepConnection = async (
  origin: string | undefined,
  parts: ConnectionParts,
  tell: (state: ConnectionState) => void,
): Promise<void> => {
  const { requester, reconnect, random, signal } = parts;
  const connect = createAttempts(origin, parts, () => tell({ phase: 'live' }));
  tell({ phase: 'connecting' });
  for (let [failures, turn] = [0, 0]; !signal.aborted; turn += 1) {
    const [baseUrl, wsUrl] = [requester.baseUrls, requester.wsUrls].map((urls) => urls[turn % urls.length]);
    const { ended, liveMs, retryAfterMs } = await connect(baseUrl as string, wsUrl as string); // there is at least one of each
    if (signal.aborted) return;
    if (liveMs >= reconnect.stableMs) failures = 0;
    // One that was live is tried at the same place first.
    if (liveMs > 0) turn -= 1;
    const delayMs = backOffMs(reconnect, failures, random, retryAfterMs);
    failures += 1;
    tell({ phase: 'reconnecting', reason: ended, delayMs });
    await sleep(delayMs, signal);
  }
};

/** What attempts of one connection remember of each other. */
type Memory = {
  link: Link;
  at: { readonly baseUrl: string; readonly position: string } | undefined;
  hasCorrectedClock: boolean;
  hasRenewedKey: boolean;
};

/** Single attempts that remember where the one before ended. */
const createAttempts = (origin: string | undefined, parts: ConnectionParts, onLive: () => void) => {
  const { requester, feedIds, transport, sequence, valve, silenceMs, signal } = parts;
  const memory: Memory = { link: { origin }, at: undefined, hasCorrectedClock: false, hasRenewedKey: false };

  const attempt = async (baseUrl: string, wsUrl: string): Promise<Attempt> => {
    const position = memory.at?.baseUrl === baseUrl ? memory.at.position : undefined;
    let [openedMs, signed]: [number | undefined, SignedHeaders | undefined] = [undefined, undefined];
    let [reports, bytes] = [0, 0];
    const handlers = {
      opened: () => {
        openedMs = performance.now();
        Object.assign(memory, { hasCorrectedClock: false, hasRenewedKey: false });
        // Without a position this is another connection: what the last one carried says nothing about it.
        if (position === undefined) Object.assign(memory, { link: { origin }, at: undefined });
        sequence.opened(memory.link, position !== undefined);
        onLive();
      },
      received: (count: number) => {
        bytes += count;
      },
      report: (report: Parameters<Sequence['receive']>[1], id: string | undefined) => {
        reports += 1;
        sequence.receive(memory.link, report);
        if (id !== undefined) memory.at = { baseUrl, position: id };
      },
      missed: (id: string | undefined) => {
        // Another link: what is still being read over REST for the old one does not cover it.
        sequence.closed(memory.link);
        memory.link = { origin };
        sequence.opened(memory.link, true);
        sequence.missed();
        memory.at = id === undefined ? undefined : { baseUrl, position: id };
      },
    };
    const sign = async (method: 'GET', target: string) => {
      signed = await raceSignal(requester.sign(method, target), signal);
      return signed.headers;
    };
    const { get, fetch, nowMs, emit } = requester;
    const startedMs = nowMs();
    const request = { baseUrl, wsUrl, feedIds, origin, get, sign, fetch, nowMs, position, valve, silenceMs, signal };
    const liveMs = (): number => (openedMs === undefined ? 0 : Math.max(1, performance.now() - openedMs));
    const tell = (reason: string): void =>
      emit({ kind: 'disconnected', url: wsUrl, feedIds, reason, liveMs: liveMs(), reports, bytes });
    try {
      const ended = await transport(request, handlers);
      tell(ended);
      return { ended, liveMs: liveMs() };
    } catch (error) {
      tell(wordsOf(error));
      const failed = { ended: wordsOf(error), liveMs: liveMs(), retryAfterMs: retryAfterMsOf(error) };
      if (isFinal(error)) await mend(error, memory, { position, signed, startedMs }, parts);
      return failed;
    } finally {
      sequence.closed(memory.link);
    }
  };
  return attempt;
};

/** How an attempt was made that was refused. */
type Tried = {
  readonly position: string | undefined;
  readonly signed: SignedHeaders | undefined;
  readonly startedMs: number;
};

/** Removes what a refusal is about, so that the next attempt may succeed; throws the refusal where nothing helps. */
const mend = async (
  error: unknown,
  memory: Memory,
  { position, signed, startedMs }: Tried,
  { requester, signal }: ConnectionParts,
): Promise<void> => {
  if (position !== undefined && isPositionRefusal(error)) {
    // Of another server, it seems: begin anew, and read what lies between over REST.
    memory.at = undefined;
    return;
  }
  if (error instanceof SealpostError && isKeyRefused(error) && !memory.hasRenewedKey && signed !== undefined) {
    memory.hasRenewedKey = true;
    // A function that fails to give the secret is asked again at the next attempt.
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

/** Lets the requester correct its clock, as it does in any signed call; throws what no correction helps against. */
export const correctClock = async (requester: Requester, signal: AbortSignal): Promise<void> => {
  // Small, and on nearly every server; the other one is in the specification.
  for (const target of [paths.feeds, paths.discovery])
    try {
      await requester.get(target, { signal });
      return;
    } catch (error) {
      if (isAbsent(error)) continue;
      if (isFinal(error)) throw error;
      return;
    }
};

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : 'the connection failed');
