// Owns the roll-ups of prices by minute: kept in the transaction that stores a report, so that candles need no reports to be read.
// Late reports find their place too: open and close go by observation, not by arrival.
import { crc32 } from 'node:zlib';
import type { DamageLog } from './damage.ts';
import type { Table } from './lmdb-environment.ts';
import { keysFrom, observationsOfKey, reportKey } from './lmdb-report-tables.ts';
import { CorruptRecordError, type MinuteCandle, type NewReport } from './store.ts';

const minuteMs = 60_000;
const headBytes = 4 + 6 + 6 + 4; // checksum, first and last observation, reports
const priceBytes = 24; // int192

type Rollup = {
  firstMs: number;
  lastMs: number;
  reports: number;
  open: bigint;
  high: bigint;
  low: bigint;
  close: bigint;
};

/** Collects the roll-ups that a transaction touches and writes each once. */
export const createCandleWriter = (table: Table, damage: DamageLog) => {
  const touched = new Map<string, { readonly key: Buffer; readonly stream: number; readonly rollup: Rollup }>();
  return {
    add: (stream: number, { observationsMs, price }: NewReport): void => {
      if (price === undefined) return;
      const key = reportKey(stream, Math.floor(observationsMs / minuteMs) * minuteMs);
      const name = key.toString('latin1');
      const known = touched.get(name)?.rollup ?? readRollup(table, stream, key, damage);
      if (known === 'damaged') return; // a minute that lacks reports would be wrong; a damaged one is left out
      const rollup = known === undefined ? single(observationsMs, price) : include(known, observationsMs, price);
      touched.set(name, { key, stream, rollup });
    },
    write: (): void => {
      for (const { key, stream, rollup } of touched.values()) table.put(key, encodeRollup(stream, rollup));
    },
  };
};

const single = (ms: number, price: bigint): Rollup => ({
  firstMs: ms,
  lastMs: ms,
  reports: 1,
  open: price,
  high: price,
  low: price,
  close: price,
});

const include = (rollup: Rollup, ms: number, price: bigint): Rollup => {
  rollup.reports += 1;
  if (price > rollup.high) rollup.high = price;
  if (price < rollup.low) rollup.low = price;
  if (ms < rollup.firstMs) [rollup.firstMs, rollup.open] = [ms, price];
  if (ms > rollup.lastMs) [rollup.lastMs, rollup.close] = [ms, price];
  return rollup;
};

const readRollup = (table: Table, stream: number, key: Buffer, damage: DamageLog): Rollup | 'damaged' | undefined => {
  const value = table.get(key);
  return value && (containRollup(stream, key, value, damage) ?? 'damaged');
};

const containRollup = (stream: number, key: Buffer, value: Buffer, damage: DamageLog): Rollup | undefined =>
  damage.contain({ table: 'candles', key: `${stream}/${observationsOfKey(key)}` }, () =>
    decodeRollup(stream, key, value),
  );

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

const decodeRollup = (stream: number, key: Buffer, value: Buffer): Rollup => {
  if (value.length !== headBytes + 4 * priceBytes || crc32(value.subarray(4), stream) !== value.readUInt32BE(0)) {
    throw new CorruptRecordError(`a minute of stream ${stream} does not match its checksum`);
  }
  const firstMs = value.readUIntBE(4, 6);
  if (Math.floor(firstMs / minuteMs) * minuteMs !== observationsOfKey(key))
    throw new CorruptRecordError(`the key of a minute of stream ${stream} is not the minute that it holds`);
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

/** The intact minutes of a stream that begin in a span of seconds. */
export const readCandles = (
  table: Table,
  stream: number,
  fromSeconds: number,
  toSeconds: number,
  damage: DamageLog,
): readonly MinuteCandle[] => {
  const range = { start: reportKey(stream, fromSeconds * 1_000), end: reportKey(stream, toSeconds * 1_000 + 1) };
  return [...table.getRange(range)].flatMap(({ key, value }) => {
    const rollup = containRollup(stream, key, value, damage);
    if (rollup === undefined) return [];
    const { open, high, low, close, reports } = rollup;
    return [{ minute: observationsOfKey(key) / 1_000, open, high, low, close, reports }];
  });
};

/** Throws unless a minute's record is what was written. */
export const checkCandle = (stream: number, key: Buffer, value: Buffer): void => void decodeRollup(stream, key, value);

/** Removes minutes of a stream that ended before a moment, a bounded number at a time. */
export const trimCandles = (table: Table, stream: number, beforeMs: number, most: number): void => {
  const { start } = keysFrom(stream, 0);
  for (const key of [...table.getKeys({ start, end: reportKey(stream, beforeMs - minuteMs), limit: most })])
    table.remove(key);
};
