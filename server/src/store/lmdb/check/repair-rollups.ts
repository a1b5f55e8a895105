// Compares the roll-ups of a repaired store with what they are made of, minutes with reports and the others with minutes, and rebuilds those that
// differ (D236).
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isSameRollup } from '../../candle-rollup.ts';
import { attempt } from '../../format/report-correction.ts';
import { deriveRollup, putRollup, type RollupTable, rollupKeyOf, storedRollup, storedRollups } from '../candles.ts';
import { pricesIn } from '../read/found-reports.ts';
import { openRun, type ReportSource } from '../read/runs.ts';
import { keysFrom, observationsOfKey, type ReportTables, reportKey, streamOfKey } from '../report-tables.ts';
import type { RunChange } from './repair-runs.ts';
import type { Repair } from './repair-tables.ts';

/** Keys, each once. */
type Keys = Map<string, Buffer>;

const addKey = (keys: Keys, key: Buffer): void => void keys.set(key.toString('latin1'), Buffer.from(key));

/** Compares all roll-ups, after the runs are repaired. A dry run leaves out streams whose runs would change. */
export const compareRollups = async (
  repair: Repair,
  source: ReportSource,
  changes: readonly RunChange[],
): Promise<void> => {
  const { tally, options } = repair;
  const changed = new Set(options.dryRun ? changes.flatMap(streamsOf) : []);
  const streams = [...source.directory.numbers()].filter((stream) => !changed.has(stream));
  const minutes: Keys = new Map();
  // Those of reports that came back may be missing: nothing in the table would lead to them.
  for (const { stream, reports } of options.dryRun ? [] : changes)
    if (stream !== undefined)
      for (const { observationsMs } of reports)
        addKey(minutes, rollupKeyOf('candles', reportKey(stream, observationsMs)));
  for (const stream of streams) await findWrongMinutes(repair, stream, minutes);
  const rebuilt = rebuildAll(repair, source, 'candles', minutes);
  for (const name of ['hourCandles', 'dayCandles'] as const) {
    const keys: Keys = new Map();
    for (const minute of rebuilt) addKey(keys, rollupKeyOf(name, minute));
    for (const stream of streams) await findWrong(repair, source, name, stream, keys);
    if (!options.dryRun) rebuildAll(repair, source, name, keys);
    else if (keys.size > 0) tally.add(name, keys.size); // their minutes are still as they were
  }
};

/** The stream that a change is for, and that of the key under which it was found. */
const streamsOf = ({ stream, entry: { key } }: RunChange): readonly (number | undefined)[] => [
  stream,
  attempt(() => streamOfKey(key)),
];

/** Roll-ups that are compared between two looks at signals. */
const comparedAtOnce = 1_000;

/** Lets signals in now and then. */
const createPause = ({ options }: Repair) => {
  let count = 0;
  return async (): Promise<void> => {
    count += 1;
    if (count % comparedAtOnce !== 0) return;
    await nextTurn();
    options.signal?.throwIfAborted();
  };
};

/**
 * Minutes whose reports are not as many, or not from and to when, as the runs say. Their prices need no look: a minute that matches its checksum
 * has those of the reports that it counts.
 */
const findWrongMinutes = async (repair: Repair, stream: number, wrong: Keys): Promise<void> => {
  const pause = createPause(repair);
  const counted = countMinutes(repair.tables, stream);
  let next = counted.next().value;
  const firstMs = next?.firstMs ?? Number.POSITIVE_INFINITY;
  for (const [key, rollup] of storedRollups(repair.tables, 'candles', stream)) {
    await pause();
    while (next !== undefined && next.startMs < observationsOfKey(key)) next = counted.next().value;
    // Reports before the first one were lost, or removed by the retention of an older release, and are still in the minute.
    if (rollup.firstMs < firstMs) continue;
    const found = next?.startMs === observationsOfKey(key) ? next : undefined;
    if (found?.reports !== rollup.reports || found.firstMs !== rollup.firstMs || found.lastMs !== rollup.lastMs)
      addKey(wrong, key);
  }
};

const minuteMs = 60_000;

type CountedMinute = { readonly startMs: number; readonly firstMs: number; lastMs: number; reports: number };

/** The minutes that a stream has reports of, ascending, by the indexes of its runs. */
function* countMinutes(tables: ReportTables, stream: number): Generator<CountedMinute, undefined> {
  let current: CountedMinute | undefined;
  for (const table of [tables.blocks, tables.tail])
    for (const { key, value } of table.getRange(keysFrom(stream, 0))) {
      const run = attempt(() => openRun(key, value));
      if (run === undefined || streamOfKey(key) !== stream) continue;
      const complete: CountedMinute[] = []; // the bytes of the run may be overwritten once a minute is yielded
      for (let i = 0; i < run.count; i++) {
        const ms = run.window(i).observationsMs;
        const startMs = ms - (ms % minuteMs);
        if (current?.startMs === startMs) {
          current.lastMs = ms;
          current.reports += 1;
          continue;
        }
        if (current !== undefined) complete.push(current);
        current = { startMs, firstMs: ms, lastMs: ms, reports: 1 };
      }
      yield* complete;
    }
  if (current !== undefined) yield current;
}

/** Hours or days that are not what their minutes make. */
const findWrong = async (
  repair: Repair,
  source: ReportSource,
  name: RollupTable,
  stream: number,
  wrong: Keys,
): Promise<void> => {
  const { tables } = repair;
  const pause = createPause(repair);
  const [first] = [...tables.candles.getKeys(keysFrom(stream, 0, 1))];
  if (first === undefined) return;
  for (const [key, rollup] of storedRollups(tables, name, stream)) {
    await pause();
    if (rollup.firstMs < observationsOfKey(first)) continue; // likewise
    if (!isSameRollup(rollup, derive(repair, source, name, key))) addKey(wrong, key);
  }
};

const derive = ({ tables }: Repair, source: ReportSource, name: RollupTable, key: Buffer) =>
  deriveRollup(tables, name, key, (...range) => pricesIn(source, ...range));

/** Roll-ups that are rebuilt in one transaction. */
const rebuiltAtOnce = 64;

/** Rebuilds roll-ups; returns the keys of those that were different. */
const rebuildAll = (repair: Repair, source: ReportSource, name: RollupTable, keys: Keys): readonly Buffer[] => {
  const { environment, tables, tally, options } = repair;
  const rebuilt: Buffer[] = [];
  const rebuild = (key: Buffer): void => {
    const rollup = derive(repair, source, name, key);
    if (isSameRollup(storedRollup(tables, name, key), rollup)) return;
    tally.add(name);
    rebuilt.push(key);
    if (!options.dryRun) putRollup(tables, name, key, rollup);
  };
  const all = [...keys.values()];
  for (let i = 0; i < all.length; i += rebuiltAtOnce) {
    const some = all.slice(i, i + rebuiltAtOnce);
    if (options.dryRun) some.forEach(rebuild);
    else environment.root.transactionSync(() => some.forEach(rebuild));
  }
  return rebuilt;
};
