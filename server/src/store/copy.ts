// Copies a store to another engine through the contract: reports, administrative records with their audit log, quarantine and usage. You can run it
// again: it recognizes what is there. At the end it reads back and compares every report.
import { isDeepStrictEqual } from 'node:util';
import type { FeedId } from '@sealpost/protocol';
import { keyedBy } from './admin-keys.ts';
import { quarantineLinesMax } from './bounds.ts';
import { withPrice } from './format/report-contents.ts';
import {
  type AdminKind,
  type AdminStore,
  type AuditEntry,
  type KeyedRecord,
  type ReportStore,
  type Store,
  type StoredReport,
  StoreError,
} from './store.ts';

export type CopyProgress = { readonly part: 'copied' | 'compared'; readonly reports: number };

export type Copied = {
  readonly reports: number;
  /** Of these, reports that the target had before. */
  readonly duplicates: number;
  /** Records of the source that are not what was written; they were left out. */
  readonly damaged: number;
  readonly auditEntries: number;
};

export type CopyOptions = { readonly onProgress?: (progress: CopyProgress) => void; readonly signal?: AbortSignal };

const reportsPerBatch = 1_000;
const entriesPerBatch = 1_000;
const linesPerBatch = 250;

/** Copies everything; resolves when the copy is complete and compared. Throws for a target with other records. */
export const copyStore = async (from: Store, to: Store, { onProgress, signal }: CopyOptions = {}): Promise<Copied> => {
  const auditEntries = await copyAdministration(from.admin, to.admin);
  const copied = await copyReports(
    from.reports,
    to.reports,
    (reports) => onProgress?.({ part: 'copied', reports }),
    signal,
  );
  await copyQuarantine(from, to);
  await copyUsage(from, to);
  const retention = await from.retention.get();
  if (retention !== undefined) await to.retention.update((current) => current ?? retention);
  await compareReports(from.reports, to.reports, (reports) => onProgress?.({ part: 'compared', reports }), signal);
  const { length: damaged } = await from.findDamage();
  return { ...copied, damaged: copied.damaged + damaged, auditEntries };
};

const targetDiffers = (what: string) =>
  new StoreError('store_write_failed', `${what} Copy into a new store, or one that this copy created.`);

const recordsOf = async <K extends AdminKind>(admin: AdminStore, kind: K): Promise<readonly KeyedRecord[]> =>
  (await admin.list(kind)).map((record) => ({ kind, key: keyedBy[kind](record), record }));

const copyAdministration = async (from: AdminStore, to: AdminStore): Promise<number> => {
  const last = await lastEntry(to);
  if (last !== undefined) {
    const [same] = await from.auditAfter(last.sequence - 1, 1);
    if (same?.hash !== last.hash) throw targetDiffers('The audit log of the target is not the beginning of this one.');
  }
  let sequence = last?.sequence ?? 0;
  for (let more = true; more; ) {
    const entries = await from.auditAfter(sequence, entriesPerBatch);
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
    sequence = entries.at(-1)?.sequence ?? sequence;
  }
  return sequence;
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

/** Every sound report of a store, in slices; returns how many records are damaged. */
const eachSlice = async (
  reports: ReportStore,
  signal: AbortSignal | undefined,
  act: (slice: readonly StoredReport[]) => Promise<void>,
): Promise<number> => {
  let damaged = 0;
  let cursor: string | undefined;
  do {
    signal?.throwIfAborted();
    const { entries, next } = await reports.scan(cursor, reportsPerBatch);
    damaged += entries.filter(({ error }) => error !== undefined).length;
    const sound = entries.flatMap(({ report }) => report ?? []);
    if (sound.length > 0) await act(sound);
    cursor = next;
  } while (cursor !== undefined);
  return damaged;
};

const copyReports = async (
  from: ReportStore,
  to: ReportStore,
  onProgress: (reports: number) => void,
  signal: AbortSignal | undefined,
): Promise<Omit<Copied, 'auditEntries'>> => {
  let reports = 0;
  let duplicates = 0;
  const damaged = await eachSlice(from, signal, async (slice) => {
    const outcomes = await to.append(slice.map(withPrice));
    const rejected = outcomes.findIndex((outcome) => outcome === 'conflict' || outcome === 'overlap');
    if (rejected >= 0) throw targetDiffers(`The target holds another report of ${slice[rejected]?.feedId}.`);
    duplicates += outcomes.filter((outcome) => outcome === 'duplicate').length;
    reports += slice.length;
    onProgress(reports);
  });
  return { reports, duplicates, damaged };
};

const compareReports = async (
  from: ReportStore,
  to: ReportStore,
  onProgress: (reports: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> => {
  let compared = 0;
  await eachSlice(from, signal, async (slice) => {
    for (const [feedId, reports] of groupByFeed(slice)) await compareRun(to, feedId, reports);
    compared += slice.length;
    onProgress(compared);
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
