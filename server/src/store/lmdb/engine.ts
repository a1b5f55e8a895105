// The embedded engine: a folder with two LMDB environments. One process writes `reports`, any process writes `admin`, and many read both. This file
// composes the parts and does backup and closing.
import { randomUUID } from 'node:crypto';
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { makeFolder } from '../../runtime/files.ts';
import { type StartWatch, unwatchedStart } from '../../runtime/start-watch.ts';
import { addCandle, type Candle, type CandleRange } from '../candle-rollup.ts';
import { createDamageLog, type DamageLog } from '../damage.ts';
import { joinRendered, renderReports } from '../format/rendered-report.ts';
import {
  type Quarantine,
  type RenderedPage,
  type ReportStats,
  type ReportStore,
  type Store,
  type StoredReport,
  StoreError,
} from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { createWake } from '../wake.ts';
import type { WritingTimes } from '../write-state.ts';
import { createLmdbAdmin, createLmdbRetention } from './admin.ts';
import type { CandleSlice } from './candles.ts';
import { checkAdministration, checkAgreement, scanSlice } from './check.ts';
import { type CrashMarker, leaveCrashMarker } from './crash-marker.ts';
import { type Environment, openEnvironment } from './environment.ts';
import { openFailure } from './failure.ts';
import { checkFormat, lineageOfStore, prepareReports } from './format.ts';
import { createFileKeyHolders } from './key-holders.ts';
import { corruptStore, hasPages, pagesFile } from './pages-file.ts';
import { createReportReader, type DamagedPage, renderPage, toPage } from './read/report-reader.ts';
import type { FoundReports } from './read/runs.ts';
import { countStreams, openMeta, openReportTables, type ReportTables, readCounters } from './report-tables.ts';
import { createLmdbUsage } from './usage.ts';
import { listQuarantine } from './write/quarantine.ts';
import { usedBytes } from './write/retention.ts';
import { type Closings, createClosings, openWriter, type Writer, type WriterOptions } from './write/writer.ts';
import { isBeingWritten, takeWriterLock } from './write/writer-lock.ts';
import { holdWriterToken, takeWriterToken, type WriterToken } from './write/writer-token.ts';

/** How often a process that only reads looks for new reports, for its listeners, unless it is told of them. */
const appendPollMs = 20;
/** The one that writes looks after each append; this is for one that was stored though its thread ended before it answered. */
const ownAppendPollMs = 500;

/** Opens the store in a folder, for reading or writing. `tell` gets a writer's events. */
export async function openLmdbStore(
  folder: string,
  mode: 'read' | 'write',
  tell: (event: StoreEvent) => void = () => {},
  starting: StartWatch = unwatchedStart,
  writing: WritingTimes & Pick<WriterOptions, 'keepsProcess'> = {},
): Promise<Store> {
  const reportsFolder = join(folder, 'reports');
  const adminFolder = join(folder, 'admin');
  if (mode === 'read' && !hasPages(reportsFolder)) {
    throw new StoreError('store_not_found', `No store in ${folder}. Create one with: sealpost init --store ${folder}.`);
  }
  // The administration is created first. Without its file a store would go on without accounts, catalog and signer sets.
  if (hasPages(reportsFolder) && !hasPages(adminFolder))
    throw corruptStore(adminFolder, 'its file data.mdb is missing');
  makeFolders([reportsFolder, adminFolder]);
  const closings = createClosings();
  const isReadOnly = mode === 'read' && isOnReadOnlyMedia(adminFolder);
  const mark = mode === 'write' ? markStart(reportsFolder, tell) : undefined;
  const admin = openAdministration(adminFolder, isReadOnly, closings, mark);
  const place = { token: randomUUID(), pid: process.pid, takenAt: new Date().toISOString() };
  const damage = createDamageLog((found, total) => tell({ kind: 'damaged', total, ...found }));
  const unlock = mode === 'write' ? await lockOrClose(admin, reportsFolder, place, damage, mark) : undefined;
  const release = (): void => {
    mark?.clear();
    unlock?.();
  };
  let reports: OpenReports | undefined;
  let writer: Writer | undefined;
  try {
    const opened = openReports(reportsFolder, folder, mode === 'write' ? place : undefined, damage, closings);
    reports = opened;
    writer = openWriter({
      folder,
      files: { reports: opened.environment.files, admin: admin.files },
      place: mode === 'write' ? place : undefined,
      tell: passDamage(tell, damage),
      closings,
      ...writing,
      refresh: (part) => (part === 'administration' ? admin : opened.environment).root.resetReadTxn(),
    });
    if (mode === 'write') await starting.part('the thread that writes to the store', writer.ready);
    return composeStore(folder, admin, reports, writer, mode, damage, release);
  } catch (error) {
    await writer?.close();
    await reports?.environment.root.close();
    await admin.root.close();
    release();
    throw error;
  }
}

/** What the writer's thread finds damaged is known to the store. */
const passDamage =
  (tell: (event: StoreEvent) => void, damage: DamageLog) =>
  (event: StoreEvent): void => {
    if (event.kind === 'damaged') {
      const { table, key, reason, feedId } = event;
      damage.note({ table, key, reason, feedId });
    } else tell(event);
  };

const makeFolders = (folders: readonly string[]): void => {
  for (const folder of folders) {
    try {
      makeFolder(folder, 0o700);
    } catch (error) {
      throw openFailure(folder, error);
    }
  }
};

/** A backup on read-only media: nothing of it can be changed, and LMDB does without its lock. */
const isOnReadOnlyMedia = (folder: string): boolean => {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'; // of node:fs
  }
};

/**
 * Leaves the mark before LMDB reads anything of the store, since either environment may crash it, and says what the one before left (D173). The
 * mark of a process that is still writing is its own: this one is about to be refused.
 */
const markStart = (reportsFolder: string, tell: (event: StoreEvent) => void): CrashMarker => {
  const mark = leaveCrashMarker(reportsFolder, isBeingWritten(reportsFolder));
  if (mark.unexpectedEnds > 0) tell({ kind: 'endedUnexpectedly', times: mark.unexpectedEnds });
  return mark;
};

const openAdministration = (
  folder: string,
  isReadOnly: boolean,
  closings: Closings,
  mark: CrashMarker | undefined,
): Environment => {
  try {
    return openEnvironment(folder, isReadOnly, closings.administration);
  } catch (error) {
    mark?.clear();
    throw error;
  }
};

const lockOrClose = async (
  admin: Environment,
  reportsFolder: string,
  place: WriterToken,
  damage: DamageLog,
  mark: CrashMarker | undefined,
): Promise<() => void> => {
  try {
    const unlock = takeWriterLock(admin, reportsFolder, place, damage);
    mark?.leave();
    holdWriterToken(admin, place);
    return unlock;
  } catch (error) {
    await admin.root.close();
    // The one that holds the lock has the mark too.
    if (!(error instanceof StoreError && error.code === 'store_locked')) mark?.clear();
    throw error;
  }
};

type OpenReports = { readonly environment: Environment; readonly tables: ReportTables };

// A writer creates the tables, which a reader cannot.
const openReports = (
  reportsFolder: string,
  folder: string,
  place: WriterToken | undefined,
  damage: DamageLog,
  closings: Closings,
): OpenReports => {
  const environment = openEnvironment(reportsFolder, place === undefined, closings.reports);
  try {
    checkFormat(openMeta(environment), folder, damage);
    const tables = openReportTables(environment);
    if (place !== undefined) {
      takeWriterToken(environment, place, damage);
      holdWriterToken(environment, place);
      prepareReports(environment, tables, damage);
    }
    return { environment, tables };
  } catch (error) {
    void environment.root.close();
    throw typeof (error as { code?: unknown }).code === 'number' ? openFailure(folder, error) : error; // whatever was thrown
  }
};

const composeStore = (
  folder: string,
  adminEnvironment: Environment,
  { environment, tables }: OpenReports,
  writer: Writer,
  mode: 'read' | 'write',
  damage: DamageLog,
  release: () => void,
): Store => {
  const reader = createReportReader(
    tables,
    damage,
    () => environment.root.resetReadTxn(),
    mode === 'write' ? writer.writes : () => undefined,
  );
  const appended = createWake(reader.position, mode === 'write' ? ownAppendPollMs : appendPollMs);
  const admin = createLmdbAdmin(
    adminEnvironment,
    damage,
    writer.administer,
    mode === 'write' ? writer.putRecords : undefined,
  );
  let closed = false;
  const writable = (): Writer => {
    if (mode === 'write' && !closed) return writer;
    throw closed
      ? closedError(folder)
      : new StoreError('store_read_only', `The store in ${folder} is open for reading only.`);
  };
  const reports: ReportStore = {
    append: async (batch) => {
      const outcomes = await writable().append(batch);
      appended.check();
      return outcomes;
    },
    // Nothing can be read here before it is durable.
    confirm: async () => {},
    latest: reader.latest,
    newestMs: reader.newestMs,
    at: async (feedIds, seconds) => reader.at(feedIds, seconds),
    neighbours: async (feedId, seconds) => reader.neighbours(feedId, seconds),
    page: async (feedId, fromSeconds, limit) => {
      const { reports, more } = await readSlices(reader.from, feedId, fromSeconds, limit);
      return { reports, more };
    },
    renderedAt: async (feedIds, seconds) => reader.renderedAt(feedIds, seconds),
    renderedPage: async (feedId, fromSeconds, limit) =>
      limit <= sliceReports
        ? reader.renderedPage(feedId, fromSeconds, limit)
        : renderSlices(await readSlices(reader.from, feedId, fromSeconds, limit)),
    windows: async (feedId, fromSeconds, toSeconds, limit) => reader.windows(feedId, fromSeconds, toSeconds, limit),
    candles: async (feedId, range) => readCandles(reader.candles, feedId, range),
    appendedAfter: async (position, limit, feedIds) => reader.appendedAfter(position, limit, feedIds),
    position: async () => reader.position(),
    lineage: async () => {
      environment.root.resetReadTxn();
      return lineageOfStore(environment, tables);
    },
    onAppended: appended.listen,
    checkAppended: appended.check,
    trim: async (retention) => writable().trim(retention),
    scan: async (cursor, limit) => scanSlice(environment, tables, cursor, limit),
    stats: async () => readStats(folder, environment, tables, damage),
  };
  const quarantine: Quarantine = {
    add: async (rejected) => writable().quarantine(rejected),
    list: async (limit) => {
      environment.root.resetReadTxn();
      return listQuarantine(tables.quarantine, limit, damage);
    },
    count: async () => {
      environment.root.resetReadTxn();
      return tables.quarantine.getKeysCount();
    },
  };
  return {
    reports,
    quarantine,
    admin,
    usage: createLmdbUsage(adminEnvironment, damage, writer.addUsage),
    nodes: undefined,
    keyHolders: createFileKeyHolders(folder),
    retention: createLmdbRetention(adminEnvironment, damage, writer.administer),
    damage: damage.list,
    stops: writer.stops,
    findDamage: async () => [...checkAdministration(adminEnvironment), ...checkAgreement(environment, tables)],
    backup: (target) => backup(environment, adminEnvironment, target),
    close: async () => {
      if (closed) return;
      closed = true;
      appended.close();
      admin.close();
      await writer.close();
      await environment.root.close();
      await adminEnvironment.root.close();
      release();
    },
  };
};

/** Reports that are read or rendered before others get their turn: less than 1 ms. */
const sliceReports = 250;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type ReadFrom = (feedId: FeedId, fromMs: number, limit: number) => FoundReports;

/** Reads a page, a long one in slices, which may be of different snapshots. */
const readSlices = async (read: ReadFrom, feedId: FeedId, fromSeconds: number, limit: number): Promise<DamagedPage> => {
  const reports: StoredReport[] = [];
  let isDamaged = false;
  for (let fromMs = fromSeconds * 1_000; ; ) {
    const wanted = Math.min(sliceReports, limit + 1 - reports.length); // one more than the limit shows whether others follow
    const slice = read(feedId, fromMs, wanted);
    reports.push(...slice.reports);
    isDamaged ||= slice.isDamaged;
    const last = slice.reports.at(-1);
    if (last === undefined || slice.reports.length < wanted || reports.length > limit)
      return toPage({ reports, isDamaged }, limit);
    fromMs = last.observationsMs + 1;
    await nextTurn();
  }
};

const renderSlices = async (page: DamagedPage): Promise<RenderedPage> => {
  const json: Buffer[] = [];
  for (let i = 0; i < page.reports.length; i += sliceReports) {
    await nextTurn();
    json.push(renderReports(page.reports.slice(i, i + sliceReports)));
  }
  return { ...renderPage({ ...page, reports: page.reports.slice(-1) }), json: joinRendered(json) };
};

/** Reads candles, many of them in slices, which may be of different snapshots. */
const readCandles = async (
  read: (feedId: FeedId, range: CandleRange) => CandleSlice,
  feedId: FeedId,
  range: CandleRange,
): Promise<readonly Candle[]> => {
  const candles: Candle[] = [];
  for (let { from } = range; ; await nextTurn()) {
    const slice = read(feedId, { ...range, from });
    for (const one of slice.candles) addCandle(candles, one);
    if (slice.next === undefined) return candles;
    from = slice.next;
  }
};

const closedError = (folder: string) => new StoreError('store_closed', `The store in ${folder} is closed.`);

const readStats = (folder: string, { root }: Environment, tables: ReportTables, damage: DamageLog): ReportStats => {
  root.resetReadTxn();
  const files = [pagesFile(join(folder, 'reports')), pagesFile(join(folder, 'admin'))];
  return {
    streams: countStreams(tables),
    ...readCounters(tables, damage),
    usedBytes: usedBytes(tables),
    // Blocks on the disk: the file is kept a little longer than its pages, and that part is sparse.
    fileBytes: files.reduce((sum, file) => sum + statSync(file).blocks * 512, 0),
  };
};

/** Creates a folder for a backup; throws if it is not empty. */
export function requireEmptyFolder(folder: string): void {
  makeFolder(folder, 0o700);
  if (readdirSync(folder).length > 0)
    throw new StoreError('store_write_failed', `${folder} is not empty. Use a new folder for the backup.`);
}

const backup = async (reports: Environment, admin: Environment, target: string): Promise<void> => {
  requireEmptyFolder(target);
  for (const [name, { root }] of [
    ['admin', admin],
    ['reports', reports],
  ] as const) {
    mkdirSync(join(target, name), { mode: 0o700 });
    root.resetReadTxn();
    await root.backup(join(target, name), true);
    makePrivate(pagesFile(join(target, name)));
    for (const path of [pagesFile(join(target, name)), join(target, name), target]) await flushFile(path);
  }
};

/** As the files of the store itself: a backup may be moved out of its folder. */
const makePrivate = (path: string): void => {
  try {
    chmodSync(path, 0o600);
  } catch {
    // a file system without modes
  }
};

/** Without waiting for the disk on the loop: a backup may be large. */
const flushFile = async (path: string): Promise<void> => {
  const file = await openFile(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
};
