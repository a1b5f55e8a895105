// Owns the quarantine in LMDB: refused lines in order of arrival, the newest kept.
import type { Environment, Table } from './lmdb-environment.ts';
import { positionKey, positionOfKey } from './lmdb-report-tables.ts';
import { decodeRecord, encodeRecord } from './record.ts';
import type { QuarantinedReport } from './store.ts';

/** Refused lines that are kept. */
const quarantineMax = 10_000;

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
