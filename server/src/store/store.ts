// The store's contract. Engines implement it, `store.contract.ts` is the same text as tests, and nothing else in the server knows which engine
// runs. Write path and read path meet only here.
//
// Units: `…Ms` is milliseconds since 1970, `…Seconds` whole seconds. A report's key is (feedId, observationsMs); within a
// stream windows never overlap, so observation order is validity order. Durable means: survives kill -9 and power loss.
import { createHash } from 'node:crypto';
import type { FeedId, SignerSet, Stream } from '@sealpost/protocol';
import type { Candle, CandleRange } from './candle-rollup.ts';
import type { KeyHolders, NodeExchange, RetentionRecord } from './nodes.ts';

/** The time a report is valid for, both ends inclusive. */
export type Window = { readonly validFromMs: number; readonly observationsMs: number };

/** A verified report as it is kept: its window and its exact bytes. */
export type StoredReport = Window & { readonly feedId: FeedId; readonly fullReport: Uint8Array };

/** The newest report of a stream, rendered for the wire: `{"report":{…}}`, ASCII, and its tag. */
export type LatestReport = Window & { readonly tag: string; readonly json: string };

/** Names a report's bytes: 32 hex digits of their SHA-256. */
export const reportTag = (fullReport: Uint8Array): string =>
  createHash('sha256').update(fullReport).digest('hex').slice(0, 32);

/**
 * What became of an appended report. `stored`: new and durable. `duplicate`: it was there before, as these bytes or signed
 * by another quorum; the first bytes stay. Nothing was written for `conflict` (its key holds another body) and `overlap` (its window cuts into a neighbor's).
 */
export type AppendOutcome = 'stored' | 'duplicate' | 'conflict' | 'overlap';

/** What retention removes: reports observed before `beforeMs`, then the oldest, but no stream's newest, while reports and roll-ups use over `bytesMax`. */
export type Retention = { readonly beforeMs: number; readonly bytesMax: number; readonly overdueMaxMs?: number };
/** What was removed was observed before `endMs`. `isWithheld`: nothing was, as a report is overdue for longer than is allowed; never in memory. */
export type Trimmed = Readonly<{ removed: number; more: boolean; endMs?: number | undefined; isWithheld?: true }>;

/** One entry of a full scan: a report, or the name of what is wrong with its record. */
export type ScannedReport =
  | { readonly report: StoredReport; readonly error?: never; readonly table?: never }
  | {
      readonly report?: never;
      readonly error: CorruptRecordError;
      /** Which record it is, as in `Damage`. */
      readonly table: string;
      readonly key: string;
      /** Where it was found, as far as the record says. */
      readonly feedId?: FeedId;
      readonly observationsMs?: number;
    };

export type ReportStats = {
  /** Those that have reports. */
  readonly streams: number;
  readonly reports: number;
  /** Sum of the lengths of all full reports. */
  readonly reportBytes: number;
  /** Bytes of the engine's pages in use. */
  readonly usedBytes: number;
  /** Bytes of the engine's files. */
  readonly fileBytes: number;
};

/** A report to append: with its price it takes part in the minute's roll-up. */
export type NewReport = StoredReport & { readonly price?: bigint | undefined };

/** Reports, by stream and time. */
export type ReportStore = {
  /**
   * Stores a batch; resolves once all of it is durable and in reach of every reader, or rejects with none of it promised: then it may be
   * stored or not (`store_outcome_unknown`), and the same again converges. Outcomes in batch order.
   */
  readonly append: (batch: readonly NewReport[]) => Promise<readonly AppendOutcome[]>;
  /** Resolves once everything that can be read by now is as durable as an append; what was only read may be promised then. */
  readonly confirm: () => Promise<void>;
  /**
   * The newest report of a stream, at once; undefined when it has none. Never older than what this store appended, announced to
   * `onAppended` or returned before; what other nodes appended follows soon.
   */
  readonly latest: (feedId: FeedId) => LatestReport | undefined;
  /** When a stream was last observed, at once and without reading the report; undefined when it has none. */
  readonly newestMs: (feedId: FeedId) => number | undefined;
  /** For each stream the report that is valid at a second, the earliest observed of several; undefined where none is. In the order of `feedIds`. */
  readonly at: (feedIds: readonly FeedId[], seconds: number) => Promise<readonly (StoredReport | undefined)[]>;
  /** The last window that ends before the second and the first that ends in or after it. */
  readonly neighbours: (feedId: FeedId, seconds: number) => Promise<Neighbours>;
  /** Up to `limit` reports observed in or after the second, ascending; a page ends on a whole second unless one second exceeds it. */
  readonly page: (feedId: FeedId, fromSeconds: number, limit: number) => Promise<ReportPage>;
  /** As `at`, rendered for the wire. An engine may read on this loop, some 20 µs for each stream: ask for many in slices. */
  readonly renderedAt: (
    feedIds: readonly FeedId[],
    seconds: number,
  ) => Promise<readonly (RenderedReport | undefined)[]>;
  /** As `page`, rendered for the wire. */
  readonly renderedPage: (feedId: FeedId, fromSeconds: number, limit: number) => Promise<RenderedPage>;
  /** Up to `limit` windows observed from one second to another, both included, ascending; cheaper than a page. */
  readonly windows: (
    feedId: FeedId,
    fromSeconds: number,
    toSeconds: number,
    limit: number,
  ) => Promise<readonly Window[]>;
  /** What prices did in a time range, from roll-ups; buckets without reports are absent. Ascending. */
  readonly candles: (feedId: FeedId, range: CandleRange) => Promise<readonly Candle[]>;
  /**
   * Reports in the order in which they were appended, after a position; 0 is before the first. Positions only grow. With `feedIds`, reports of
   * other streams are skipped without being read, and fewer than `limit` may be returned although more follow: `position` says how far it got.
   */
  readonly appendedAfter: (position: number, limit: number, feedIds?: ReadonlySet<FeedId>) => Promise<Appended>;
  /** The position of the last appended report; 0 when there is none. */
  readonly position: () => Promise<number>;
  /** The history that positions count in. */
  readonly lineage: () => Promise<Lineage>;
  /** Calls back soon after something was appended, by this process or another; says neither what nor how much. Returns the way to stop. */
  readonly onAppended: (wake: () => void) => () => void;
  /** Looks for what another process of this machine appended now, instead of at the next poll. */
  readonly checkAppended: () => void;
  /** Removes one slice of what retention names; `more`: another slice is due. Oldest first. Reports appended although they are too old are removed likewise. */
  readonly trim: (retention: Retention) => Promise<Trimmed>;
  /** Every record in key order, after a cursor, checked; the way to verify a store. The last slice has no `next`. */
  readonly scan: (
    cursor: ScanCursor | undefined,
    limit: number,
  ) => Promise<{ readonly entries: readonly ScannedReport[]; readonly next?: ScanCursor }>;
  readonly stats: () => Promise<ReportStats>;
};

/** `damaged`: a report that may be valid at the time cannot be read, because its record is corrupt. */
export type Neighbours = {
  readonly previous: Window | undefined;
  readonly next: Window | undefined;
  readonly damaged?: true;
};
export type ReportPage = { readonly reports: readonly StoredReport[]; readonly more: boolean };
/** A report as the API sends it, ASCII. The bytes may be shared: do not write to them. */
export type RenderedReport = { readonly observationsMs: number; readonly json: Buffer };

/** The reports of a page as the API sends them, joined by commas, and when the last one was observed. Likewise shared. */
export type RenderedPage = {
  readonly json: Buffer;
  readonly lastMs: number | undefined;
  readonly more: boolean;
  /** Some reports are left out because their records are damaged. */
  readonly damaged?: true | undefined;
};

/**
 * Names the history that positions count in: after a restore or a copy it is another one, in which the same positions stand for other reports.
 * `epoch` is 6 bytes; `key`, 16 bytes, is for hiding positions from clients, and stays in the server.
 */
export type Lineage = { readonly epoch: Uint8Array; readonly key: Uint8Array };

/** Where a scan resumes. Opaque. */
export type ScanCursor = string;

/**
 * `positions` are those of the reports, one each; `position` is that of the last one, or the one asked with. `missed`: what followed the
 * asked position is no longer kept, or its order is damaged. A report that came back after retention had removed it may be at several positions.
 */
export type Appended = {
  readonly reports: readonly StoredReport[];
  readonly positions: readonly number[];
  readonly position: number;
  readonly missed: boolean;
};

/** A rejected line, kept for the operator. */
export type QuarantinedReport = {
  readonly atMs: number;
  readonly code: string;
  readonly message: string;
  readonly feedId: string | null;
  readonly observationsMs: number | null;
  /** What came in, cut to a bound. */
  readonly line: string;
};

/** Rejected reports: the newest are kept, bounded by lines and bytes (`bounds.ts`). Durable when `add` resolves. */
export type Quarantine = {
  readonly add: (rejected: readonly QuarantinedReport[]) => Promise<void>;
  /** Newest first. */
  readonly list: (limit: number) => Promise<readonly QuarantinedReport[]>;
  readonly count: () => Promise<number>;
};

/** A signer set as registered: a retired one verifies history but admits no new report. */
export type RegisteredSignerSet = SignerSet & { readonly addedAt: string; readonly retiredAt: string | null };

/** Who reads. Secrets are sealed before they get here; the store never sees a plain one. */
export type Account = {
  readonly userId: string;
  readonly name: string;
  readonly createdAt: string;
  readonly disabledAt: string | null;
  readonly secrets: readonly {
    readonly id: string;
    readonly sealed: string;
    readonly createdAt: string;
    readonly revokedAt: string | null;
  }[];
  readonly entitlements: readonly string[];
  readonly rateLimits: Readonly<Record<string, number>>;
};

/** A stream that is copied from another server. Outside its open range, everything from `from` to the newest stored report is copied. */
export type MirroredStream = {
  readonly feedId: FeedId;
  /** Host of the server that it is copied from. */
  readonly source: string;
  /** First second that is copied. */
  readonly from: number;
  /** At most one range, which is to be read, or read again: reports observed from one second to before another. */
  readonly open: readonly { readonly from: number; readonly until: number }[];
};

/** The kinds of administrative records, each with its key. */
export type AdminRecords = {
  /** Keyed by feed id. */
  stream: Stream;
  /** Keyed by user id in lower case. */
  account: Account;
  /** Keyed by config digest. */
  signerSet: RegisteredSignerSet;
  /** Keyed by feed id. */
  mirror: MirroredStream;
};

export type AdminKind = keyof AdminRecords;

/** The key that a record is stored under. */
export const keyedBy: { readonly [K in AdminKind]: (record: AdminRecords[K]) => string } = {
  stream: ({ feedId }) => feedId,
  account: ({ userId }) => userId,
  signerSet: ({ configDigest }) => configDigest,
  mirror: ({ feedId }) => feedId,
};

/** A record with its kind and key. */
export type KeyedRecord = { readonly kind: AdminKind; readonly key: string; readonly record: AdminRecords[AdminKind] };

/** An administrative act, for the audit log. Never holds a secret. */
export type Act = {
  readonly atMs: number;
  readonly actor: string;
  readonly action: string;
  readonly detail: Readonly<Record<string, unknown>>;
};

/** An act in the log: `hash` covers the entry and the hash before it, so that no entry can be changed or dropped unseen. */
export type AuditEntry = Act & { readonly sequence: number; readonly previousHash: string; readonly hash: string };

/** An entry of the log that is not what was written: the number that it is stored under, and what is wrong with it. */
export type DamagedAuditEntry = { readonly sequence: number; readonly damaged: string };

/** Streams, accounts, signer sets, mirrored streams and the log of their changes. Small, read whole, changed by any process. */
export type AdminStore = {
  /** All intact records of a kind, by key. */
  readonly list: <K extends AdminKind>(kind: K) => Promise<readonly AdminRecords[K][]>;
  /** One record; undefined when there is none. A damaged one is a CorruptRecordError. */
  readonly get: <K extends AdminKind>(kind: K, key: string) => Promise<AdminRecords[K] | undefined>;
  /**
   * Changes records in one transaction with its audit entry: `change` gets what is stored under each key (nothing, where it is damaged) and returns
   * what shall be. It, and `check`, which gets all intact records of the kind, may throw to change nothing. No other change comes between. Durable when it resolves.
   */
  readonly update: <K extends AdminKind>(
    kind: K,
    keys: readonly string[],
    change: (current: readonly (AdminRecords[K] | undefined)[]) => readonly AdminRecords[K][],
    act: Act,
    check?: (all: readonly AdminRecords[K][]) => void,
  ) => Promise<void>;
  /** Logs an act that changes no record. */
  readonly log: (act: Act) => Promise<void>;
  /** Puts records in the place of what is stored, in one transaction with its audit entry. The request loop of a running node does not wait for the disk. */
  readonly put: (records: readonly KeyedRecord[], act: Act) => Promise<void>;
  /** Takes records and entries of another store's log as they are, in one transaction: for moving a store. Entries that do not continue the log are rejected. */
  readonly takeOver: (records: readonly KeyedRecord[], entries: readonly AuditEntry[]) => Promise<void>;
  /** Entries after a sequence number, oldest first; 0 is before the first. */
  readonly auditAfter: (sequence: number, limit: number) => Promise<readonly AuditEntry[]>;
  /** The newest entries, oldest first, with damaged ones in their places. */
  readonly auditNewest: (limit: number) => Promise<readonly (AuditEntry | DamagedAuditEntry)[]>;
  /** Calls back within a second of a change by any process. Returns the way to stop. */
  readonly onChanged: (wake: () => void) => () => void;
};

/** Requests of one account to one route on one day in UTC, `2025-01-31`. */
export type UsageRow = {
  readonly userId: string;
  readonly day: string;
  readonly route: string;
  readonly requests: number;
};

/** The last time that a secret of an account signed something. There is one for each secret that was ever used, as there is an audit entry. */
export type SecretUse = { readonly userId: string; readonly secretId: string; readonly usedAtMs: number };

/** How much accounts asked for. Any process adds; days that lie 400 or more before the newest stored one before today are dropped. */
export type UsageStore = {
  /** Adds counts to what is kept, all or none of them; of several uses of a secret the latest that is not ahead of the clock stays. Durable when it resolves. */
  readonly add: (rows: readonly UsageRow[], uses: readonly SecretUse[], nowMs: number) => Promise<void>;
  /** When each secret of an account was last used, by secret; those that never were are missing. */
  readonly lastUses: (userId: string) => Promise<readonly SecretUse[]>;
  /** What is kept of an account from a day on, by day and route. */
  readonly list: (userId: string, fromDay: string) => Promise<readonly UsageRow[]>;
};

/** What is written on its own: reports; administrative records and usage. */
export const writingParts = ['reports', 'administration'] as const;
export type WritingPart = (typeof writingParts)[number];

/** A part of a store that cannot be written now. Reads still work. */
export type WritingStop = {
  readonly part: WritingPart;
  readonly code: StoreErrorCode;
  readonly reason: string;
};

/** A record that is not what was written. `key` names it as text; `feedId` is present where only one stream is affected. */
export type Damage = {
  readonly table: string;
  readonly key: string;
  readonly reason: string;
  readonly feedId?: FeedId | undefined;
};

/** Everything that is remembered. */
export type Store = {
  readonly reports: ReportStore;
  readonly quarantine: Quarantine;
  readonly admin: AdminStore;
  readonly usage: UsageStore;
  /** Undefined where one node has the store to itself. */
  readonly nodes: NodeExchange | undefined;
  readonly keyHolders: KeyHolders;
  readonly retention: RetentionRecord;
  /** The damaged records that were come across since the store was opened. */
  readonly damage: () => readonly Damage[];
  /** What this process cannot write to at present, and why; it is tried again until it works. */
  readonly stops: () => readonly WritingStop[];
  /**
   * Looks through every record that `reports.scan` does not (administration, its log, usage), and compares what must agree: runs with their
   * keys and each other, both directions of stream numbers, counters, positions.
   */
  readonly findDamage: () => Promise<readonly Damage[]>;
  /** Writes a consistent copy into an empty folder while others read and write; it opens as a store. */
  readonly backup: (folder: string) => Promise<void>;
  /** Completes running calls, then releases files and locks. */
  readonly close: () => Promise<void>;
};

/** A stored record is not what was written. Its bytes are never returned. */
export class CorruptRecordError extends Error {
  override readonly name = 'CorruptRecordError';
}

/** Why a store cannot be opened or written. */
export type StoreErrorCode =
  | 'store_locked'
  | 'store_corrupt'
  | 'store_format_newer'
  | 'store_format_older'
  | 'store_not_found'
  | 'store_url_invalid'
  | 'store_read_only'
  | 'store_disk_full'
  | 'store_write_failed'
  | 'store_unavailable'
  | 'store_outcome_unknown'
  | 'store_stopped'
  | 'store_taken_over'
  | 'store_replaced'
  | 'store_closed';

/** An operating failure of the store; the text says what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
