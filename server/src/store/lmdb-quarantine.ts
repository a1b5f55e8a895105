// Owns the quarantine in LMDB: refused lines in order of arrival, the newest kept.
import { crc32 } from 'node:zlib';
import type { Environment, Table } from './lmdb-environment.ts';
import { positionKey, positionOfKey } from './lmdb-report-tables.ts';
import { CorruptRecordError, type QuarantinedReport } from './store.ts';

/** Refused lines that are kept. */
const quarantineMax = 10_000;

/** JSON under a checksum. */
export const encodeRecord = (record: unknown): Buffer => {
  const json = Buffer.from(JSON.stringify(record));
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(crc32(json));
  return Buffer.concat([head, json]);
};

export const decodeRecord = <T>(value: Buffer, name: string): T => {
  const json = value.subarray(4);
  if (value.length < 4 || crc32(json) !== value.readUInt32BE(0))
    throw new CorruptRecordError(`${name} does not match its checksum`);
  return JSON.parse(json.toString()) as T; // written by encodeRecord, so says the checksum
};

export const addToQuarantine = (environment: Environment, table: Table, refused: readonly QuarantinedReport[]): void =>
  environment.root.transactionSync(() => {
    const [last] = [...table.getKeys({ reverse: true, limit: 1 })];
    let next = last === undefined ? 1 : positionOfKey(last) + 1;
    for (const entry of refused) table.put(positionKey(next++), encodeRecord(entry));
    for (const key of [...table.getKeys({ end: positionKey(Math.max(0, next - quarantineMax)) })]) table.remove(key);
  });

/** Newest first. */
export const listQuarantine = (table: Table, limit: number): readonly QuarantinedReport[] =>
  [...table.getRange({ reverse: true, limit })].map(({ value }) =>
    decodeRecord<QuarantinedReport>(value, 'a quarantined line'),
  );
