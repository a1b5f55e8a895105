// Chooses the server for reads of history (D87): a replica that has caught up with all that this process has shown of the requested streams, in `latest`
// or in history; the primary otherwise. So no answer is older than an earlier one.
import type { FeedId } from '@sealpost/protocol';
import { createCoalescer } from '../../runtime/coalesce.ts';
import { createFailureState, type FailureState } from '../../runtime/failure-state.ts';
import { StoreError } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Run } from './connection.ts';
import type { HistoryReads } from './reads.ts';
import { markColumn, markOf } from './rows.ts';
import type { Tables } from './schema.ts';

/** A replica that does not answer is left alone for so long. */
const restMs = 1_000;

/** A server with the readings on it. */
export type ReadServer = { readonly reads: HistoryReads; readonly run: Run };
/** With its address, without secrets. */
export type ReplicaServer = ReadServer & { readonly shown: string };

export type ReplicaParts = {
  readonly primary: ReadServer;
  readonly replicas: readonly ReplicaServer[];
  readonly tables: Tables;
  readonly feed: Pick<ChangeFeed, 'positionOf' | 'reached' | 'recognizes'>;
  readonly tell: (event: StoreEvent) => void;
};

type Read<T> = (reads: HistoryReads) => Promise<T>;

/** Readings of history that go to replicas where they may. */
export function createReplicaReads({ primary, replicas: servers, tables, feed, tell }: ReplicaParts): HistoryReads {
  const replicas = servers.map((server) => createReplica(server, tables, feed, tell));
  const shown = createShown(feed);
  const route = async <T>(feedIds: readonly FeedId[], read: Read<T>): Promise<T> => {
    const { upTo, note } = shown.begin(feedIds);
    const tried = (await chooseReplica(replicas, feedIds)?.tryTo(read, upTo)) ?? 'away';
    tell({ kind: 'historyRead', by: typeof tried === 'string' ? tried : 'replica' });
    if (typeof tried !== 'string') {
      note(tried.position);
      return tried.answer;
    }
    const answer = await read(primary.reads);
    const end = await readEnd(primary.run, tables).catch(() => undefined);
    note(end?.position);
    return answer;
  };
  return {
    at: (feedIds, ...rest) => route(feedIds, ({ at }) => at(feedIds, ...rest)),
    renderedAt: (feedIds, ...rest) => route(feedIds, ({ renderedAt }) => renderedAt(feedIds, ...rest)),
    page: (feedId, ...rest) => route([feedId], ({ page }) => page(feedId, ...rest)),
    renderedPage: (feedId, ...rest) => route([feedId], ({ renderedPage }) => renderedPage(feedId, ...rest)),
    neighbours: (feedId, ...rest) => route([feedId], ({ neighbours }) => neighbours(feedId, ...rest)),
    windows: (feedId, ...rest) => route([feedId], ({ windows }) => windows(feedId, ...rest)),
    candles: (feedId, ...rest) => route([feedId], ({ candles }) => candles(feedId, ...rest)),
  };
}

/** How far a server must have got so that nothing is missing that was shown of a stream; Infinity: only the primary is sure to. */
export function createShown({ positionOf }: Pick<ChangeFeed, 'positionOf'>) {
  const positions = new Map<FeedId, number>();
  /** Streams that the primary answered for without telling afterwards where it was, by the moment of that. */
  const unsure = new Map<FeedId, number>();
  let moment = 0;
  const upToOne = (feedId: FeedId): number =>
    unsure.has(feedId)
      ? Number.POSITIVE_INFINITY
      : Math.max(positions.get(feedId) ?? 0, positionOf(feedId) ?? Number.POSITIVE_INFINITY);
  return {
    /** A reading of streams begins. */
    begin: (feedIds: readonly FeedId[]) => {
      const began = ++moment;
      /** A server has answered that was at `position` afterwards. Readings that began before something unsure was shown make it no surer. */
      const note = (position: number | undefined): void => {
        for (const feedId of feedIds) {
          // Streams without reports are not remembered: requests for unknown feed IDs must not fill the memory.
          if (positionOf(feedId) === 0) continue;
          if (position === undefined) unsure.set(feedId, ++moment);
          else {
            positions.set(feedId, Math.max(positions.get(feedId) ?? 0, position));
            if ((unsure.get(feedId) ?? began) < began) unsure.delete(feedId);
          }
        }
      };
      return { upTo: Math.max(0, ...feedIds.map(upToOne)), note };
    },
  };
}

type Tried<T> = { readonly answer: T; readonly position: number } | 'behind' | 'away';

type Replica = {
  readonly isResting: () => boolean;
  /** Reads if this replica has reached a position; returns the position that it had reached after the read. */
  readonly tryTo: <T>(read: Read<T>, upTo: number) => Promise<Tried<T>>;
};

/** The same replica for the same streams, so that their history is read from one moment on; another one while that does not answer. */
const chooseReplica = (replicas: readonly Replica[], feedIds: readonly FeedId[]): Replica | undefined => {
  const first = Number.parseInt(feedIds[0]?.slice(-6) ?? '', 16) || 0;
  const inOrder = replicas.map((_, i) => replicas[(first + i) % replicas.length] as Replica); // within bounds
  return inOrder.find(({ isResting }) => !isResting());
};

/** The position of a server that follows another primary. */
const elsewhere = -1;

export type ReplicaUse = Pick<FailureState<string>, 'failed' | 'worked'>;

/** Reports once when a replica has served no read of history for a while, and once when it serves again. */
export const createReplicaUse = (
  replica: string,
  tell: (event: StoreEvent) => void,
  nowMs?: () => number,
): ReplicaUse =>
  createFailureState({
    // To be behind for a moment is normal.
    graceMs: 10_000,
    attemptsMin: 5,
    began: (reason) => tell({ kind: 'replicaUnused', replica, reason }),
    ended: (seconds) => tell({ kind: 'replicaUsed', replica, seconds }),
    nowMs,
  });

const createReplica = (
  { reads, run, shown }: ReplicaServer,
  t: Tables,
  feed: Pick<ChangeFeed, 'reached' | 'recognizes'>,
  tell: (event: StoreEvent) => void,
): Replica => {
  const use = createReplicaUse(shown, tell);
  let position = elsewhere;
  let restsUntilMs = 0;
  const { wake: look } = createCoalescer(async () => {
    const reached = feed.reached();
    const end = await readEnd(run, t, reached.position);
    const isAhead = reached.mark === undefined ? end.position >= reached.position : end.markAt === reached.mark;
    // One that is neither ahead of this process on its way, nor somewhere on it, follows another primary.
    position = isAhead || feed.recognizes(end) ? end.position : elsewhere;
  });
  return {
    isResting: () => performance.now() < restsUntilMs,
    tryTo: async (read, upTo) => {
      try {
        if (position < upTo && upTo !== Number.POSITIVE_INFINITY) await look();
        if (position < upTo) {
          // At Infinity it is the primary that did not tell how far a replica must be.
          if (upTo !== Number.POSITIVE_INFINITY) use.failed(position === elsewhere ? isElsewhere : isBehind);
          return 'behind';
        }
        const answer = await read(reads);
        await look();
        if (position < upTo) return 'behind';
        use.worked();
        return { answer, position };
      } catch (error) {
        // Whatever it is, the primary tells whether it is the replica's alone.
        if (error instanceof StoreError) restsUntilMs = performance.now() + restMs;
        use.failed(error instanceof Error ? error.message : String(error));
        return 'away';
      }
    },
  };
};

const isBehind = 'It is behind the primary. Check the replication of the database.';
const isElsewhere =
  'It is not a replica of the store: another database, or promoted. Check the address of the read store.';

type End = { readonly position: number; readonly mark: number | undefined; readonly markAt: number | undefined };

/** The position of a server, with the mark of the batch there and of the one that ends at another position. */
const readEnd = async (run: Run, t: Tables, at = 0): Promise<End> => {
  const [row] = await run<{ value: number; mark: Buffer | null; mark_at: Buffer | null }>(
    `SELECT c.value, (SELECT ${markColumn} FROM ${t.appended} WHERE last_position = c.value) AS mark,
       (SELECT ${markColumn} FROM ${t.appended} WHERE last_position = $1::bigint) AS mark_at
     FROM ${t.counters} AS c WHERE c.name = 'position'`,
    [at],
  );
  const read = (mark: Buffer | null | undefined) => (mark ? markOf(mark) : undefined);
  return { position: row?.value ?? 0, mark: read(row?.mark), markAt: read(row?.mark_at) };
};
