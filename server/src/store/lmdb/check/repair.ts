// Repairs an LMDB store as its only writer. Corrupt records are saved to a file first, then replaced by what can be proven or derived, in short
// transactions that each leave a usable store: run it again to complete an interrupted repair (D131).
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FeedId, SignerSets } from '@sealpost/protocol';
import { createDamageLog } from '../../damage.ts';
import { createAsideFile, createRepairTally, type Repaired, type RepairOptions } from '../../repair.ts';
import { CorruptRecordError, StoreError } from '../../store.ts';
import { createDirectory, putStream } from '../directory.ts';
import { type Environment, openEnvironment, type Table } from '../environment.ts';
import { checkFormat } from '../format.ts';
import { hasPages } from '../pages-file.ts';
import type { ReportSource } from '../read/runs.ts';
import { decodeSetAside } from '../read/set-aside.ts';
import {
  countRuns,
  lastAppended,
  openReportTables,
  storedCounters,
  storedPosition,
  streamOfKey,
  writeCounters,
  writePosition,
} from '../report-tables.ts';
import { holdPlace, takePlace } from '../write/fence.ts';
import { takeWriterLock } from '../write/writer-lock.ts';
import { readSignerSets, repairAdministration } from './repair-admin.ts';
import { compareRollups } from './repair-rollups.ts';
import {
  applyRun,
  boundLoss,
  createObserved,
  examineRun,
  examineSetAside,
  findStreams,
  isOpen,
  type KnownStreams,
  lossOf,
  putAside,
  type RunChange,
} from './repair-runs.ts';
import {
  isAscending,
  type Repair,
  rebuildRollups,
  repairAppended,
  repairSmallTables,
  rewriteTable,
} from './repair-tables.ts';

/** Repairs the store in a folder. Throws while another process writes to it, except on a dry run. */
export const repairLmdbStore = async (folder: string, given: RepairOptions): Promise<Repaired> => {
  const options = { ...given, asideFolder: folder };
  const [reportsFolder, adminFolder] = [join(folder, 'reports'), join(folder, 'admin')];
  if (!hasPages(reportsFolder))
    throw new StoreError('store_not_found', `No store in ${folder}. Set its folder with --store.`);
  const admin = openEnvironment(adminFolder, options.dryRun);
  let unlock = (): void => {};
  let environment: Environment | undefined;
  const file = createAsideFile(options);
  try {
    const place = { token: randomUUID(), pid: process.pid, takenAt: new Date().toISOString() };
    if (!options.dryRun) unlock = takeWriterLock(admin, reportsFolder, place, createDamageLog());
    environment = openEnvironment(reportsFolder, options.dryRun);
    if (!options.dryRun) takePlace(environment, place, createDamageLog());
    if (!options.dryRun) for (const one of [admin, environment]) holdPlace(one, place);
    const tables = openReportTables(environment);
    checkFormat(tables, folder, createDamageLog());
    const repair: Repair = { environment, tables, file, tally: createRepairTally(), lost: [], left: [], options };
    const signerSets = readSignerSets(admin);
    await repairReports(repair, signerSets);
    repairAdministration(repair, admin);
    return {
      file: file.path(),
      setAside: file.count(),
      rebuilt: repair.tally.all(),
      lost: repair.lost,
      left: repair.left,
    };
  } finally {
    file.close();
    await environment?.root.close();
    unlock();
    await admin.root.close();
  }
};

const sourceOf = ({ tables }: Repair): ReportSource => {
  const damage = createDamageLog();
  return { tables, damage, directory: createDirectory(tables, damage) };
};

const repairReports = async (repair: Repair, signerSets: SignerSets): Promise<void> => {
  const { environment, tables, options, tally } = repair;
  if (!options.lossesOnly) repairSmallTables(repair);
  const streams = findStreams(tables);
  const named = new Set(streams.keys());
  const changes = await examineRuns(repair, streams, signerSets);
  for (const change of changes) if (change.isSettled === undefined) putAside(repair.file, change);
  repair.file.flush();
  for (const stream of streams.keys()) if (!named.has(stream)) tally.add('numbers');
  if (options.dryRun) planLosses(repair, changes, streams);
  else {
    environment.root.transactionSync(() => {
      for (const [stream, feedId] of streams) if (!named.has(stream)) putStream(tables, feedId, stream);
    });
    applyRuns(repair, changes);
  }
  repairAppended(repair);
  rebuildRollups(repair, sourceOf(repair));
  if (!options.lossesOnly || changes.some(({ reports }) => reports.length > 0))
    await compareRollups(repair, sourceOf(repair), changes);
  repairCounters(repair, changes.length > 0);
  if (!options.dryRun) listLosses(repair);
  for (const change of changes) if (change.reports.length > 0 && change.table !== 'damaged') tally.add(change.table);
};

/** Checks every run, and handles signals in between. */
const examineRuns = async (
  repair: Repair,
  streams: KnownStreams,
  signerSets: SignerSets,
): Promise<readonly RunChange[]> => {
  const { tables, options } = repair;
  const changes: RunChange[] = [];
  const total = [tables.blocks, tables.tail].reduce((sum, table) => sum + entriesOf(table), 0);
  let done = 0;
  for (const name of options.lossesOnly ? [] : (['blocks', 'tail'] as const)) {
    for (const entry of tables[name].getRange()) {
      const change = examineRun(name, copyEntry(entry), streams, signerSets);
      if (change !== undefined) changes.push(change);
      done += 1;
      if (done % 64 !== 0) continue;
      options.onProgress?.(done, total);
      await nextTurn();
      options.signal?.throwIfAborted();
    }
  }
  const source = sourceOf(repair);
  for (const entry of [...(tables.damaged?.getRange() ?? [])]) {
    const change = examineSetAside(source, entry, streams, signerSets);
    if (change !== undefined && change !== 'damaged') changes.push(change);
  }
  return changes;
};

const copyEntry = ({ key, value }: { readonly key: Buffer; readonly value: Buffer }) => ({
  key: Buffer.from(key),
  value: Buffer.from(value),
});

const entriesOf = (table: Table): number => (table.getStats() as { entryCount: number }).entryCount; // lmdb types it as {}

/** Changes in one transaction: a few milliseconds of writing each. */
const changesPerTransaction = 16;

const applyRuns = (repair: Repair, changes: readonly RunChange[]): void => {
  const { environment, tables, file } = repair;
  // Where keys are out of order nothing is found by its key: such a table is rewritten with what is intact.
  const rewritten = (['blocks', 'tail'] as const).filter((name) => !isAscending(tables[name]));
  const observed = createObserved(tables);
  for (const name of rewritten) rewriteTable(environment, tables[name], (entry) => isOpen(entry) !== undefined);
  for (let i = 0; i < changes.length; i += changesPerTransaction) {
    environment.root.transactionSync(() => {
      const source = sourceOf(repair);
      for (const change of changes.slice(i, i + changesPerTransaction)) {
        const isRemoved = rewritten.some((name) => name === change.table);
        applyRun(source, change, { file: file.path() ?? '', isRemoved, observed });
      }
    });
  }
};

/** What would be lost, as far as it can be said without changing anything. */
const planLosses = (repair: Repair, changes: readonly RunChange[], streams: KnownStreams): void => {
  const [source, observed] = [sourceOf(repair), createObserved(repair.tables)];
  for (const { table, entry, stream, description } of changes) {
    if (description === undefined) continue;
    const bounded = stream === undefined ? description : boundLoss(source, stream, description, observed);
    repair.lost.push(lossOf(feedIdIn(streams, stream), table, entry.key, bounded));
  }
};

const feedIdIn = (streams: KnownStreams, stream: number | undefined): FeedId | undefined =>
  stream === undefined ? undefined : streams.get(stream);

/** Everything that the store knows to be lost, by this repair and by those before it. */
const listLosses = (repair: Repair): void => {
  const { directory } = sourceOf(repair);
  for (const { key, value } of repair.tables.damaged?.getRange() ?? []) {
    try {
      const description = decodeSetAside(key, value);
      repair.lost.push(lossOf(directory.feedIdOf(streamOfKey(key)), description.table, key, description));
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
    }
  }
};

/** `isChanged`: runs were, and who reads them has to know. */
const repairCounters = ({ environment, tables, tally, options }: Repair, isChanged: boolean): void => {
  const counted = storedCounters(tables);
  const actual = countRuns(tables);
  const isRight = counted?.reports === actual.reports && counted.reportBytes === actual.reportBytes;
  const last = Math.max(storedPosition(tables) ?? 0, lastAppended(tables, createDamageLog()));
  const isPlaced =
    storedPosition(tables) === last || (last === 0 && tables.meta.get(Buffer.from('position')) === undefined);
  if (!isRight) tally.add('meta');
  if (!isPlaced) tally.add('meta');
  if (options.dryRun || (isRight && isPlaced && !isChanged)) return;
  environment.root.transactionSync(() => {
    if (!isRight || isChanged) writeCounters(tables, actual);
    if (!isPlaced) writePosition(tables, last);
  });
};
