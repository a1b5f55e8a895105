// Finds the runs of a stream in LMDB. Opening a run checks its index (the checksum is seeded with the stream's number) and its key against its last
// window. LMDB finds keys by bisection, so one damaged key can hide others: neighboring keys are compared, and where they are out of order all entries
// are walked (D122).

import type { CopyBytes } from '../../../runtime/reading.ts';
import type { DamageLog } from '../../damage.ts';
import type { RecordBytes } from '../../format/record-bytes.ts';
import { type Block, type BlockReport, openBlock } from '../../format/report-block.ts';
import { CorruptRecordError, type Window } from '../../store.ts';
import type { Directory } from '../directory.ts';
import { type Table, viewRecord } from '../environment.ts';
import { observationsOfKey, type ReportTables, reportKey, streamOfKey } from '../report-tables.ts';

export type RunTable = 'blocks' | 'tail';

/** A run where it is stored, opened when that is asked for. */
export type FoundRun = {
  readonly table: RunTable;
  readonly key: Buffer;
  /** The record; the next read of the store may overwrite it. */
  readonly view: () => RecordBytes;
  /** Undefined where the run is damaged. */
  readonly block: Block | undefined;
  /** What is damaged: the run, or, where there is a block, its key. */
  readonly reason: string | undefined;
  /** The first word of the record; it covers the index, which holds the checksum of each report. */
  readonly checksum: number;
};

/** A report that was found and not yet unpacked. */
export type FoundReport = { readonly window: Window; readonly read: () => BlockReport };

/** Where reports are read from, and where damage is noted. */
export type ReportSource = {
  readonly tables: ReportTables;
  readonly directory: Directory;
  readonly damage: DamageLog;
};

/** A report of an opened run. */
export const foundIn = (run: Block, i: number, copy?: CopyBytes): FoundReport => ({
  window: run.window(i),
  read: () => run.report(i, copy),
});

/** Notes what is wrong with a run that was come across. */
export const noteRun = (
  { damage, directory }: ReportSource,
  stream: number,
  { table, key, reason }: FoundRun,
): void => {
  if (reason !== undefined)
    damage.note({ table, key: key.toString('hex'), reason, feedId: directory.feedIdOf(stream) });
};

/** Unpacks a report; undefined where it is damaged. */
export const readFound = (
  { damage, directory }: ReportSource,
  stream: number,
  { window, read }: FoundReport,
): BlockReport | undefined => {
  try {
    return read(); // before anything else is looked up, which would overwrite it
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    const key = `${stream}/${window.observationsMs}`;
    damage.note({ table: 'reports', key, reason: error.message, feedId: directory.feedIdOf(stream) });
    return undefined;
  }
};

/** Later than any observation: keys hold 48 bits of milliseconds. */
export const momentMax = 2 ** 48 - 1;

/** Where keys are out of order, a range of one stream's keys may lead to those of others. */
export const requireStream = (key: Buffer, stream: number): void => {
  if (streamOfKey(key) !== stream)
    throw new CorruptRecordError(`a key of stream ${streamOfKey(key)} is among those of stream ${stream}`);
};

/** The record under a key that was seen; nothing, which is no run, where keys out of order lead past it. */
export const viewRun = (table: Table, key: Buffer): RecordBytes => viewRecord(table, key) ?? Buffer.alloc(0);

/** Opens the run of a record; one whose index or key is not what was written is a `CorruptRecordError`. */
export const openRun = (key: Buffer, value: RecordBytes): Block => {
  const run = openBlock(streamOfKey(key), value);
  if (run.window(run.count - 1).observationsMs !== observationsOfKey(key))
    throw new CorruptRecordError(`the key of a run of stream ${streamOfKey(key)} is not its last window`);
  return run;
};

/** Every run of a stream that may hold something observed at or after a moment, ascending. */
export function* runsFrom(tables: ReportTables, stream: number, observationsMs: number): Generator<FoundRun> {
  for (const name of ['blocks', 'tail'] as const)
    yield* runsInTable({ name, table: tables[name], stream, start: reportKey(stream, observationsMs) }, false);
}

/** The runs of a stream that are not closed into blocks yet, ascending. However many blocks it has, none is looked at. */
export const runsInTail = (tables: ReportTables, stream: number): Generator<FoundRun> =>
  runsInTable({ name: 'tail', table: tables.tail, stream, start: reportKey(stream, 0) }, false);

/** The last run of a stream by a bare look-up, which a damaged key can mislead. */
export const lastRun = (tables: ReportTables, stream: number): FoundRun | undefined => {
  const range = { start: reportKey(stream, momentMax), end: reportKey(stream, 0), reverse: true, limit: 1 };
  for (const name of ['tail', 'blocks'] as const) {
    const table = tables[name];
    for (const key of table.getKeys(range))
      return inspectRun(stream, { table: name, key, view: () => viewRun(table, key) });
  }
  return undefined;
};

/** Every run of a stream that ends before a moment, descending. */
export function* runsBefore(tables: ReportTables, stream: number, observationsMs: number): Generator<FoundRun> {
  for (const name of ['tail', 'blocks'] as const)
    yield* runsInTable({ name, table: tables[name], stream, start: reportKey(stream, observationsMs) }, true);
}

/** The boundary between what lies before a key and the rest. */
type Place = { readonly name: RunTable; readonly table: Table; readonly stream: number; readonly start: Buffer };

function* runsInTable(place: Place, reverse: boolean): Generator<FoundRun> {
  const { name, table, stream, start } = place;
  const isThere = (key: Buffer): boolean => Buffer.compare(key, start) < 0 === reverse;
  const isOrdered = (keys: readonly Buffer[]): boolean =>
    keys.every((key, i) => i === 0 || Buffer.compare(keys[i - 1] as Buffer, key) < 0 !== reverse); // one before each
  const open = (key: Buffer): FoundRun => inspectRun(stream, { table: name, key, view: () => viewRun(table, key) });
  /** Are the keys behind the place, and the first there, where they belong? */
  const isSoundSeek = (first: readonly Buffer[]): boolean => {
    const behind = [
      ...table.getKeys({ start: reverse ? start : keyBefore(start), reverse: !reverse, limit: 2 }),
    ].reverse();
    if (behind.some(isThere) || !isOrdered([...behind, ...first])) return false;
    // A key that is still in order may be that of a run which ends on the other side.
    const nearest = behind.at(-1);
    return nearest === undefined || streamOfKey(nearest) !== stream || open(nearest).reason === undefined;
  };
  let passed: Buffer | undefined;
  let held: Buffer | undefined;
  const walk = () => walkRuns(passed === undefined ? place : { ...place, start: beyond(passed, reverse) }, reverse);
  for (const key of table.getKeys({ start: reverse ? keyBefore(start) : start, reverse })) {
    if (held !== undefined) {
      const run: FoundRun | undefined = streamOfKey(held) === stream ? open(held) : undefined;
      const isSound =
        isThere(held) &&
        isOrdered(passed === undefined ? [held, key] : [passed, held, key]) &&
        (passed !== undefined || (run !== undefined && beginsBefore(run, place, reverse)) || isSoundSeek([held]));
      if (!isSound) return yield* walk();
      if (run === undefined) return;
      yield passed === undefined ? open(held) : run; // the seek may have read over the first one
      passed = held;
    }
    held = key;
  }
  if (held === undefined) return isSoundSeek([]) ? undefined : yield* walk();
  const isSound = isThere(held) && (passed === undefined ? isSoundSeek([held]) : isOrdered([passed, held]));
  if (!isSound) return yield* walk();
  if (streamOfKey(held) === stream) yield open(held);
}

/** Does a run hold something on both sides of a place? Then it is the one to begin with, and no key behind it needs a look. */
const beginsBefore = ({ block, reason }: FoundRun, { start }: Place, reverse: boolean): boolean =>
  !reverse && block !== undefined && reason === undefined && block.window(0).observationsMs < observationsOfKey(start);

const keyBefore = (key: Buffer): Buffer => {
  const before = Buffer.from(key);
  for (let i = before.length - 1; i >= 0; i--) {
    const byte = before[i] as number; // within bounds
    before[i] = byte === 0 ? 0xff : byte - 1;
    if (byte !== 0) break;
  }
  return before;
};

/** The boundary behind a key, in a direction. */
const beyond = (key: Buffer, reverse: boolean): Buffer => (reverse ? key : Buffer.concat([key, Uint8Array.of(0)]));

type Entry = Pick<FoundRun, 'table' | 'key' | 'view'>;

/** A run that is opened on the first look at it: most pages know the runs that they are cut from by their checksums. */
const inspectRun = (stream: number, entry: Entry): FoundRun => {
  let opened: Pick<FoundRun, 'block' | 'reason'> | undefined;
  let checksum: number | undefined;
  const look = () => {
    const value = entry.view();
    checksum = value.length < 4 ? -1 : value.readUInt32BE(0);
    return value;
  };
  const open = (): Pick<FoundRun, 'block' | 'reason'> => (opened ??= openAs(stream, entry.key, look()));
  return {
    ...entry,
    get block() {
      return open().block;
    },
    get reason() {
      return open().reason;
    },
    get checksum() {
      if (checksum === undefined) look();
      return checksum as number; // checked above
    },
  };
};

const openAs = (stream: number, key: Buffer, value: RecordBytes): Pick<FoundRun, 'block' | 'reason'> => {
  try {
    const block = openBlock(stream, value);
    const isPlaced =
      streamOfKey(key) === stream && block.window(block.count - 1).observationsMs === observationsOfKey(key);
    return { block, reason: isPlaced ? undefined : `the key of a run of stream ${stream} is damaged` };
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    return { block: undefined, reason: error.message };
  }
};

/** Entries on each side of a place that are walked where some are out of order; a page of LMDB holds fewer. */
const walkedMax = 600;

type Walked = { readonly key: Buffer; readonly value: Buffer; isOdd: boolean };

/** The stream's runs from a place on, by walking. An entry that is out of order is the stream's if it opens as such. */
function* walkRuns({ name, table, stream, start }: Place, reverse: boolean): Generator<FoundRun> {
  // One walk over both sides, as the entries are stored: two that begin at the place may leave out what lies between.
  const from = [...table.getKeys({ start, reverse: true, limit: walkedMax })][walkedMax - 1];
  const entries = table.getRange({ ...(from !== undefined && { start: from }), limit: 2 * walkedMax });
  const walked = markOdd([...entries].map(({ key, value }) => ({ key, value, isOdd: false })));
  for (const entry of walked) entry.isOdd ||= isMisplaced(stream, entry);
  const isLater = ({ key, isOdd }: Walked): boolean => !isOdd && Buffer.compare(key, start) >= 0;
  const isEarlier = ({ key, isOdd }: Walked): boolean => !isOdd && Buffer.compare(key, start) < 0;
  const [firstLater, lastEarlier] = [walked.findIndex(isLater), walked.findLastIndex(isEarlier)];
  // Those between the two sides are out of order, and may belong to either.
  const side = reverse
    ? walked.slice(0, firstLater < 0 ? walked.length : firstLater).reverse()
    : walked.slice(lastEarlier + 1);
  for (const { key, value, isOdd } of side) {
    if (!isOdd && streamOfKey(key) !== stream) return;
    const run = inspectRun(stream, { table: name, key, view: () => value });
    if (!isOdd || run.block !== undefined) yield run;
  }
}

/** Is it a run of the stream under a key that is not its last window? */
const isMisplaced = (stream: number, { key, value }: Walked): boolean => {
  if (streamOfKey(key) !== stream) return false;
  const { block, reason } = openAs(stream, key, value);
  return block !== undefined && reason !== undefined;
};

/** Marks the entries whose keys break the order; of two that contradict each other, both. */
const markOdd = (walked: Walked[]): readonly Walked[] => {
  const sound: Walked[] = [];
  for (const here of walked) {
    const [before, last] = [sound.at(-2), sound.at(-1)];
    if (last !== undefined && Buffer.compare(last.key, here.key) >= 0) {
      here.isOdd = true;
      if (before !== undefined && Buffer.compare(before.key, here.key) >= 0) continue;
      last.isOdd = true;
      sound.pop();
      if (before === undefined) {
        here.isOdd = false;
        sound.push(here);
      }
      continue;
    }
    sound.push(here);
  }
  return walked;
};
