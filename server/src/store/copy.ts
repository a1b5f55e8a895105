// Copies a store to another one, of any engine, through the contract: reports, administrative records with their audit log, quarantine, usage and
// retention. You can run it again: it recognizes what is there. At the end it reads back and compares every report. A repair is a copy too (D289).
import { isDeepStrictEqual } from 'node:util';
import type { FeedId } from '@sealpost/protocol';
import { continuesLog } from './audit-chain.ts';
import { quarantineLinesMax } from './bounds.ts';
import { contentsOf, withPrice } from './format/report-contents.ts';
import {
  type AdminKind,
  type AdminStore,
  type AuditEntry,
  CorruptRecordError,
  type Damage,
  type KeyedRecord,
  keyedBy,
  type ReportStore,
  type Store,
  type StoredReport,
  StoreError,
} from './store.ts';

export type CopyProgress = { readonly part: 'copied' | 'compared'; readonly reports: number };

/** A record of the source that was not copied, and when its reports were observed, as far as it is known. */
export type DamagedRecord = Damage & { readonly observationsMs?: number | undefined };

export type Copied = {
  readonly reports: number;
  /** Of these, reports that the target had before. */
  readonly duplicates: number;
  /** Number of the last audit entry. */
  readonly auditEntries: number;
  /** Records of the source that are not what was written; they were left out. The first `damagedMax`. */
  readonly damaged: readonly DamagedRecord[];
  readonly damagedCount: number;
};

export type CopyOptions = {
  readonly onProgress?: (progress: CopyProgress) => void;
  readonly signal?: AbortSignal;
  /** Into an empty target: leaves out what follows a damaged audit entry and reports that contradict their body or others, instead of failing. */
  readonly isRepair?: boolean;
};

const reportsPerBatch = 1_000;
const entriesPerBatch = 1_000;
const linesPerBatch = 250;
const damagedMax = 10_000;

/** Copies everything; resolves when the copy is complete and compared. Throws for a target with other records. */
export async function copyStore(from: Store, to: Store, options: CopyOptions = {}): Promise<Copied> {
  const { isRepair = false } = options;
  const damage = createDamageList();
  const auditEntries = await copyAdministration(from.admin, to.admin, isRepair ? damage : undefined);
  const copied = await copyReports(from.reports, to.reports, options, damage);
  await copyQuarantine(from, to);
  await copyUsage(from, to);
  const retention = await from.retention.get();
  if (retention !== undefined) await to.retention.update((current) => current ?? retention);
  await compareReports(from.reports, to.reports, options, damage.has);
  // The copy of the log has named its first damaged entry.
  for (const found of await from.findDamage()) if (!isRepair || found.table !== 'audit') damage.add(found);
  return { ...copied, auditEntries, ...damage.found() };
}

/** Damaged records, each once. */
const createDamageList = () => {
  const damaged = new Map<string, DamagedRecord>();
  let damagedCount = 0;
  const nameOf = (table: string, key: string): string => `${table} ${key}`;
  return {
    add: (record: DamagedRecord): void => {
      const name = nameOf(record.table, record.key);
      if (damaged.has(name)) return;
      damagedCount += 1;
      if (damaged.size < damagedMax) damaged.set(name, record);
    },
    has: (report: StoredReport): boolean => damaged.has(nameOf('reports', keyOf(report))),
    found: () => ({ damaged: [...damaged.values()], damagedCount }),
  };
};

type DamageList = ReturnType<typeof createDamageList>;

const keyOf = ({ feedId, observationsMs }: StoredReport): string => `${feedId}/${observationsMs}`;

const targetDiffers = (what: string) =>
  new StoreError('store_write_failed', `${what} Copy into a new store, or one that this copy created.`);

const recordsOf = async <K extends AdminKind>(admin: AdminStore, kind: K): Promise<readonly KeyedRecord[]> =>
  (await admin.list(kind)).map((record) => ({ kind, key: keyedBy[kind](record), record }));

const copyAdministration = async (
  from: AdminStore,
  to: AdminStore,
  damage: DamageList | undefined,
): Promise<number> => {
  let last = await lastEntry(to);
  if (last !== undefined) {
    const [same] = await from.auditAfter(last.sequence - 1, 1);
    if (same?.hash !== last.hash) throw targetDiffers('The audit log of the target is not the beginning of this one.');
  }
  for (let more = true; more; ) {
    const entries =
      damage === undefined
        ? await from.auditAfter(last?.sequence ?? 0, entriesPerBatch)
        : await intactAfter(from, last, entriesPerBatch);
    more = entries.length === entriesPerBatch;
    // The records come with the last entries: those of the log are never ahead of them.
    const records = more
      ? []
      : [
          ...(await recordsOf(from, 'stream')),
          ...(await recordsOf(from, 'account')),
          ...(await recordsOf(from, 'signerSet')),
          ...(await recordsOf(from, 'mirror')),
        ];
    await to.takeOver(records, entries);
    last = entries.at(-1) ?? last;
  }
  const copied = last?.sequence ?? 0;
  const [newest] = await from.auditNewest(1);
  if (newest !== undefined && newest.sequence > copied)
    damage?.add({
      table: 'audit',
      key: `${copied + 1}`,
      reason: `entry ${copied + 1} is damaged or missing, so it and the entries after it are not copied`,
    });
  return copied;
};

/** Entries after another one, up to the first that is damaged or does not continue the log. */
const intactAfter = async (
  admin: AdminStore,
  last: AuditEntry | undefined,
  limit: number,
): Promise<readonly AuditEntry[]> => {
  const read = async (sequence: number, count: number): Promise<readonly AuditEntry[] | undefined> => {
    try {
      return await admin.auditAfter(sequence, count);
    } catch (error) {
      if (error instanceof CorruptRecordError) return undefined;
      throw error;
    }
  };
  const entries = [...((await read(last?.sequence ?? 0, limit)) ?? [])];
  if (entries.length === 0)
    for (let one: AuditEntry | undefined = last; entries.length < limit; entries.push(one)) {
      [one] = (await read(one?.sequence ?? 0, 1)) ?? [];
      if (one === undefined) break;
    }
  const end = entries.findIndex((entry, i) => !continuesLog(i === 0 ? last : entries[i - 1], entry));
  return end === -1 ? entries : entries.slice(0, end);
};

const lastEntry = async (admin: AdminStore): Promise<AuditEntry | undefined> => {
  let last: AuditEntry | undefined;
  for (let more = true; more; ) {
    const entries = await admin.auditAfter(last?.sequence ?? 0, entriesPerBatch);
    last = entries.at(-1) ?? last;
    more = entries.length === entriesPerBatch;
  }
  return last;
};

/** Every sound report of a store, in slices; calls back with each damaged record. */
const eachSlice = async (
  reports: ReportStore,
  signal: AbortSignal | undefined,
  act: (slice: readonly StoredReport[]) => Promise<void>,
  onDamaged: (record: DamagedRecord) => void = () => {},
): Promise<void> => {
  let cursor: string | undefined;
  do {
    signal?.throwIfAborted();
    const { entries, next } = await reports.scan(cursor, reportsPerBatch);
    for (const entry of entries)
      if (entry.error !== undefined) {
        const { error, table, key, feedId, observationsMs } = entry;
        onDamaged({ table, key, reason: error.message, feedId, observationsMs });
      }
    const sound = entries.flatMap(({ report }) => report ?? []);
    if (sound.length > 0) await act(sound);
    cursor = next;
  } while (cursor !== undefined);
};

const copyReports = async (
  from: ReportStore,
  to: ReportStore,
  { onProgress, signal, isRepair }: CopyOptions,
  damage: DamageList,
): Promise<Pick<Copied, 'reports' | 'duplicates'>> => {
  let reports = 0;
  let duplicates = 0;
  const leaveOut = (report: StoredReport, reason: string): void => {
    const { feedId, observationsMs } = report;
    damage.add({ table: 'reports', key: keyOf(report), reason, feedId, observationsMs });
  };
  const copySlice = async (scanned: readonly StoredReport[]): Promise<void> => {
    const slice: StoredReport[] = [];
    for (const report of scanned) {
      if (!isRepair || isItsBody(report)) slice.push(report);
      else leaveOut(report, 'its body is of another stream or time');
    }
    for (const [i, outcome] of (await to.append(slice.map(withPrice))).entries()) {
      const report = slice[i] as StoredReport; // one outcome each
      if (outcome === 'duplicate') duplicates += 1;
      if (outcome === 'stored' || outcome === 'duplicate') reports += 1;
      else if (isRepair) leaveOut(report, 'it contradicts another report of its stream');
      else throw targetDiffers(`The target holds another report of ${report.feedId}.`);
    }
    onProgress?.({ part: 'copied', reports });
  };
  await eachSlice(from, signal, copySlice, damage.add);
  return { reports, duplicates };
};

const isItsBody = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): boolean => {
  const body = contentsOf(fullReport);
  return body?.feedId === feedId && body.validFromMs === validFromMs && body.observationsMs === observationsMs;
};

const compareReports = async (
  from: ReportStore,
  to: ReportStore,
  { onProgress, signal }: CopyOptions,
  isLeftOut: (report: StoredReport) => boolean,
): Promise<void> => {
  let compared = 0;
  await eachSlice(from, signal, async (slice) => {
    const copied = slice.filter((report) => !isLeftOut(report));
    for (const [feedId, reports] of groupByFeed(copied)) await compareRun(to, feedId, reports);
    compared += slice.length;
    onProgress?.({ part: 'compared', reports: compared });
  });
};

const groupByFeed = (slice: readonly StoredReport[]): ReadonlyMap<FeedId, readonly StoredReport[]> => {
  const groups = new Map<FeedId, StoredReport[]>();
  for (const report of slice) groups.set(report.feedId, [...(groups.get(report.feedId) ?? []), report]);
  return groups;
};

const compareRun = async (to: ReportStore, feedId: FeedId, wanted: readonly StoredReport[]): Promise<void> => {
  const rest = new Map(wanted.map((report) => [report.observationsMs, report]));
  const lastMs = Math.max(...rest.keys());
  for (let from = Math.floor(Math.min(...rest.keys()) / 1_000), more = true; more && rest.size > 0; ) {
    const page = await to.page(feedId, from, reportsPerBatch);
    for (const { observationsMs, validFromMs, fullReport } of page.reports) {
      const report = rest.get(observationsMs);
      if (report?.validFromMs === validFromMs && Buffer.compare(report.fullReport, fullReport) === 0)
        rest.delete(observationsMs);
    }
    const reachedMs = page.reports.at(-1)?.observationsMs ?? lastMs;
    more = page.more && reachedMs < lastMs;
    from = Math.floor(reachedMs / 1_000) + 1;
  }
  // A source that is in use may have grown; any other difference is an error.
  if (rest.size > 0 && (await to.append([...rest.values()].map(withPrice))).some((outcome) => outcome !== 'stored'))
    throw new StoreError(
      'store_corrupt',
      `Reports of ${feedId} differ in the copy. Verify it with: sealpost store verify.`,
    );
};

// Oldest first and some at a time, as much as one transaction takes in its time. A target that has others keeps those.
const copyQuarantine = async ({ quarantine: from }: Store, { quarantine: to }: Store): Promise<void> => {
  const lines = [...(await from.list(quarantineLinesMax))].reverse();
  const copied = await to.count();
  const [last] = await to.list(1);
  if (!isDeepStrictEqual(last, lines[copied - 1])) return;
  for (let i = copied; i < lines.length; i += linesPerBatch) await to.add(lines.slice(i, i + linesPerBatch));
};

/** Before any day: a copy drops none for its age, and takes the source's last uses as they are. */
const copiedAtMs = 0;

// Counts add up, so each account's are taken over once.
const copyUsage = async (from: Store, to: Store): Promise<void> => {
  for (const { userId } of await from.admin.list('account')) {
    const rows = await from.usage.list(userId, '0000-01-01');
    const isNew = (await to.usage.list(userId, '0000-01-01')).length === 0;
    await to.usage.add(isNew ? rows : [], await from.usage.lastUses(userId), copiedAtMs);
  }
};
