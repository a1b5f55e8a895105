// Checks every record of the administrative environment.
import { createDamageLog, type DamageLog } from '../../damage.ts';
import { decodeKeyedRecord } from '../../format/record.ts';
import type { Damage } from '../../store.ts';
import { decodeAdminRecord, decodeAuditEntry } from '../admin.ts';
import { type Environment, openTable, type Table } from '../environment.ts';

export type AdminEntry = { readonly key: Buffer; readonly value: Buffer };

const decodeCount = ({ key, value }: AdminEntry): unknown => decodeKeyedRecord(key, value, key.toString());

/** How a record of each table is decoded, which throws where it is damaged. */
export const adminDecoders: Readonly<Record<string, (entry: AdminEntry) => unknown>> = {
  records: decodeAdminRecord,
  audit: decodeAuditEntry,
  usage: decodeCount,
  secretUses: decodeCount,
  writer: decodeCount,
  retention: decodeCount,
};

/** A key as people read it. */
export const nameOfKey = (table: string, key: Buffer): string =>
  table === 'audit' ? key.toString('hex') : key.toString();

/** Every damaged record of the environment. */
export const checkAdministration = (environment: Environment): readonly Damage[] => {
  environment.root.resetReadTxn();
  const damage: DamageLog = createDamageLog();
  for (const [table, decode] of Object.entries(adminDecoders)) {
    // A reader cannot make a table.
    const opened: Table | undefined = openTable(environment, table);
    for (const entry of opened?.getRange() ?? [])
      damage.contain({ table, key: nameOfKey(table, entry.key) }, () => decode(entry));
  }
  return damage.list();
};
