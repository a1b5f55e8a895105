// The connections of a stream: as many as its feed IDs need and, with `ha`, for each origin that the service lists in HEAD /.
import { limits } from '@sealpost/protocol';
import { backOffMs, type ReconnectRules, retryAfterMsOf, sleep } from '../backoff.ts';
import { SealpostError } from '../errors.ts';
import { raceSignal } from '../request/call.ts';
import { createHolds } from '../request/endpoints.ts';
import { isAbsent } from '../request/extensions.ts';
import { paths } from '../request/paths.ts';
import type { Requester } from '../request/requester.ts';
import { type ConnectionParts, correctClock, isFinal, keepConnection, wordsOf } from './connection.ts';
import type { Sequence } from './sequence.ts';
import type { StateTracker } from './state.ts';
import { createWatchdog, handshakeMs, toRefusal } from './transport.ts';

const connectionsMax = limits.socketsPerAccount;

const tooMany = (what: string, connections: number): SealpostError =>
  new SealpostError(
    'invalid_option',
    `${what} need ${connections} connections, and an account may open ${connectionsMax}. Stream fewer, or split them over several accounts.`,
  );

/** Splits feed IDs into as few connections as possible. Throws if an account may not open that many. */
export function splitFeedIds(feedIds: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(feedIds.length / limits.feedIdsMax);
  if (count > connectionsMax) throw tooMany(`${feedIds.length} feed IDs`, count);
  return Array.from({ length: count }, (_, i) => feedIds.slice(i * limits.feedIdsMax, (i + 1) * limits.feedIdsMax));
}

/** Feed IDs that share a connection, and the order of their reports. */
export type Group = { readonly feedIds: readonly string[]; readonly sequence: Sequence };

export type GroupsParts = Omit<ConnectionParts, 'feedIds' | 'sequence'> & {
  readonly groups: readonly Group[];
  /** One connection per origin of the service. */
  readonly ha: boolean;
  readonly tracker: StateTracker;
};

/** Whether the origin is unknown: by the code or, on a server without codes, a 400 to a request that named one (`isNamed`). */
const mayBeUnknownOrigin = (error: unknown, isNamed: boolean): error is SealpostError =>
  error instanceof SealpostError &&
  (error.code === 'unknown_origin' || (isNamed && error.isInferred && error.status === 400));

/** Keeps all connections until the stream ends; rejects with what ends it. */
export async function keepGroups(parts: GroupsParts): Promise<void> {
  const { groups, ha, tracker, requester, reconnect, random, signal } = parts;
  const reportAll = (reason: string, delayMs: number): void => {
    for (const group of groups.keys()) tracker.connection(group, undefined, { phase: 'reconnecting', reason, delayMs });
  };
  let refused: { readonly error: SealpostError; readonly origins: readonly string[] } | undefined;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const origins = ha ? await askOrigins(requester, reconnect, random, signal, reportAll) : [];
    if (refused?.error.isInferred && String(refused.origins) === String(origins)) throw refused.error;
    const connections = groups.length * origins.length;
    if (connections > connectionsMax) {
      const count = groups.flatMap(({ feedIds }) => feedIds).length;
      throw tooMany(`${count} feed IDs over ${origins.length} origins`, connections);
    }
    try {
      return await keepRound(parts, origins.length > 0 ? origins : [undefined]);
    } catch (error) {
      // The origins of the service have changed: read them again.
      if (!mayBeUnknownOrigin(error, origins.length > 0)) throw error;
      refused = { error, origins };
      const delayMs = backOffMs(reconnect, failures, random);
      reportAll(error.message, delayMs);
      await sleep(delayMs, signal);
    }
  }
}

/** One connection per group and origin; a final error of one ends the others. */
const keepRound = async (
  { groups, tracker, ...connection }: GroupsParts,
  origins: readonly (string | undefined)[],
): Promise<void> => {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  connection.signal.addEventListener('abort', abort);
  try {
    await Promise.all(
      groups.flatMap((group, i) =>
        origins.map((origin) =>
          keepConnection(origin, { ...connection, ...group, signal: controller.signal }, (state) =>
            tracker.connection(i, origin, state),
          ),
        ),
      ),
    );
  } finally {
    connection.signal.removeEventListener('abort', abort);
    abort();
  }
};

/** Most origins of a service, as many as an account may open sockets. */
const originsMax = 20;

/** Parses `{001,002}`; none if the header is absent or empty. */
export function parseOrigins(header: string | null): readonly string[] {
  const names = /^\{(.*)\}$/.exec(header?.trim() ?? '')?.[1]?.split(',') ?? [];
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))].slice(0, originsMax);
}

const askOnce = async (requester: Requester, url: string, signal: AbortSignal): Promise<readonly string[]> => {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const watchdog = createWatchdog(handshakeMs, abort);
  signal.addEventListener('abort', abort);
  watchdog.touch();
  try {
    const { headers } = await raceSignal(requester.sign('HEAD', paths.origins), controller.signal);
    const init = {
      method: 'HEAD',
      headers,
      redirect: 'manual',
      credentials: 'omit',
      signal: controller.signal,
    } as const;
    const response = await requester.fetch(`${url}${paths.origins}`, init);
    if (response.status === 200) return parseOrigins(response.headers.get('X-Cll-Available-Origins'));
    const { status, headers: told } = response;
    throw toRefusal({ status, headers: told, text: '' }, url, requester.nowMs);
  } finally {
    watchdog.stop();
    signal.removeEventListener('abort', abort);
  }
};

/** Requests the origins from the WebSocket hosts, as the published SDKs do, one after the other until one answers; calls `onFailure` for each that fails. */
const askOrigins = async (
  requester: Requester,
  reconnect: ReconnectRules,
  random: () => number,
  signal: AbortSignal,
  onFailure: (reason: string, delayMs: number) => void,
): Promise<readonly string[]> => {
  let hasCorrectedClock = false;
  const { hold, remainingMs } = createHolds(() => performance.now());
  const urlOf = (attempt: number): string => requester.wsUrls[attempt % requester.wsUrls.length] as string; // there is at least one
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      return await askOnce(requester, urlOf(failures), signal);
    } catch (error) {
      if (signal.aborted) break;
      // A server without this route has no origins, nor has one that answers a signed GET but rejects this.
      if (isAbsent(error) || (isFinal(error) && hasCorrectedClock)) return [];
      if (isFinal(error)) {
        // A response to HEAD has no body: a GET has the server's time, or the real error.
        hasCorrectedClock = true;
        await correctClock(requester, signal);
      }
      hold(retryAfterMsOf(error), urlOf(failures));
      const delayMs = backOffMs(reconnect, failures, random, remainingMs(urlOf(failures + 1)));
      onFailure(wordsOf(error), delayMs);
      await sleep(delayMs, signal);
    }
  }
  return [];
};
