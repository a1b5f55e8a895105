// Price roll-ups by minute, hour and day in LMDB, written in the transaction that stores a report, so that candles need no reports (D143).

import { crc32 } from 'node:zlib';
import { dayMs } from '@sealpost/protocol';
import {
  addCandle,
  type Candle,
  type CandleRange,
  finerSeconds,
  mergeRollups,
  type PricedMoment,
  planRollups,
  type Rollup,
  type RollupRange,
  rollUp,
  rollUpAll,
} from '../candle-rollup.ts';
import { createDamageLog, type DamageLog } from '../damage.ts';
import { CorruptRecordError, type NewReport } from '../store.ts';
import type { Table } from './environment.ts';
import { observationsOfKey, type ReportTables, reportKey, streamOfKey } from './report-tables.ts';

const minuteMs = 60_000;
const headBytes = 4 + 6 + 6 + 4; // checksum, first and last observation, reports
const priceBytes = 24; // int192
const keyBytes = 10; // of reportKey

/** The tables of roll-ups, by the milliseconds that each of their records covers; finest first. */
const rollupTables = [
  ['candles', minuteMs],
  ['hourCandles', 3_600_000],
  ['dayCandles', dayMs],
] as const;

export type RollupTable = (typeof rollupTables)[number][0];

/** The names of these tables, finest first. */
export const rollupNames: readonly RollupTable[] = rollupTables.map(([name]) => name);

const nameOf = new Map<number, RollupTable>(rollupTables.map(([name, ms]) => [ms / 1_000, name]));

const tableOf = (tables: ReportTables, seconds: number): Table => tables[nameOf.get(seconds) as RollupTable]; // one for each

const startOf = (ms: number, bucketMs: number): number => Math.floor(ms / bucketMs) * bucketMs;

/** The key of the roll-up that covers the moment of another key. */
const keyOf = (key: Buffer, bucketMs: number): Buffer =>
  reportKey(streamOfKey(key), startOf(observationsOfKey(key), bucketMs));

const encodeRollup = (stream: number, { firstMs, lastMs, reports, open, high, low, close }: Rollup): Buffer => {
  const value = Buffer.allocUnsafe(headBytes + 4 * priceBytes);
  value.writeUIntBE(firstMs, 4, 6);
  value.writeUIntBE(lastMs, 10, 6);
  value.writeUInt32BE(reports, 16);
  for (const [i, price] of [open, high, low, close].entries()) writePrice(value, headBytes + i * priceBytes, price);
  value.writeUInt32BE(crc32(value.subarray(4), stream), 0);
  return value;
};

const writePrice = (value: Buffer, at: number, price: bigint): void => {
  const hex = BigInt.asUintN(priceBytes * 8, price)
    .toString(16)
    .padStart(priceBytes * 2, '0');
  value.write(hex, at, 'hex');
};

const readPrice = (value: Buffer, at: number): bigint =>
  BigInt.asIntN(priceBytes * 8, BigInt(`0x${value.toString('hex', at, at + priceBytes)}`));

const decodeRollup = (key: Buffer, value: Buffer, bucketMs: number): Rollup => {
  if (key.length !== keyBytes) throw new CorruptRecordError(`a roll-up has the key ${key.toString('hex')}`);
  const stream = streamOfKey(key);
  if (value.length !== headBytes + 4 * priceBytes || crc32(value.subarray(4), stream) !== value.readUInt32BE(0))
    throw new CorruptRecordError(`a roll-up of stream ${stream} does not match its checksum`);
  const firstMs = value.readUIntBE(4, 6);
  if (startOf(firstMs, bucketMs) !== observationsOfKey(key))
    throw new CorruptRecordError(`the key of a roll-up of stream ${stream} is not the range that it covers`);
  const priceAt = (i: number) => readPrice(value, headBytes + i * priceBytes);
  return {
    firstMs,
    lastMs: value.readUIntBE(10, 6),
    reports: value.readUInt32BE(16),
    open: priceAt(0),
    high: priceAt(1),
    low: priceAt(2),
    close: priceAt(3),
  };
};

/** A stored roll-up; undefined where it is damaged. */
const containRollup = (table: RollupTable, key: Buffer, value: Buffer, bucketMs: number, damage: DamageLog) =>
  damage.contain({ table, key: nameOfKey(key) }, () => decodeRollup(key, value, bucketMs));

const nameOfKey = (key: Buffer): string =>
  key.length === keyBytes ? `${streamOfKey(key)}/${observationsOfKey(key)}` : key.toString('hex');

/** Throws unless a roll-up's record is what was written. */
export const checkCandle = (table: RollupTable, key: Buffer, value: Buffer): void =>
  void decodeRollup(key, value, bucketOf(table));

const bucketOf = (table: RollupTable): number => rollupTables.find(([name]) => name === table)?.[1] ?? minuteMs;

/** Roll-ups of minutes merged into those that cover them, by their keys. */
const gather = (rollups: Iterable<readonly [Buffer, Rollup]>, bucketMs: number) => {
  const gathered = new Map<string, { readonly key: Buffer; rollup: Rollup }>();
  for (const [minute, rollup] of rollups) {
    const key = keyOf(minute, bucketMs);
    const name = key.toString('latin1');
    const known = gathered.get(name);
    if (known === undefined) gathered.set(name, { key, rollup });
    else known.rollup = mergeRollups(known.rollup, rollup);
  }
  return gathered.values();
};

type KeyRange = { readonly start: Buffer; readonly end: Buffer };

/** Is a key in a range? Where keys are out of order, a range may lead to the roll-ups of other streams. */
const isWithin = (key: Buffer, { start, end }: KeyRange): boolean =>
  Buffer.compare(key, start) >= 0 && Buffer.compare(key, end) < 0;

/** The intact minutes of a stream in a range of milliseconds, the end not included. */
function* minutesOf(tables: ReportTables, stream: number, fromMs: number, endMs: number, damage: DamageLog) {
  const range = { start: reportKey(stream, fromMs), end: reportKey(stream, endMs) };
  for (const { key, value } of tables.candles.getRange(range)) {
    if (!isWithin(key, range)) continue;
    const rollup = containRollup('candles', key, value, minuteMs, damage);
    if (rollup !== undefined) yield [key, rollup] as const;
  }
}

/** The prices of a stream's stored reports in a range of milliseconds, the end not included. */
type PricesOf = (stream: number, fromMs: number, endMs: number) => readonly PricedMoment[];

/** How many reports of a stream are stored in a range of milliseconds, the end not included. */
type CountOf = (stream: number, fromMs: number, endMs: number) => number;

/** Collects what a transaction adds to roll-ups and writes each of them once. `pricesOf` and `countOf` read what is stored by then. */
export function createCandleWriter(tables: ReportTables, damage: DamageLog, pricesOf: PricesOf, countOf: CountOf) {
  const added = new Map<string, { readonly key: Buffer; rollup: Rollup }>();
  const late = new Set<string>();
  const rebuilt = new Set<string>();
  const nameIn = (key: Buffer, bucketMs: number): string => `${bucketMs} ${keyOf(key, bucketMs).toString('latin1')}`;
  /** Adds to a stored roll-up. A damaged minute stays as it is: without its other reports it would be wrong. */
  const put = (name: RollupTable, bucketMs: number, key: Buffer, rollup: Rollup): void => {
    const table = tables[name];
    const value = table.get(key);
    const stored = value && containRollup(name, key, value, bucketMs, damage);
    const isRebuilt = rebuilt.size > 0 && rebuilt.has(nameIn(key, bucketMs));
    if (isRebuilt && name === 'candles')
      table.put(key, encodeRollup(streamOfKey(key), rollUpMinute(key, pricesOf) ?? rollup));
    else if (!isRebuilt && (value === undefined || stored !== undefined))
      table.put(key, encodeRollup(streamOfKey(key), mergeRollups(stored, rollup)));
    else if (name !== 'candles') rebuild(tables, name, bucketMs, key, damage);
  };
  /** A minute that would count more reports than are stored counts some that were lost: it is made of its reports, and its hour and day of their minutes. */
  const rebuildOvercounted = (name: string): void => {
    const one = added.get(name);
    const value = one && tables.candles.get(one.key);
    const stored = one && value && containRollup('candles', one.key, value, minuteMs, damage);
    if (one === undefined || stored === undefined) return;
    const [stream, ms] = [streamOfKey(one.key), observationsOfKey(one.key)];
    if (stored.reports + one.rollup.reports <= countOf(stream, ms, ms + minuteMs)) return;
    for (const [, bucketMs] of rollupTables) rebuilt.add(nameIn(one.key, bucketMs));
  };
  return {
    /** Adds a report. `isLate`: it may have been stored before, and lost, so that its minute counts it already. */
    add: (stream: number, { observationsMs, price }: NewReport, isLate: boolean): void => {
      if (price === undefined) return;
      const key = reportKey(stream, startOf(observationsMs, minuteMs));
      const name = key.toString('latin1');
      const known = added.get(name);
      if (isLate) late.add(name);
      const one = rollUp(observationsMs, price);
      if (known === undefined) added.set(name, { key, rollup: one });
      else known.rollup = mergeRollups(known.rollup, one);
    },
    write: (): void => {
      if (added.size === 0) return;
      for (const name of late) rebuildOvercounted(name);
      for (const { key, rollup } of added.values()) put('candles', minuteMs, key, rollup);
      const minutes = [...added.values()].map(({ key, rollup }) => [key, rollup] as const);
      for (const [name, bucketMs] of rollupTables.slice(1))
        for (const { key, rollup } of gather(minutes, bucketMs)) put(name, bucketMs, key, rollup);
    },
  };
}

/** What the reports of a minute make of it; undefined without any. */
const rollUpMinute = (key: Buffer, pricesOf: PricesOf): Rollup | undefined =>
  rollUpAll(pricesOf(streamOfKey(key), observationsOfKey(key), observationsOfKey(key) + minuteMs));

/** What the intact minutes make of an hour or day; undefined without any. */
const mergeMinutes = (tables: ReportTables, bucketMs: number, key: Buffer, damage: DamageLog): Rollup | undefined => {
  const fromMs = observationsOfKey(key);
  let merged: Rollup | undefined;
  for (const [, minute] of minutesOf(tables, streamOfKey(key), fromMs, fromMs + bucketMs, damage))
    merged = mergeRollups(merged, minute);
  return merged;
};

/** Rebuilds an hour or day from the intact minutes that it covers. */
const rebuild = (tables: ReportTables, name: RollupTable, bucketMs: number, key: Buffer, damage: DamageLog): void => {
  const rollup = mergeMinutes(tables, bucketMs, key, damage);
  if (rollup !== undefined) tables[name].put(key, encodeRollup(streamOfKey(key), rollup));
};

/** Replaces a roll-up, or removes it. */
const putRollup = (tables: ReportTables, table: RollupTable, key: Buffer, rollup: Rollup | undefined): void => {
  if (rollup === undefined) tables[table].remove(key);
  else tables[table].put(key, encodeRollup(streamOfKey(key), rollup));
};

/** A stored roll-up; undefined where it is missing or damaged. */
const storedRollup = (tables: ReportTables, table: RollupTable, key: Buffer): Rollup | undefined => {
  const value = tables[table].get(key);
  return value && containRollup(table, key, value, bucketOf(table), createDamageLog());
};

/** Roll-ups that are read before others get their turn: 1 ms. */
const rollupsAtOnce = 512;

/** Candles of a stream, from the first second of a range on. `next`: reading continues there, perhaps with the last of these buckets. */
export type CandleSlice = { readonly candles: readonly Candle[]; readonly next?: number };

export function readCandleSlice(
  tables: ReportTables,
  stream: number,
  { from, to, resolution }: CandleRange,
  damage: DamageLog,
): CandleSlice {
  const candles: Candle[] = [];
  let count = 0;
  for (const range of planRollups(from, to, resolution)) {
    for (const [second, { open, high, low, close, reports }] of rollupsIn(tables, stream, range, damage)) {
      if (count++ === rollupsAtOnce) return { candles, next: second };
      addCandle(candles, { start: Math.floor(second / resolution) * resolution, open, high, low, close, reports });
    }
  }
  return { candles };
}

/** The roll-ups of a range, ascending; a damaged one is replaced by the finer ones that it covers. */
function* rollupsIn(
  tables: ReportTables,
  stream: number,
  { seconds, from, end }: RollupRange,
  damage: DamageLog,
): Generator<readonly [number, Rollup]> {
  const range = { start: reportKey(stream, from * 1_000), end: reportKey(stream, end * 1_000) };
  for (const { key, value } of tableOf(tables, seconds).getRange(range)) {
    const rollup = containRollup(nameOf.get(seconds) as RollupTable, key, value, seconds * 1_000, damage); // one for each
    const finer = finerSeconds(seconds);
    if (key.length !== keyBytes || !isWithin(key, range)) continue;
    const second = observationsOfKey(key) / 1_000;
    if (rollup !== undefined) yield [second, rollup];
    else if (finer !== undefined)
      yield* rollupsIn(tables, stream, { seconds: finer, from: second, end: second + seconds }, damage);
  }
}

/** What is left of a stream: when its oldest report was observed, and the prices of its reports; so many roll-ups of each kind are removed at most. */
type Remaining = { readonly firstMs: number; readonly pricesOf: PricesOf; readonly most: number };

/**
 * Makes the roll-ups of a stream those of the reports that are left of it: removes earlier ones, and rebuilds the minute, hour and day
 * that lost a part of their reports. Returns how many were removed: one whose key is damaged is not found by it.
 */
export function trimRollups(
  tables: ReportTables,
  stream: number,
  { firstMs, pricesOf, most }: Remaining,
  damage: DamageLog,
): number {
  const first = reportKey(stream, firstMs);
  let removed = 0;
  for (const [name, bucketMs] of rollupTables) {
    const range = { start: reportKey(stream, 0), end: keyOf(first, bucketMs) };
    const keys = [...tables[name].getKeys({ ...range, limit: most })].filter((key) => isWithin(key, range));
    for (const key of keys) if (tables[name].removeSync(key)) removed += 1;
  }
  for (const [name, bucketMs] of rollupTables) {
    const key = keyOf(first, bucketMs);
    // One that is missing is not made up for.
    if (tables[name].get(key) === undefined) continue;
    if ((storedRollup(tables, name, key)?.firstMs ?? -1) >= firstMs) continue;
    const rollup = name === 'candles' ? rollUpMinute(key, pricesOf) : mergeFiner(tables, first, bucketMs, damage);
    putRollup(tables, name, key, rollup);
  }
  return removed;
}

/** What the next finer roll-ups, from that of a report on, make of its hour or day. */
const mergeFiner = (tables: ReportTables, first: Buffer, bucketMs: number, damage: DamageLog): Rollup | undefined => {
  const [ms, seconds] = [observationsOfKey(first), finerSeconds(bucketMs / 1_000) ?? 60];
  const [from, end] = [startOf(ms, seconds * 1_000) / 1_000, (startOf(ms, bucketMs) + bucketMs) / 1_000];
  const finer = [...rollupsIn(tables, streamOfKey(first), { seconds, from, end }, damage)];
  return finer.reduce((sum: Rollup | undefined, [, rollup]) => mergeRollups(sum, rollup), undefined);
};
