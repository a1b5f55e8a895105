// Checks that the tables of the reports environment agree: records may match their checksums and still contradict each other (D130). Reads one
// snapshot, so a writer may continue.
import { createDamageLog, type DamageLog } from '../../damage.ts';
import type { StoredRun } from '../../format/report-run.ts';
import { CorruptRecordError, type Damage, type Window } from '../../store.ts';
import { loadStreams } from '../directory.ts';
import type { Environment } from '../environment.ts';
import { requireRun } from '../read/runs.ts';
import {
  decodeAppended,
  lastAppended,
  positionOfKey,
  type ReportTables,
  storedCounters,
  storedPosition,
  streamOfKey,
} from '../report-tables.ts';

/** Every contradiction between records. What does not match its own checksum is named by the scan. */
export const checkAgreement = (environment: Environment, tables: ReportTables): readonly Damage[] => {
  environment.root.resetReadTxn();
  const damage = createDamageLog();
  checkRuns(tables, damage);
  checkPositions(tables, damage);
  return damage.list();
};

const checkRuns = (tables: ReportTables, damage: DamageLog): void => {
  const { byNumber, single } = loadStreams(tables, damage);
  for (const { feedId, stream } of single)
    damage.note({
      table: 'numbers',
      key: `${feedId} ${stream}`,
      reason: `stream number ${stream} and ${feedId} belong together in one direction only`,
      feedId,
    });
  const last = new Map<number, Window>();
  const totals = { reports: 0, reportBytes: 0, damaged: 0 };
  for (const { key, run } of intactRuns(tables, damage)) {
    if (run === undefined) {
      totals.damaged += 1;
      continue;
    }
    const stream = streamOfKey(key);
    const feedId = byNumber.get(stream);
    const name = { table: 'runs', key: key.toString('hex'), feedId };
    if (feedId === undefined) damage.note({ ...name, reason: `stream number ${stream} has no feed ID` });
    const before = last.get(stream);
    if (before !== undefined && run.window(0).validFromMs <= before.observationsMs)
      damage.note({ ...name, reason: 'a run begins before the run before it ends' });
    last.set(stream, run.window(run.count - 1));
    totals.reports += run.count;
    totals.reportBytes += run.reportBytes;
  }
  const counted = storedCounters(tables);
  // What a damaged run has or had is counted, and cannot be compared.
  if (counted === undefined || totals.damaged > 0 || !counted.isExact) return;
  if (counted.reports !== totals.reports || counted.reportBytes !== totals.reportBytes)
    damage.note({
      table: 'meta',
      key: 'counters',
      reason: `the counters say ${counted.reports} reports of ${counted.reportBytes} bytes, the runs hold ${totals.reports} of ${totals.reportBytes}`,
    });
};

function* intactRuns(tables: ReportTables, damage: DamageLog): Generator<{ key: Buffer; run: StoredRun | undefined }> {
  let before: Buffer | undefined;
  for (const key of tables.runs.getKeys()) {
    if (before !== undefined && Buffer.compare(before, key) >= 0)
      damage.note({ table: 'runs', key: key.toString('hex'), reason: 'a key of runs is out of order' });
    before = key;
    let run: StoredRun | undefined;
    try {
      run = requireRun(tables, key);
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
    }
    yield { key, run };
  }
}

const checkPositions = (tables: ReportTables, damage: DamageLog): void => {
  let isReadable = true;
  let next: number | undefined;
  for (const { key, value } of tables.appended.getRange()) {
    let [first, count] = [0, 0];
    try {
      first = positionOfKey(key);
      count = decodeAppended(key, value).length;
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      isReadable = false;
      next = undefined;
      continue;
    }
    if (next !== undefined && first !== next)
      damage.note({
        table: 'appended',
        key: `${first}`,
        reason: `the batch before position ${first} ends at ${next - 1}`,
      });
    next = count === 0 ? undefined : first + count; // an empty batch marks that some are lost
  }
  const position = storedPosition(tables);
  const end = lastAppended(tables, createDamageLog());
  if (isReadable && position !== undefined && position !== end)
    damage.note({
      table: 'meta',
      key: 'position',
      reason: `the last position is ${position}, the last appended batch ends at ${end}`,
    });
};
