// The quarantine in LMDB: rejected lines in order of arrival, the newest kept. A damaged line is left out and noted.
import type { DamageLog } from './damage.ts';
import type { Environment, Table } from './lmdb-environment.ts';
import { positionKey, positionOfKey } from './lmdb-report-tables.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from './record.ts';
import type { QuarantinedReport } from './store.ts';

/** Refused lines that are kept. */
const quarantineMax = 10_000;

export const addToQuarantine = (environment: Environment, table: Table, refused: readonly QuarantinedReport[]): void =>
  environment.root.transactionSync(() => {
    const [last] = [...table.getKeys({ reverse: true, limit: 1 })];
    let next = last === undefined ? 1 : positionOfKey(last) + 1;
    for (const entry of refused) {
      const key = positionKey(next++);
      table.put(key, encodeKeyedRecord(key, entry));
    }
    for (const key of [...table.getKeys({ end: positionKey(Math.max(0, next - quarantineMax)) })]) table.remove(key);
  });

/** The intact ones, newest first. */
export const listQuarantine = (table: Table, limit: number, damage: DamageLog): readonly QuarantinedReport[] =>
  [...table.getRange({ reverse: true, limit })].flatMap(({ key, value }) => {
    const name = `quarantined line ${positionOfKey(key)}`;
    return (
      damage.contain({ table: 'quarantine', key: name }, () => [
        decodeKeyedRecord<QuarantinedReport>(key, value, name),
      ]) ?? []
    );
  });
