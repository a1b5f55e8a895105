// Repairs the derived tables of the reports environment: small tables, append order, minutes (D131).
import { closeSync, openSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeAll } from '../../../runtime/file-replacement.ts';
import { createDamageLog, dependentsOf } from '../../damage.ts';
import { decodeKeyedRecord } from '../../format/record.ts';
import type { AsideFile, createRepairTally, Loss, RepairOptions } from '../../repair.ts';
import { CorruptRecordError } from '../../store.ts';
import { checkCandle, restoreRollup, rollupKeys, rollupNames } from '../candles.ts';
import { checkStreamRow } from '../directory.ts';
import type { Environment, Table } from '../environment.ts';
import { checkMeta, isMetaName, prepareReports } from '../format.ts';
import { pricesIn } from '../read/found-reports.ts';
import type { ReportSource } from '../read/runs.ts';
import { decodeSetAside } from '../read/set-aside.ts';
import {
  decodeAppended,
  encodeAppended,
  positionKey,
  positionOfKey,
  type ReportTables,
  storedPosition,
} from '../report-tables.ts';

type Entry = { readonly key: Buffer; readonly value: Buffer };

/** What the steps of a repair share. */
export type Repair = {
  readonly environment: Environment;
  readonly tables: ReportTables;
  readonly file: AsideFile;
  readonly tally: ReturnType<typeof createRepairTally>;
  readonly lost: Loss[];
  readonly left: { readonly table: string; readonly key: string; readonly why: string }[];
  readonly options: RepairOptions;
};

/** Are the keys of a table in the order that its look-ups rely on? */
export const isAscending = (table: Table): boolean => {
  let before: Buffer | undefined;
  for (const key of table.getKeys()) {
    if (before !== undefined && Buffer.compare(before, key) >= 0) return false;
    before = Buffer.from(key);
  }
  return true;
};

const headBytes = 6; // lengths of key and value

function* readDump(descriptor: number): Generator<Entry> {
  const head = Buffer.alloc(headBytes);
  while (readSync(descriptor, head) === headBytes) {
    const [keyBytes, valueBytes] = [head.readUInt16BE(0), head.readUInt32BE(2)];
    const entry = Buffer.alloc(keyBytes + valueBytes);
    readSync(descriptor, entry);
    yield { key: entry.subarray(0, keyBytes), value: entry.subarray(keyBytes) };
  }
}

/** Rewrites a table with the kept entries, through a file, in one transaction. */
export const rewriteTable = ({ root, folder }: Environment, table: Table, isKept: (entry: Entry) => boolean): void => {
  const path = join(folder, 'repair.tmp');
  const dump = openSync(path, 'w+', 0o600);
  try {
    for (const entry of table.getRange()) {
      if (!isKept(entry)) continue;
      const head = Buffer.alloc(headBytes);
      head.writeUInt16BE(entry.key.length, 0);
      head.writeUInt32BE(entry.value.length, 2);
      writeAll(dump, Buffer.concat([head, entry.key, entry.value]));
    }
    const source = openSync(path, 'r');
    try {
      root.transactionSync(() => {
        table.clearSync();
        for (const { key, value } of readDump(source)) table.put(key, value);
      });
    } finally {
      closeSync(source);
    }
  } finally {
    closeSync(dump);
    rmSync(path, { force: true });
  }
};

const reasonOf = (check: () => unknown): string | undefined => {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof CorruptRecordError) return error.message;
    throw error;
  }
};

/** Takes the damaged records of a table out, with the file first. Returns them. */
const removeDamaged = (
  repair: Repair,
  name: keyof Repair['tables'],
  check: (entry: Entry) => unknown,
): readonly Entry[] => {
  const { tables, file, environment, options } = repair;
  const table = tables[name];
  if (table === undefined) return [];
  const found: Entry[] = [];
  for (const { key, value } of table.getRange()) {
    const reason = reasonOf(() => check({ key, value }));
    if (reason === undefined) continue;
    found.push({ key: Buffer.from(key), value: Buffer.from(value) });
    file.put({ environment: 'reports', table: name, key: key.toString('hex'), value, reason });
  }
  if (options.dryRun) return found;
  file.flush();
  if (!isAscending(table)) rewriteTable(environment, table, (entry) => reasonOf(() => check(entry)) === undefined);
  else if (found.length > 0)
    environment.root.transactionSync(() => {
      for (const { key } of found) table.removeSync(key);
    });
  return found;
};

const nothing = { feedId: null, fromMs: null, toMs: null, reports: null };

/** Stream numbers, format, lineage, quarantine, and descriptions of losses. */
export const repairSmallTables = (repair: Repair): void => {
  const { tally, lost, options } = repair;
  // Rows stay until both tables are rewritten from what either says.
  for (const name of ['numbers', 'feedIds'] as const)
    for (const { key, value } of repair.tables[name].getRange()) {
      const reason = reasonOf(() => checkStreamRow(key, value));
      if (reason === undefined) continue;
      repair.file.put({ environment: 'reports', table: name, key: key.toString('hex'), value, reason });
      tally.add(name);
    }
  const strayOrDamaged = ({ key, value }: Entry): void => {
    if (!isMetaName(key)) throw new CorruptRecordError('it has no meaning');
    checkMeta(key, value);
  };
  for (const _ of removeDamaged(repair, 'meta', strayOrDamaged)) tally.add('meta');
  if (!options.dryRun) prepareReports(repair.environment, repair.tables, createDamageLog());
  for (const { key } of removeDamaged(repair, 'quarantine', ({ key, value }) =>
    decodeKeyedRecord(key, value, 'a quarantined line'),
  ))
    lost.push({ ...nothing, table: 'quarantine', key: key.toString('hex'), what: 'one quarantined line' });
  for (const { key } of removeDamaged(repair, 'damaged', ({ key, value }) => decodeSetAside(key, value)))
    lost.push({ ...nothing, table: 'damaged', key: key.toString('hex'), what: 'the description of an earlier loss' });
};

/** Batches of the append order: one under a wrong key is put where it follows the batch before it; the place of a lost one is marked. */
export const repairAppended = (repair: Repair): void => {
  const { environment, tables, lost, tally, options } = repair;
  const damaged = removeDamaged(repair, 'appended', ({ key, value }) => decodeAppended(key, value));
  if (damaged.length === 0) return;
  const [gaps, position] = [gapsOf(tables.appended, damaged), storedPosition(tables)];
  const puts: Entry[] = [];
  for (const { value } of damaged) {
    const at = gaps.find(({ from }) => reasonOf(() => decodeAppended(positionKey(from), value)) === undefined);
    if (at !== undefined) puts.push({ key: positionKey(at.from), value });
  }
  tally.add('appended', puts.length);
  const open = gaps.filter(({ from }) => !puts.some(({ key }) => positionOfKey(key) === from));
  for (const { from, to } of open.filter(({ to }) => to !== undefined || position !== undefined)) {
    const end = to ?? position;
    if (end === undefined || end < from) continue;
    lost.push({
      ...nothing,
      table: 'appended',
      key: `${from}`,
      what: `the order of appending from position ${from} to ${end}`,
    });
    // An empty batch says that something is missing here; one more where it is the last keeps the last position.
    for (const first of to === undefined ? [from, end + 1] : [from])
      puts.push({ key: positionKey(first), value: encodeAppended(positionKey(first), []) });
  }
  if (!options.dryRun)
    environment.root.transactionSync(() => {
      for (const { key, value } of puts) tables.appended.put(key, value);
    });
};

type Gap = { readonly from: number; readonly to: number | undefined };

/** Where batches do not follow each other, and the end, where one may be missing. */
const gapsOf = (appended: Table, damaged: readonly Entry[]): readonly Gap[] => {
  const gaps: Gap[] = [];
  // Older batches are forgotten: what was before the first one that is left, only a damaged one can say.
  let next = Math.min(...damaged.filter(({ key }) => key.length === 8).map(({ key }) => positionOfKey(key)));
  for (const { key, value } of appended.getRange()) {
    if (reasonOf(() => decodeAppended(key, value)) !== undefined) continue;
    const first = positionOfKey(key);
    if (first > next) gaps.push({ from: next, to: first - 1 });
    next = first + decodeAppended(key, value).length;
  }
  return Number.isSafeInteger(next) ? [...gaps, { from: next, to: undefined }] : gaps;
};

/** Damaged roll-ups are made again: minutes from their reports, then hours and days from minutes. */
export const rebuildRollups = (repair: Repair, source: ReportSource): void => {
  const { environment, tables, tally, lost, options } = repair;
  const streams = [...source.directory.numbers()];
  for (const name of rollupNames) {
    for (const entry of removeDamaged(repair, name, ({ key, value }) => checkCandle(name, key, value))) {
      const isRebuilt =
        options.dryRun ||
        environment.root.transactionSync(() =>
          rollupKeys(name, entry, streams)
            .map((key) => restoreRollup(tables, name, key, (...range) => pricesIn(source, ...range)))
            .some(Boolean),
        );
      if (isRebuilt) tally.add(name);
      else lost.push({ ...nothing, table: name, key: entry.key.toString('hex'), what: dependentsOf(name, '') });
    }
  }
};
