// The connections of a stream: as many as its feed IDs need, once for each origin that the service names in answer to HEAD /.
import { limits } from '@sealpost/protocol';
import { backOffMs, type ReconnectRules, retryAfterMsOf, sleep } from '../backoff.ts';
import { SealpostError } from '../errors.ts';
import { raceSignal } from '../request/call.ts';
import { isAbsent } from '../request/extensions.ts';
import { paths } from '../request/paths.ts';
import type { Requester } from '../request/requester.ts';
import { type ConnectionParts, correctClock, isFinal, keepConnection } from './connection.ts';
import type { Sequence } from './sequence.ts';
import type { StateTracker } from './state.ts';
import { createWatchdog, handshakeMs, toRefusal } from './transport.ts';

const connectionsMax = limits.socketsPerAccount;

const tooMany = (what: string, connections: number): SealpostError =>
  new SealpostError(
    'invalid_option',
    `${what} need ${connections} connections, and an account may open ${connectionsMax}. Stream fewer, or split them over several accounts.`,
  );

/** The feed IDs of each connection: as many as the server takes in one. More than an account has connections for are refused. */
export const splitFeedIds = (feedIds: readonly string[]): readonly (readonly string[])[] => {
  const count = Math.ceil(feedIds.length / limits.feedIdsMax);
  if (count > connectionsMax) throw tooMany(`${feedIds.length} feed IDs`, count);
  return Array.from({ length: count }, (_, i) => feedIds.slice(i * limits.feedIdsMax, (i + 1) * limits.feedIdsMax));
};

/** Feed IDs that share a connection, and the order of their reports. */
export type Group = { readonly feedIds: readonly string[]; readonly sequence: Sequence };

export type GroupsParts = Omit<ConnectionParts, 'feedIds' | 'sequence'> & {
  readonly groups: readonly Group[];
  /** One connection for each origin of the service? */
  readonly ha: boolean;
  readonly tracker: StateTracker;
};

/** Where a server gives no codes, a 400 may mean it too; `isNamed`: an origin was named. */
const mayBeUnknownOrigin = (error: unknown, isNamed: boolean): error is SealpostError =>
  error instanceof SealpostError &&
  (error.code === 'unknown_origin' || (isNamed && error.isInferred && error.status === 400));

/** Keeps all connections until the stream ends; rejects with what ends it. */
export const keepConnections = async (parts: GroupsParts): Promise<void> => {
  const { groups, ha, tracker, requester, reconnect, random, signal } = parts;
  const tellAll = (reason: string, delayMs: number): void => {
    for (const group of groups.keys()) tracker.connection(group, undefined, { phase: 'reconnecting', reason, delayMs });
  };
  let refused: { readonly error: SealpostError; readonly origins: readonly string[] } | undefined;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const origins = ha ? await askOrigins(requester, reconnect, random, signal, tellAll) : [];
    if (refused?.error.isInferred && String(refused.origins) === String(origins)) throw refused.error;
    const connections = groups.length * origins.length;
    if (connections > connectionsMax) {
      const count = groups.flatMap(({ feedIds }) => feedIds).length;
      throw tooMany(`${count} feed IDs over ${origins.length} origins`, connections);
    }
    try {
      return await keepRound(parts, origins.length > 0 ? origins : [undefined]);
    } catch (error) {
      // The service has other origins than it had; which ones, it tells when it is asked again.
      if (!mayBeUnknownOrigin(error, origins.length > 0)) throw error;
      refused = { error, origins };
      const delayMs = backOffMs(reconnect, failures, random);
      tellAll(error.message, delayMs);
      await sleep(delayMs, signal);
    }
  }
};

/** One connection for each group and origin; when one is refused for good the others end too. */
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

/** Origins of one service at most, as many as an account may have sockets. */
const originsMax = 20;

/** Reads `{001,002}`; none where the header is absent or empty. */
export const parseOrigins = (header: string | null): readonly string[] => {
  const names = /^\{(.*)\}$/.exec(header?.trim() ?? '')?.[1]?.split(',') ?? [];
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))].slice(0, originsMax);
};

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

/** Asks the hosts of WebSockets, as the published SDKs do, one after the other until one answers; `onFailure` is told why each did not. */
const askOrigins = async (
  requester: Requester,
  reconnect: ReconnectRules,
  random: () => number,
  signal: AbortSignal,
  onFailure: (reason: string, delayMs: number) => void,
): Promise<readonly string[]> => {
  let hasCorrectedClock = false;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const urls = requester.wsUrls;
    try {
      return await askOnce(requester, urls[failures % urls.length] as string, signal); // there is at least one
    } catch (error) {
      if (signal.aborted) break;
      // A server without this question has no origins, nor has one that answers a signed GET and refuses this.
      if (isAbsent(error) || (isFinal(error) && hasCorrectedClock)) return [];
      if (isFinal(error)) {
        // An answer to HEAD has no body: a GET tells the time, or what is really wrong.
        hasCorrectedClock = true;
        await correctClock(requester, signal);
      }
      const delayMs = backOffMs(reconnect, failures, random, retryAfterMsOf(error));
      onFailure(error instanceof Error ? error.message : 'the request failed', delayMs);
      await sleep(delayMs, signal);
    }
  }
  return [];
};
