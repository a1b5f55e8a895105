// Owns what is counted in the reports environment, in one small record that every change of reports writes again.
import { viewRecord } from './lmdb-environment.ts';
import type { ReportTables } from './lmdb-report-tables.ts';

export type Counters = { reports: number; reportBytes: number };

const countersKey = Buffer.from('counters');

export const readCounters = (tables: ReportTables): Counters => {
  const value = tables.meta.get(countersKey);
  return { reports: Number(value?.readBigUInt64BE(0) ?? 0n), reportBytes: Number(value?.readBigUInt64BE(8) ?? 0n) };
};

/** Every transaction that changes reports ends with this. */
export const writeCounters = (tables: ReportTables, { reports, reportBytes }: Counters): void => {
  const changes = changesOf(tables) + 1;
  const value = Buffer.allocUnsafe(22);
  value.writeBigUInt64BE(BigInt(reports), 0);
  value.writeBigUInt64BE(BigInt(reportBytes), 8);
  value.writeUIntBE(changes, 16, 6);
  tables.meta.put(countersKey, value);
};

/** A number that changes whenever reports were written or removed. */
export const changesOf = (tables: ReportTables): number => {
  const value = viewRecord(tables.meta, countersKey);
  return value === undefined || value.length < 22 ? 0 : value.readUIntBE(16, 6);
};
