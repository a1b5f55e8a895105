// The change feed: how a process learns of the newest reports. Notifications wake it, it polls four times a second in case one is lost, and it reads in the
// order of positions (D82).
import type { FeedId } from '@sealpost/protocol';
import { createCoalescer } from '../../runtime/coalesce.ts';
import { createFailureState, type FailureState } from '../../runtime/failure-state.ts';
import { positionsKept } from '../bounds.ts';
import type { DamageLog } from '../damage.ts';
import type { Appended, LatestReport, StoredReport } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { createListeners } from '../wake.ts';
import type { Place } from './append.ts';
import type { Run } from './connection.ts';
import { createNewestReports, createRecent, type Reached } from './memory.ts';
import type { Partitions } from './partitions.ts';
import {
  type BatchRow,
  decodeHexRow,
  feedBytes,
  feedIdOfBytes,
  type HexRow,
  markColumn,
  markOf,
  type ReportKey,
  type ReportRow,
  readBatch,
  readReport,
  reportColumns,
} from './rows.ts';
import type { Tables } from './schema.ts';

/** How often the counters are polled, with or without notifications. */
const pollMs = 250;
/** Reports read at once. */
const batchMax = 1_000;
/** Keys per read for a reader of few streams: about 40 KB. */
const filteredKeysMax = 1_024;
/** Batches of keys read at once. */
const keyBatchesMax = 64;

type Counters = { position: number; admin: number; trimmed: number };

export type ChangeFeed = {
  readonly latest: (feedId: FeedId) => LatestReport | undefined;
  readonly appendedAfter: (position: number, limit: number, feedIds?: ReadonlySet<FeedId>) => Promise<Appended>;
  readonly onAppended: (wake: () => void) => () => void;
  readonly onAdminChanged: (wake: () => void) => () => void;
  /** Reports that any node stored: `latest` is no older than these. */
  readonly learn: (reports: readonly StoredReport[]) => void;
  /** An intact row that was just read for somebody: `latest` is no older than this either. */
  readonly notice: (feedId: FeedId, row: HexRow) => void;
  /** From which position on a database has the `latest` of a stream; 0 without any, undefined while it is not known. */
  readonly positionOf: (feedId: FeedId) => number | undefined;
  /** How far this process has followed. */
  readonly reached: () => Reached;
  /** Was the batch that ends at a position this one? */
  readonly recognizes: (reached: Reached) => boolean;
  /** What this process itself appended, known before it is read back. */
  readonly appended: (place: Place, reports: readonly StoredReport[]) => void;
  /** Looks now; resolves when what was committed before is known. */
  readonly look: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Where to read what was appended: statements, and the rows under keys. */
type Source = {
  readonly damage: DamageLog;
  readonly run: Run;
  readonly byKeys: (keys: readonly ReportKey[]) => Promise<readonly (ReportRow | undefined)[]>;
};

export type FeedParts = Source & {
  readonly tables: Tables;
  readonly partitions: Partitions;
  /** For reads of what is no longer in memory: many may come at once, and following must not wait behind them. */
  readonly others: Source;
  readonly tell?: (event: StoreEvent) => void;
};

/** Loads the newest report of every stream and follows from there. */
export async function openFeed(parts: FeedParts): Promise<ChangeFeed> {
  const seen: Counters = await readCounters(parts.run, parts.tables);
  const memory = createMemory(parts, await readReached(parts.run, parts.tables, seen.position));
  const { newest, recent, learn } = memory;
  await memory.loadHeads();
  const appended = createListeners();
  const admin = createListeners();
  const { step, leaveBehind } = createStep(parts, memory, seen, { appended, admin });
  const following = createFollowState(parts.tell ?? (() => {}));
  const looking = createCoalescer(() =>
    step().then(following.worked, (error: unknown) => {
      following.failed(error);
      throw error;
    }),
  );
  const lookSoon = () => void looking.wake().catch(() => {}); // a failure is made good by the next look
  const timer = setInterval(lookSoon, pollMs).unref();
  return {
    latest: newest.get,
    appendedAfter: async (position, limit, feedIds) => {
      const kept = recent.after(position, limit, feedIds);
      if (kept !== undefined) return kept;
      const found = await readAppended(parts.others, parts.tables, { position, limit, feedIds });
      if (found.position < recent.reached().position) leaveBehind();
      return found;
    },
    onAppended: appended.listen,
    onAdminChanged: admin.listen,
    learn: (reports) => void learn(reports).catch(() => {}), // what a failure leaves unknown is slower to read, and is asked again
    notice: (feedId, row) => {
      if (row.observations > newest.observedMs(feedId)) learn([decodeHexRow(feedId, row)]).catch(() => {}); // as above
    },
    positionOf: newest.position,
    reached: recent.reached,
    recognizes: recent.recognizes,
    appended: ({ first, mark, markBefore }, reports) => {
      const { position, mark: known } = recent.reached();
      // With somebody else's before it, it waits for its turn.
      if (first !== position + 1 || markBefore !== known) return lookSoon();
      const entries = reports.map((report, i) => ({ position: first + i, report }));
      for (const one of entries) newest.offer(one.report, one.position);
      seen.position = position + reports.length;
      recent.add(entries, { position: seen.position, mark });
      appended.wake();
    },
    look: looking.wake,
    close: async () => {
      following.close();
      clearInterval(timer);
      await looking.stop();
    },
  };
}

export type FollowState = Pick<FailureState<unknown>, 'failed' | 'worked' | 'close'>;

/** A fail-over takes less. */
const followGraceMs = 10_000;

/**
 * Reports when a process has learned nothing of what others append and change for a while, because every look at the database failed, and each failure
 * from then on until one works.
 */
export function createFollowState(tell: (event: StoreEvent) => void, nowMs?: () => number): FollowState {
  const report = (reason: string, isNews: boolean): void => tell({ kind: 'followingStopped', reason, isNews });
  const state = createFailureState<string>({
    graceMs: followGraceMs,
    began: (reason) => report(reason, true),
    continued: report,
    ended: (seconds) => tell({ kind: 'followingResumed', seconds }),
    nowMs,
  });
  return { ...state, failed: (error) => state.failed(error instanceof Error ? error.message : String(error)) };
}

/** A look at the database: tells those who listen what is new. */
const createStep = (
  parts: FeedParts,
  memory: ReturnType<typeof createMemory>,
  seen: Counters,
  { appended, admin }: Readonly<Record<'appended' | 'admin', ReturnType<typeof createListeners>>>,
) => {
  const { recent } = memory;
  /** Did a follower read from a database that is behind this process? If it is not woken again, it waits for the next report. */
  let hasLeftBehind = false;
  const step = async (): Promise<void> => {
    const known = recent.reached();
    // Both at once; what is read last is the newer.
    const [now, ahead] = await Promise.all([
      readCounters(parts.run, parts.tables, known.position),
      readBatches(parts.run, parts.tables, known.position, keyBatchesMax),
    ]);
    // Before anything that may take long or fail: whose access has ended does not wait for reports.
    if (now.admin !== seen.admin) admin.wake();
    seen.admin = now.admin;
    if (now.trimmed !== seen.trimmed) {
      await memory.forgetTrimmed();
      seen.trimmed = now.trimmed; // not before: what failed is done again
    }
    if (now.position < known.position || (known.mark !== undefined && now.mark !== known.mark)) {
      // A database that lost what it had told, and may have got other reports in its place: those who follow go on from where it is
      // now. `latest` never goes back. The loss is noticed until all of this has worked.
      const there = await readReached(parts.run, parts.tables, now.position);
      await memory.loadHeads();
      recent.skipTo(there);
      seen.position = now.position;
      appended.wake();
      admin.wake(); // the number of changes may be the same, of others
      // Who was away for that long finds no mark, as it is no longer kept.
      const isKept = known.position > now.position - positionsKept || now.mark !== undefined;
      if (isKept) parts.tell?.({ kind: 'commitsLost', reason: describeLoss(known.position, now.position) });
    }
    const before = seen.position;
    await memory.follow(now.position, { position: known.position, batches: ahead });
    seen.position = recent.reached().position;
    if (seen.position <= before && !hasLeftBehind) return;
    hasLeftBehind = false;
    appended.wake();
  };
  return {
    step,
    leaveBehind: (): void => {
      hasLeftBehind = true;
    },
  };
};

const describeLoss = (known: number, found: number): string =>
  `the database lost reports that it had acknowledged, and maybe changes of accounts, in a restore or a fail-over: it was read up to position ${known}, and now it ${found < known ? `ends at ${found}` : 'has others there'}. Send the reports again, check the accounts, then restart this node.`;

/** What is in memory, and how it is updated. */
const createMemory = (parts: FeedParts, start: Reached) => {
  const { run, tables: t, partitions } = parts;
  const newest = createNewestReports();
  const recent = createRecent(start);
  /** `positions` are those of the reports, or of later ones. */
  const learn = async (reports: readonly StoredReport[], positions: readonly number[] = []): Promise<void> => {
    for (const [i, report] of reports.entries()) newest.offer(report, positions[i]);
    if (reports.some(({ observationsMs }) => partitions.known(observationsMs) === undefined))
      await partitions.refresh();
  };
  const loadHeads = async (): Promise<void> => {
    const heads = await readHeads(parts, t);
    // What is read after them is no earlier than any of them.
    const { position } = await readCounters(run, t);
    await learn(
      heads,
      heads.map(() => position),
    );
  };
  const follow = async (upTo: number, known: Ahead): Promise<void> => {
    const position = (): number => recent.reached().position;
    for (let before = -1; before < position() && position() < upTo; ) {
      before = position();
      const ahead = known.position === before ? known.batches : undefined;
      const next = await readAppended(parts, t, { position: before, limit: batchMax, ahead });
      if (next.missed) await loadHeads();
      await learn(next.reports, next.positions);
      if (next.missed) {
        // Memory has no holes: followers from before this position read the database, which reports the damage.
        recent.skipTo(position() > next.position ? recent.reached() : { position: next.position, mark: next.mark });
        continue;
      }
      // Meanwhile this process may have appended and gone ahead.
      const from = position();
      const fresh: { readonly position: number; readonly report: StoredReport }[] = [];
      for (const [i, report] of next.reports.entries()) {
        const at = next.positions[i] as number; // one each
        if (at > from) fresh.push({ position: at, report });
      }
      recent.add(fresh, next);
    }
    // What is no longer kept cannot be followed.
    if (position() < upTo) recent.skipTo({ position: upTo, mark: undefined });
  };
  const forgetTrimmed = async (): Promise<void> => {
    await partitions.refresh();
    const before = newest.all();
    const kept = new Set((await readHeadIds(run, t)).map(feedIdOfBytes));
    newest.forget([...before].filter(([feedId]) => !kept.has(feedId)));
    recent.skipTo(recent.reached());
  };
  return { newest, recent, learn, loadHeads, follow, forgetTrimmed };
};

/** The counters, and at the same moment the mark of the batch that ends at a position; undefined where none does. */
const readCounters = async (run: Run, t: Tables, at = 0): Promise<Counters & Pick<Reached, 'mark'>> => {
  const rows = await run<{ name: string; value: number; mark: Buffer | null }>(
    `SELECT name, value, (SELECT ${markColumn} FROM ${t.appended} WHERE last_position = $1::bigint) AS mark FROM ${t.counters}`,
    [at],
  );
  const counted = (name: string) => rows.find((row) => row.name === name)?.value ?? 0;
  const found = rows[0]?.mark ?? undefined;
  const mark = found && markOf(found);
  return { position: counted('position'), admin: counted('admin'), trimmed: counted('trimmed'), mark };
};

const readReached = async (run: Run, t: Tables, position: number): Promise<Reached> => ({
  position,
  mark: (await readCounters(run, t, position)).mark,
});

const readHeadIds = async (run: Run, t: Tables): Promise<readonly Buffer[]> =>
  (await run<{ feed_id: Buffer }>(`SELECT feed_id FROM ${t.heads}`)).map(({ feed_id }) => feed_id);

/** Reports before a damaged newest one that are searched for an intact one. */
const olderMax = 64;

/** The newest intact report of each stream. */
const readHeads = async ({ run, damage }: Source, t: Tables): Promise<readonly StoredReport[]> => {
  const rows = await run<{ [column in keyof ReportRow]: ReportRow[column] | null } & { feed_id: Buffer }>(
    `SELECT h.feed_id, r.* FROM ${t.heads} AS h LEFT JOIN LATERAL (SELECT ${reportColumns} FROM ${t.reports}
       WHERE feed_id = h.feed_id AND observations = h.observations) AS r ON true`,
  );
  const lookBack = async (feedId: FeedId): Promise<StoredReport | undefined> => {
    const last = await run<ReportRow>(
      `SELECT ${reportColumns} FROM ${t.reports} WHERE feed_id = $1::bytea ORDER BY observations DESC LIMIT ${olderMax}`,
      [feedBytes(feedId)],
    );
    return last.map((row) => readReport(damage, feedId, row)).find((report) => report !== undefined);
  };
  const heads: StoredReport[] = [];
  for (const { feed_id, observations, valid_from, record } of rows) {
    const feedId = feedIdOfBytes(feed_id);
    const isThere = observations !== null && valid_from !== null && record !== null;
    const newest = isThere ? readReport(damage, feedId, { observations, valid_from, record }) : undefined;
    const head = newest ?? (await lookBack(feedId));
    if (head !== undefined) heads.push(head);
  }
  return heads;
};

type KeyAt = ReportKey & { readonly position: number };

/** The first batches after a position, up to as many as are read at once. */
type Ahead = { readonly position: number; readonly batches: readonly BatchRow[] };

type Wanted = {
  readonly position: number;
  readonly limit: number;
  readonly feedIds?: ReadonlySet<FeedId> | undefined;
  /** What was read already of the batches that follow; `limit` is then no less than `keyBatchesMax`. */
  readonly ahead?: readonly BatchRow[] | undefined;
};

/** The keys to read, without those of other streams, up to a limit, and the position of the last one read. */
const chooseKeys = (keys: readonly KeyAt[], limit: number, feedIds: ReadonlySet<FeedId> | undefined) => {
  const chosen = feedIds === undefined ? keys : keys.filter(({ feedId }) => feedIds.has(feedId));
  const last = chosen.length > limit ? chosen[limit - 1] : keys.at(-1);
  return { wanted: chosen.slice(0, limit), lookedAt: last?.position };
};

/** Reads what follows a position. A damaged report is left out; the content of a damaged batch is unknown and counts as missed. */
const readAppended = async (
  source: Source,
  t: Tables,
  { position, limit, feedIds, ahead }: Wanted,
): Promise<Appended & Reached> => {
  const { run, byKeys, damage } = source;
  const looked = feedIds === undefined ? limit : Math.max(limit, filteredKeysMax);
  const { keys, missed, marks, after } = await readKeysAfter(source, t, { position, limit: looked, ahead });
  const { wanted, lookedAt = position } = chooseKeys(keys, limit, feedIds);
  const rows = wanted.length === 0 ? [] : await byKeys(wanted);
  const reports: StoredReport[] = [];
  const positions: number[] = [];
  for (const [i, key] of wanted.entries()) {
    const row = rows[i];
    const report = row && readReport(damage, key.feedId, row);
    if (report === undefined) continue;
    reports.push(report);
    positions.push(key.position);
  }
  if (keys.length > 0) return { reports, positions, position: lookedAt, missed, mark: marks.get(lookedAt) };
  const now = (await readCounters(run, t)).position;
  // It continues after damaged batches, at most to the database's position: their positions may be what is damaged.
  const behind = Math.min(after, now);
  if (behind > position) return { reports, positions, position: behind, missed: true, mark: marks.get(behind) };
  // A follower that is ahead of the database, after it lost something, continues from the database's position.
  return { reports, positions, position: Math.min(position, now), missed: missed || now < position, mark: undefined };
};

/** Batches of keys after a position, in order. */
const readBatches = (run: Run, t: Tables, position: number, limit: number): Promise<readonly BatchRow[]> =>
  run<BatchRow>(
    `SELECT first_position, last_position, keys FROM ${t.appended} WHERE last_position > $1::bigint
     ORDER BY last_position LIMIT $2::int`,
    [position, limit],
  );

const readKeysAfter = async ({ run, damage }: Source, t: Tables, { position, limit, ahead }: Wanted) => {
  const keys: KeyAt[] = [];
  const marks = new Map<number, number>();
  const asked = Math.min(limit, keyBatchesMax);
  let [after, expected, missed] = [position, position + 1, false];
  for (let [more, known] = [true, ahead]; more && keys.length < limit; known = undefined) {
    const batches = known ?? (await readBatches(run, t, after, asked));
    for (const batch of batches) {
      after = batch.last_position;
      marks.set(after, markOf(batch.keys));
      const found = readBatch(damage, batch);
      // The content of a damaged batch is unknown: a follower that gets past it has missed something.
      if (found === undefined || keys.length === limit) continue;
      if (batch.first_position > expected) missed = true;
      let position = batch.first_position;
      for (const { feedId, observationsMs } of found) {
        if (position >= expected && keys.length < limit) keys.push({ feedId, observationsMs, position });
        position += 1;
      }
      expected = after + 1;
    }
    more = batches.length === asked;
  }
  return { keys, missed, marks, after };
};
