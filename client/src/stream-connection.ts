// Owns keeping one connection: opened, lost, waited for and opened again, until the stream ends or the server refuses for good.
import { routes } from '@sealpost/protocol';
import { isSkewedByDate } from './clock.ts';
import { SealpostError } from './errors.ts';
import { isAbsent } from './extensions.ts';
import type { Requester } from './requester.ts';
import { backOffMs, type ReconnectRules, sleep } from './stream-pause.ts';
import type { Valve } from './stream-queue.ts';
import type { Link, Sequence } from './stream-sequence.ts';
import type { Transport } from './stream-transport.ts';

/** Where one connection stands. */
export type ConnectionState =
  | { readonly phase: 'connecting' }
  | { readonly phase: 'live' }
  | { readonly phase: 'reconnecting'; readonly reason: string; readonly delayMs: number };

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

/** How long the server asks to wait. */
export const retryAfterMsOf = (error: unknown): number | undefined => {
  const seconds = error instanceof SealpostError ? error.details.retryAfterSeconds : undefined;
  return typeof seconds === 'number' ? seconds * 1_000 : undefined;
};

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

/** Single attempts that remember where the one before ended. */
const createAttempts = (origin: string | undefined, parts: ConnectionParts, onLive: () => void) => {
  const { requester, feedIds, transport, sequence, valve, silenceMs, signal } = parts;
  let link: Link = { origin };
  let at: { readonly baseUrl: string; readonly position: string } | undefined;
  let hasCorrectedClock = false;

  const attempt = async (baseUrl: string, wsUrl: string): Promise<Attempt> => {
    const position = at?.baseUrl === baseUrl ? at.position : undefined;
    let openedMs: number | undefined;
    const handlers = {
      opened: () => {
        openedMs = performance.now();
        hasCorrectedClock = false;
        // Without a position this is another connection: what the last one carried says nothing about it.
        if (position === undefined) [link, at] = [{ origin }, undefined];
        sequence.opened(link, position !== undefined);
        onLive();
      },
      report: (report: Parameters<Sequence['receive']>[1], id: string | undefined) => {
        sequence.receive(link, report);
        if (id !== undefined) at = { baseUrl, position: id };
      },
      missed: (id: string | undefined) => {
        // Another link: what is still being read over REST for the old one does not cover it.
        sequence.closed(link);
        link = { origin };
        sequence.opened(link, true);
        sequence.missed();
        at = id === undefined ? undefined : { baseUrl, position: id };
      },
    };
    const { get, sign, fetch, nowMs } = requester;
    const startedMs = nowMs();
    const request = { baseUrl, wsUrl, feedIds, origin, get, sign, fetch, nowMs, position, valve, silenceMs, signal };
    const liveMs = (): number => (openedMs === undefined ? 0 : Math.max(1, performance.now() - openedMs));
    try {
      return { ended: await transport(request, handlers), liveMs: liveMs() };
    } catch (error) {
      const failed = { ended: wordsOf(error), liveMs: liveMs(), retryAfterMs: retryAfterMsOf(error) };
      if (!isFinal(error)) return failed;
      if (position !== undefined && isPositionRefusal(error)) {
        // Of another server, it seems: begin anew, and read what lies between over REST.
        at = undefined;
        return failed;
      }
      if (hasCorrectedClock || !isClockRefusal(error, startedMs)) throw error;
      hasCorrectedClock = true;
      await correctClock(requester, signal);
      return failed;
    } finally {
      sequence.closed(link);
    }
  };
  return attempt;
};

const isPositionRefusal = (error: unknown): boolean =>
  error instanceof SealpostError && error.details.header === 'Last-Event-ID';

const isClockRefusal = (error: unknown, signedMs: number): boolean =>
  error instanceof SealpostError && (error.code === 'clock_skew' || isSkewedByDate(error, signedMs));

/** Lets the requester correct its clock, as it does in any signed call; throws what no correction helps against. */
export const correctClock = async (requester: Requester, signal: AbortSignal): Promise<void> => {
  // Small, and on nearly every server; the other one is in the specification.
  for (const target of [routes.feeds.path, routes.discovery.path])
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
