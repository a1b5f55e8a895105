// Owns the connections of a stream: as many as its feed ids need, once for each origin, begun anew where the origins have changed.
import { limits } from '@sealpost/protocol';
import { SealpostError } from '../errors.ts';
import { type ConnectionParts, keepConnection } from './connection.ts';
import { askOrigins } from './origins.ts';
import { backOffMs, sleep } from './pause.ts';
import type { Sequence } from './sequence.ts';
import type { StateTeller } from './state.ts';

const connectionsMax = limits.socketsPerAccount;

const tooMany = (what: string, connections: number): SealpostError =>
  new SealpostError(
    'invalid_option',
    `${what} take ${connections} connections, and an account may have ${connectionsMax} open. Stream fewer, or share them among accounts.`,
  );

/** The feed ids of each connection: as many as the server takes in one. More than an account has connections for are refused. */
export const splitFeedIds = (feedIds: readonly string[]): readonly (readonly string[])[] => {
  const count = Math.ceil(feedIds.length / limits.feedIdsMax);
  if (count > connectionsMax) throw tooMany(`${feedIds.length} feed ids`, count);
  return Array.from({ length: count }, (_, i) => feedIds.slice(i * limits.feedIdsMax, (i + 1) * limits.feedIdsMax));
};

/** Feed ids that share a connection, and the order of their reports. */
export type Group = { readonly feedIds: readonly string[]; readonly sequence: Sequence };

export type GroupsParts = Omit<ConnectionParts, 'feedIds' | 'sequence'> & {
  readonly groups: readonly Group[];
  /** One connection for each origin of the service? */
  readonly ha: boolean;
  readonly teller: StateTeller;
};

/** Where a server gives no codes, a 400 may mean it too; `isNamed`: an origin was named. */
const mayBeUnknownOrigin = (error: unknown, isNamed: boolean): error is SealpostError =>
  error instanceof SealpostError &&
  (error.code === 'unknown_origin' || (isNamed && error.isInferred && error.status === 400));

/** Keeps all connections until the stream ends; rejects with what ends it. */
export const keepConnections = async (parts: GroupsParts): Promise<void> => {
  const { groups, ha, teller, requester, reconnect, random, signal } = parts;
  const tellAll = (reason: string, delayMs: number): void => {
    for (const group of groups.keys()) teller.connection(group, undefined, { phase: 'reconnecting', reason, delayMs });
  };
  let refused: { readonly error: SealpostError; readonly origins: readonly string[] } | undefined;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const origins = ha ? await askOrigins(requester, reconnect, random, signal, tellAll) : [];
    if (refused?.error.isInferred && String(refused.origins) === String(origins)) throw refused.error;
    const connections = groups.length * origins.length;
    if (connections > connectionsMax) {
      const count = groups.flatMap(({ feedIds }) => feedIds).length;
      throw tooMany(`${count} feed ids over ${origins.length} origins`, connections);
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
  { groups, teller, ...connection }: GroupsParts,
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
            teller.connection(i, origin, state),
          ),
        ),
      ),
    );
  } finally {
    connection.signal.removeEventListener('abort', abort);
    abort();
  }
};
