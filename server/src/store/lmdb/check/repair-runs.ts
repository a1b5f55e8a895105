// Repairs runs in LMDB: a run that does not open, or contains a corrupt report, is rewritten with what can be proven. The rest is recorded in the table
// `damaged`, in the same transaction (D131).
import type { FeedId, SignerSets } from '@sealpost/protocol';
import { timeResolutionOf } from '@sealpost/protocol';
import { createDamageLog } from '../../damage.ts';
import { type Block, type BlockReport, blockReports, claimedContents, encodeBlock } from '../../format/report-block.ts';
import { contentsOf } from '../../format/report-contents.ts';
import { openCorrected, salvageRun } from '../../format/report-correction.ts';
import type { AsideFile, Loss } from '../../repair.ts';
import { CorruptRecordError, type Window } from '../../store.ts';
import { loadStreams } from '../directory.ts';
import { findLastBefore, foundFrom } from '../read/found-reports.ts';
import { openRun, type ReportSource, type RunTable } from '../read/runs.ts';
import { decodeSetAside, encodeSetAside, type SetAside } from '../read/set-aside.ts';
import {
  decodeAppended,
  keysFrom,
  observationsOfKey,
  type ReportTables,
  reportKey,
  streamOfKey,
} from '../report-tables.ts';

type Entry = { readonly key: Buffer; readonly value: Buffer };

/** What is done about one record: it goes, these reports of its stream come back, and this of it is lost. */
export type RunChange = {
  readonly table: RunTable | 'damaged';
  readonly entry: Entry;
  readonly stream: number | undefined;
  readonly reports: readonly BlockReport[];
  readonly description: SetAside | undefined;
  /** Nothing changes but that what was lost is there again. */
  readonly isSettled?: true;
};

/** Streams as the intact rows name them. */
export const findStreams = (tables: ReportTables): KnownStreams =>
  new Map(loadStreams(tables, createDamageLog()).byNumber);

/** The run of a record whose every report can be read; undefined where one cannot. */
export const isOpen = ({ key, value }: Entry): Block | undefined => {
  try {
    const run = openRun(key, value);
    for (let i = 0; i < run.count; i++) run.report(i);
    return run;
  } catch (error) {
    if (error instanceof CorruptRecordError) return undefined;
    throw error;
  }
};

/** Streams by number, and what their reports say of those that have no rows. */
export type KnownStreams = Map<number, FeedId>;

/** Looks at one run; undefined where nothing is wrong with it. A stream whose rows are both lost gets the feed ID of its reports. */
export const examineRun = (
  table: RunTable,
  entry: Entry,
  streams: KnownStreams,
  signerSets: SignerSets,
): RunChange | undefined => {
  const run = isOpen(entry);
  if (run === undefined) return { table, entry, ...salvage(table, entry, streams, signerSets) };
  const stream = streamOfKey(entry.key);
  const feedId = streams.has(stream) ? undefined : contentsOf(run.report(0).fullReport)?.feedId;
  if (feedId === undefined) return undefined;
  const [other] = [...streams].find(([, known]) => known === feedId) ?? [];
  if (other === undefined) {
    streams.set(stream, feedId);
    return undefined;
  }
  // The stream was given another number since: its old reports are moved there.
  const reports = Array.from({ length: run.count }, (_, i) => run.report(i));
  return { table, entry, stream: other, reports, description: undefined };
};

const salvage = (
  table: RunTable,
  { key, value }: Entry,
  streams: ReadonlyMap<number, FeedId>,
  signerSets: SignerSets,
): Pick<RunChange, 'stream' | 'reports' | 'description'> => {
  const own = key.length === 10 ? streamOfKey(key) : -1;
  const known = [...streams.keys()];
  const opened = openCorrected(value, streams.has(own) ? [own, ...known.filter((one) => one !== own)] : known);
  if (opened === undefined) {
    const reports = claimedContents(value).reports || null;
    const lost = key.length === 10 ? [{ validFromMs: -1, observationsMs: observationsOfKey(key) }] : [];
    const description = { table, reason: 'the index of the run is damaged', lost, reports };
    return { stream: streams.has(own) ? own : undefined, reports: [], description };
  }
  const { stream, bytes } = opened;
  const { reports, lost } = salvageRun(stream, streams.get(stream) as FeedId, bytes, signerSets); // one of those known
  const reason = `${lost.length} of ${reports.length + lost.length} reports of the run are damaged`;
  return {
    stream,
    reports,
    description: lost.length === 0 ? undefined : { table, reason, lost, reports: lost.length },
  };
};

/** Looks at a run that was set aside before: what is in its bytes and not in the store comes back. */
export const examineSetAside = (
  source: ReportSource,
  entry: Entry,
  streams: ReadonlyMap<number, FeedId>,
  signerSets: SignerSets,
): RunChange | 'damaged' | undefined => {
  try {
    const { value, ...description } = decodeSetAside(entry.key, entry.value);
    const stream = streamOfKey(entry.key);
    if (!streams.has(stream)) return undefined;
    const found =
      value.length === 0 ? undefined : salvage(description.table, { key: entry.key, value }, streams, signerSets);
    const change = { table: 'damaged', entry, stream, reports: found?.reports ?? [], description } as const;
    if (description.file === undefined) return change;
    return remaining(source, stream, description).length === description.lost.length
      ? undefined
      : { ...change, isSettled: true };
  } catch (error) {
    if (error instanceof CorruptRecordError) return 'damaged';
    throw error;
  }
};

/** The windows of a loss that the store has no reports of. */
export const remaining = (
  source: ReportSource,
  stream: number,
  { lost }: Pick<SetAside, 'lost'>,
): readonly Window[] => {
  const feedId = source.directory.feedIdOf(stream);
  const unitMs = feedId !== undefined && timeResolutionOf(feedId) === 'seconds' ? 1_000 : 1;
  return lost.filter(({ validFromMs, observationsMs }) => {
    let reachedMs = Math.max(0, validFromMs);
    for (const { window } of foundFrom(source, stream, reachedMs)) {
      if (window.validFromMs >= reachedMs + unitMs) return true;
      reachedMs = window.observationsMs + unitMs;
      if (reachedMs > observationsMs) return false;
    }
    return true;
  });
};

/** Makes the changes of one record. Inside a transaction, with the record in the file already. */
export const applyRun = (
  source: ReportSource,
  change: RunChange,
  { file, isRemoved, observed }: { readonly file: string; readonly isRemoved: boolean; readonly observed: Observed },
): void => {
  const { tables } = source;
  const { table, entry, stream, reports, description } = change;
  if (!isRemoved) tables[table]?.removeSync(entry.key);
  if (stream === undefined) return;
  putBack(source, stream, reports);
  if (description === undefined || tables.damaged === undefined) return;
  const bounded = boundLoss(source, stream, description, observed);
  const lost = remaining(source, stream, bounded);
  if (lost.length === 0) return;
  const counted = bounded.reports === bounded.lost.length ? lost.length : (bounded.reports ?? null); // one window each
  describeLoss(tables, entry.key, stream, { ...bounded, lost, reports: counted, file: description.file ?? file });
};

/** When the reports of a stream were observed that the order of appending still names, ascending. */
export type Observed = (stream: number, fromMs: number, toMs: number) => readonly number[];

/** Reads the order of appending once, when it is first asked for. */
export const createObserved = ({ appended }: ReportTables): Observed => {
  let byStream: Map<number, number[]> | undefined;
  const load = (): Map<number, number[]> => {
    const all = new Map<number, number[]>();
    const damage = createDamageLog();
    for (const { key, value } of appended.getRange())
      for (const entry of damage.contain({ table: 'appended', key: '' }, () => decodeAppended(key, value)) ?? []) {
        const known = all.get(streamOfKey(entry)) ?? [];
        known.push(observationsOfKey(entry));
        all.set(streamOfKey(entry), known);
      }
    return all;
  };
  return (stream, fromMs, toMs) => {
    byStream ??= load();
    const within = (byStream.get(stream) ?? []).filter((ms) => fromMs <= ms && ms <= toMs);
    return [...new Set(within)].sort((a, b) => a - b);
  };
};

/** What a run held whose index is damaged: the reports that the order of appending names, or the time behind the report before it. */
export const boundLoss = (
  source: ReportSource,
  stream: number,
  description: SetAside,
  observed: Observed,
): SetAside => {
  if (!description.lost.some(({ validFromMs }) => validFromMs < 0)) return description;
  const [{ observationsMs }] = description.lost as readonly [Window]; // such a loss is one window
  const fromMs = (findLastBefore(source, stream, observationsMs)?.observationsMs ?? -1) + 1;
  const known = observed(stream, fromMs, observationsMs);
  if (known.length === 0) return { ...description, lost: [{ validFromMs: fromMs, observationsMs }] };
  const lost = known.map((ms) => ({ validFromMs: ms, observationsMs: ms }));
  return { ...description, lost, reports: known.length };
};

/** Puts reports back that the store does not have, as runs between those that it has. */
const putBack = (source: ReportSource, stream: number, reports: readonly BlockReport[]): void => {
  const { tables } = source;
  const missing = reports.filter((report) => !isTaken(source, stream, report));
  const groups: BlockReport[][] = [];
  for (const report of missing) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    const isNext = last !== undefined && group !== undefined && group.length < 2 * blockReports;
    // A run never spans another one's reports.
    if (isNext && !hasBetween(source, stream, last.observationsMs, report.validFromMs)) group.push(report);
    else groups.push([report]);
  }
  for (const group of groups) putRun(tables, stream, group);
};

const isTaken = (source: ReportSource, stream: number, { validFromMs, observationsMs }: Window): boolean => {
  for (const { window } of foundFrom(source, stream, validFromMs)) return window.validFromMs <= observationsMs;
  return false;
};

const hasBetween = (source: ReportSource, stream: number, afterMs: number, beforeMs: number): boolean => {
  for (const { window } of foundFrom(source, stream, afterMs + 1)) return window.observationsMs < beforeMs;
  return false;
};

/** Every run of the tail is after every block: a run that is not goes to the blocks. */
const putRun = (tables: ReportTables, stream: number, reports: readonly BlockReport[]): void => {
  const [firstReport, last] = [reports[0], reports.at(-1)];
  if (firstReport === undefined || last === undefined) return;
  const [lastBlock] = [...tables.blocks.getKeys({ ...backwards(stream), limit: 1 })];
  const isNewest = lastBlock === undefined || observationsOfKey(lastBlock) < firstReport.validFromMs;
  const [firstTail] = [...tables.tail.getKeys(keysFrom(stream, 0, 1))];
  const isBeforeTail = firstTail === undefined || last.observationsMs < observationsOfKey(firstTail);
  const table = isNewest && !(isBeforeTail && reports.length >= blockReports) ? tables.tail : tables.blocks;
  table.put(reportKey(stream, last.observationsMs), encodeBlock(stream, reports));
};

const backwards = (stream: number) => ({
  start: keysFrom(stream + 1, 0).start,
  end: keysFrom(stream, 0).start,
  reverse: true,
});

/** Writes a loss under the key of its record, with what is known to be lost there already. */
const describeLoss = ({ damaged }: ReportTables, key: Buffer, stream: number, what: SetAside): void => {
  const at = reportKey(stream, observationsOfKey(key));
  const known = damaged?.get(at);
  const before = known === undefined ? [] : decodeSetAside(at, known).lost;
  damaged?.put(at, encodeSetAside(at, { ...what, lost: [...before, ...what.lost] }));
};

/** A loss in words and numbers. */
export const lossOf = (
  feedId: FeedId | undefined,
  table: string,
  key: Buffer,
  { lost, reports, reason }: SetAside,
): Loss => ({
  table,
  key: key.toString('hex'),
  feedId: feedId ?? null,
  fromMs: lost.length === 0 ? null : Math.max(0, Math.min(...lost.map(({ validFromMs }) => validFromMs))),
  toMs: lost.length === 0 ? null : Math.max(...lost.map(({ observationsMs }) => observationsMs)),
  reports: reports ?? null,
  what: reason,
});

/** Puts the record of a change into the file. */
export const putAside = (file: AsideFile, { table, entry: { key, value }, description }: RunChange): void =>
  file.put({
    environment: 'reports',
    table,
    key: key.toString('hex'),
    value,
    reason: description?.reason ?? 'it was corrected',
  });
