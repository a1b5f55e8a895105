// Owns what a process knows of the newest reports: `latest` in memory, and the last ones in the order of appending. It is fed by the
// database: a notification wakes it, a look four times a second does when none comes, and what it reads is ordered by position (D82).
import type { FeedId } from '@sealpost/protocol';
import type { Place } from './postgres-append.ts';
import type { Run } from './postgres-connection.ts';
import type { Partitions } from './postgres-partitions.ts';
import {
  decodeKeys,
  decodeReport,
  feedIdOfBytes,
  markColumn,
  markOf,
  type ReportKey,
  type ReportRow,
  reportColumns,
} from './postgres-rows.ts';
import type { Tables } from './postgres-schema.ts';
import { renderReport } from './rendered-report.ts';
import { type Appended, CorruptRecordError, type LatestReport, reportTag, type StoredReport } from './store.ts';

/** How often the counters are looked at, whether or not a notification came. */
const pollMs = 250;
/** Reports kept in memory for those who follow: some 8 MB. */
const recentMax = 8_192;
/** Reports read at once. */
const batchMax = 1_000;
/** Batches of keys read at once. */
const keyBatchesMax = 64;

type Counters = { position: number; admin: number; trimmed: number };

/** How far the database was read: a position, and the checksum of the batch that ends there, as far as it is known. */
type Reached = { readonly position: number; readonly mark: number | undefined };

export type Feed = {
  readonly latest: (feedId: FeedId) => LatestReport | undefined;
  readonly appendedAfter: (position: number, limit: number) => Promise<Appended>;
  readonly onAppended: (wake: () => void) => () => void;
  readonly onAdminChanged: (wake: () => void) => () => void;
  /** Reports that are stored, whoever stored them: `latest` is no older than these. */
  readonly learn: (reports: readonly StoredReport[]) => void;
  /** What this process itself appended, known before it is read back. */
  readonly appended: (place: Place, reports: readonly StoredReport[]) => void;
  /** Looks now; resolves when what was committed before is known. */
  readonly look: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export type FeedParts = {
  readonly run: Run;
  readonly tables: Tables;
  readonly partitions: Partitions;
  readonly byKeys: (keys: readonly ReportKey[]) => Promise<readonly (ReportRow | undefined)[]>;
};

/** Loads the newest report of every stream and follows from there. */
export const openFeed = async (parts: FeedParts): Promise<Feed> => {
  const seen: Counters = await readCounters(parts.run, parts.tables);
  const memory = createMemory(parts, await readReached(parts.run, parts.tables, seen.position));
  const { newest, recent, learn } = memory;
  await learn(await readHeads(parts.run, parts.tables));
  const appended = createListeners();
  const admin = createListeners();
  const step = async (): Promise<void> => {
    const known = recent.reached();
    const now = await readCounters(parts.run, parts.tables, known.position);
    if (now.trimmed !== seen.trimmed) {
      seen.trimmed = now.trimmed;
      await memory.forgetTrimmed();
    }
    if (now.position < known.position || (known.mark !== undefined && now.mark !== known.mark)) {
      // A database that lost what it had told, and may have got other reports in its place: those who follow go on from where it is
      // now. `latest` never goes back.
      recent.skipTo(await readReached(parts.run, parts.tables, now.position));
      await learn(await readHeads(parts.run, parts.tables));
      seen.position = now.position;
      appended.tell();
    }
    const before = seen.position;
    await memory.follow(now.position);
    seen.position = recent.reached().position;
    if (seen.position > before) appended.tell();
    if (now.admin === seen.admin) return;
    seen.admin = now.admin;
    admin.tell();
  };
  const looking = createTurns(step);
  const lookSoon = () => void looking.wake().catch(() => {}); // a failure is made good by the next look
  const timer = setInterval(lookSoon, pollMs).unref();
  return {
    latest: newest.get,
    appendedAfter: async (position, limit) =>
      recent.after(position, limit) ?? (await readAppended(parts, position, limit, false)),
    onAppended: appended.add,
    onAdminChanged: admin.add,
    learn: (reports) => void learn(reports).catch(() => {}), // what a failure leaves unknown is slower to read, and is asked again
    appended: ({ first, mark, markBefore }, reports) => {
      const { position, mark: known } = recent.reached();
      // With somebody else's before it, it waits for its turn.
      if (first !== position + 1 || markBefore !== known) return lookSoon();
      const entries = reports.map((report, i) => ({ position: first + i, report }));
      seen.position = position + reports.length;
      recent.add(entries, { position: seen.position, mark });
      appended.tell();
    },
    look: looking.wake,
    close: async () => {
      clearInterval(timer);
      await looking.stop();
    },
  };
};

/** What is known in memory, and how it is brought up to date. */
const createMemory = (parts: FeedParts, start: Reached) => {
  const { run, tables: t, partitions } = parts;
  const newest = createNewest();
  const recent = createRecent(start);
  const learn = async (reports: readonly StoredReport[]): Promise<void> => {
    for (const report of reports) newest.offer(report);
    if (reports.some(({ observationsMs }) => partitions.known(observationsMs) === undefined))
      await partitions.refresh();
  };
  const follow = async (upTo: number): Promise<void> => {
    const position = (): number => recent.reached().position;
    for (let before = -1; before < position() && position() < upTo; ) {
      before = position();
      const next = await readAppended(parts, before, batchMax, true);
      if (next.missed) await learn(await readHeads(run, t));
      await learn(next.reports);
      // Meanwhile this process may have appended and gone ahead.
      const fresh = next.reports.flatMap((report, i) => {
        const at = next.positions[i] as number; // one each
        return at > position() ? [{ position: at, report }] : [];
      });
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
  return { newest, recent, learn, follow, forgetTrimmed };
};

const createListeners = () => {
  const listeners = new Set<() => void>();
  return {
    add: (wake: () => void): (() => void) => {
      listeners.add(wake);
      return () => listeners.delete(wake);
    },
    tell: (): void => {
      for (const wake of [...listeners]) wake();
    },
  };
};

/** One step at a time; whoever wakes during one is served by the next. */
const createTurns = (step: () => Promise<void>) => {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let stopped = false;
  const begin = (): Promise<void> => {
    running = (stopped ? Promise.resolve() : step()).finally(() => {
      running = undefined;
    });
    return running;
  };
  const wake = (): Promise<void> => {
    if (running === undefined) return begin();
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
  return {
    wake,
    stop: async (): Promise<void> => {
      stopped = true;
      await (next ?? running)?.catch(() => {});
    },
  };
};

type Newest = { readonly report: StoredReport; latest?: LatestReport };

/** The newest report of each stream, rendered when it is asked for the first time. */
const createNewest = () => {
  const newest = new Map<FeedId, Newest>();
  return {
    get: (feedId: FeedId): LatestReport | undefined => {
      const known = newest.get(feedId);
      if (known === undefined) return undefined;
      known.latest ??= renderLatest(known.report);
      return known.latest;
    },
    offer: (report: StoredReport): void => {
      if ((newest.get(report.feedId)?.report.observationsMs ?? -1) < report.observationsMs)
        newest.set(report.feedId, { report });
    },
    all: (): ReadonlyMap<FeedId, Newest> => new Map(newest),
    /** Forgets these, unless a newer one came meanwhile. */
    forget: (entries: readonly (readonly [FeedId, Newest])[]): void => {
      for (const [feedId, entry] of entries) if (newest.get(feedId) === entry) newest.delete(feedId);
    },
  };
};

const renderLatest = (report: StoredReport): LatestReport => ({
  validFromMs: report.validFromMs,
  observationsMs: report.observationsMs,
  tag: reportTag(report.fullReport),
  json: `{"report":${renderReport(report)}}`,
});

type Recent = { readonly position: number; readonly report: StoredReport };

/** The last reports in the order of appending, without holes after `from`. */
const createRecent = (start: Reached) => {
  let entries: Recent[] = [];
  let from = start.position;
  let reached = start;
  return {
    reached: (): Reached => reached,
    add: (fresh: readonly Recent[], to: Reached): void => {
      entries.push(...fresh);
      if (to.position > reached.position) reached = { position: to.position, mark: to.mark };
      // Cut now and then, not at every report.
      if (entries.length <= 2 * recentMax) return;
      const gone = entries.length - recentMax;
      from = (entries[gone - 1] as Recent).position; // there are more than that
      entries = entries.slice(gone);
    },
    skipTo: (to: Reached): void => {
      entries = [];
      from = to.position;
      reached = to;
    },
    /** Undefined when it is not here, or nothing is: then the database may know more. */
    after: (position: number, limit: number): Appended | undefined => {
      if (position < from || position >= reached.position) return undefined;
      const found = firstAfter(entries, position);
      const wanted = entries.slice(found, found + limit);
      if (wanted.length === 0) return undefined;
      const isAll = found + wanted.length === entries.length;
      return {
        reports: wanted.map(({ report }) => report),
        positions: wanted.map((entry) => entry.position),
        position: isAll ? reached.position : (wanted.at(-1) as Recent).position, // there is one
        missed: false,
      };
    },
  };
};

/** Where the entries after a position begin. */
const firstAfter = (entries: readonly Recent[], position: number): number => {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle] as Recent).position > position) high = middle;
    else low = middle + 1;
  }
  return low;
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

const readHeads = async (run: Run, t: Tables): Promise<readonly StoredReport[]> => {
  const rows = await run<ReportRow & { feed_id: Buffer }>(
    `SELECT h.feed_id, r.* FROM ${t.heads} AS h CROSS JOIN LATERAL (SELECT ${reportColumns} FROM ${t.reports}
       WHERE feed_id = h.feed_id AND observations = h.observations) AS r`,
  );
  return rows.flatMap((row) => intact(feedIdOfBytes(row.feed_id), row) ?? []);
};

// A damaged newest report is no reason not to start: the stream has no latest until its next one, and `store verify` tells.
const intact = (feedId: FeedId, row: ReportRow): StoredReport | undefined => {
  try {
    return decodeReport(feedId, row);
  } catch (error) {
    if (error instanceof CorruptRecordError) return undefined;
    throw error;
  }
};

type KeyAt = ReportKey & { readonly position: number };

/** Reads what follows a position. A damaged report ends the answer before it, or is the error; `lenient` leaves it out. */
const readAppended = async (
  parts: FeedParts,
  position: number,
  limit: number,
  lenient: boolean,
): Promise<Appended & Reached> => {
  const { keys, missed, marks } = await readKeysAfter(parts.run, parts.tables, position, limit);
  const rows = await parts.byKeys(keys);
  const reports: StoredReport[] = [];
  const positions: number[] = [];
  let reached = position;
  for (const [i, key] of keys.entries()) {
    const row = rows[i];
    const damaged = row !== undefined && !lenient && intact(key.feedId, row) === undefined;
    if (damaged && reports.length > 0) break;
    const report = row && (lenient ? intact(key.feedId, row) : decodeReport(key.feedId, row));
    reached = key.position;
    if (report === undefined) continue;
    reports.push(report);
    positions.push(reached);
  }
  if (keys.length > 0) return { reports, positions, position: reached, missed, mark: marks.get(reached) };
  // Whoever is ahead of the database, after it lost something, goes on from where it is.
  const now = (await readCounters(parts.run, parts.tables)).position;
  return { reports, positions, position: Math.min(position, now), missed: missed || now < position, mark: undefined };
};

const readKeysAfter = async (run: Run, t: Tables, position: number, limit: number) => {
  const keys: KeyAt[] = [];
  const marks = new Map<number, number>();
  let after = position;
  let missed = false;
  for (let more = true; more && keys.length < limit; ) {
    const batches = await run<{ first_position: number; last_position: number; keys: Buffer }>(
      `SELECT first_position, last_position, keys FROM ${t.appended} WHERE last_position > $1::bigint
       ORDER BY last_position LIMIT $2::int`,
      [after, Math.min(limit, keyBatchesMax)],
    );
    for (const batch of batches) {
      if (keys.length === 0 && batch.first_position > position + 1) missed = true;
      for (const [i, key] of decodeKeys(batch.keys).entries()) {
        const at = batch.first_position + i;
        if (at > position && keys.length < limit) keys.push({ ...key, position: at });
      }
      after = batch.last_position;
      marks.set(after, markOf(batch.keys));
    }
    more = batches.length === Math.min(limit, keyBatchesMax);
  }
  return { keys, missed, marks };
};
