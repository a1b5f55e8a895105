// The quarantine in LMDB: the newest rejected lines, in order of arrival, bounded by number and bytes. Corrupt lines are skipped and noted.

import { fitQuarantine, quarantineBytesMax, quarantineLinesMax } from '../../bounds.ts';
import type { DamageLog } from '../../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../../format/record.ts';
import type { QuarantinedReport } from '../../store.ts';
import type { Environment, Table } from '../environment.ts';
import { positionKey, positionOfKey } from '../report-tables.ts';
import { tableBytes } from './retention.ts';

export const addToQuarantine = (environment: Environment, table: Table, rejected: readonly QuarantinedReport[]): void =>
  environment.root.transactionSync(() => {
    const [last] = [...table.getKeys({ reverse: true, limit: 1 })];
    let next = last === undefined ? 1 : positionOfKey(last) + 1;
    for (const entry of fitQuarantine(rejected)) {
      const key = positionKey(next++);
      table.put(key, encodeKeyedRecord(key, entry));
    }
    for (const key of [...table.getKeys({ end: positionKey(Math.max(0, next - quarantineLinesMax)) })])
      table.removeSync(key);
    while (tableBytes([table]) > quarantineBytesMax) {
      const oldest = [...table.getKeys({ limit: removedAtOnce })];
      if (oldest.length < removedAtOnce) break;
      for (const key of oldest) table.removeSync(key);
    }
  });

/** Lines that are removed between two looks at the bytes in use. */
const removedAtOnce = 16;

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
