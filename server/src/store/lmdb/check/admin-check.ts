// Looking through every record of the administrative environment, for those who check a store.
import { createDamageLog, type DamageLog } from '../../damage.ts';
import { decodeKeyedRecord } from '../../format/record.ts';
import type { Damage } from '../../store.ts';
import { decodeAdminRecord, decodeAuditEntry } from '../admin.ts';
import { type Environment, openTable, type Table } from '../environment.ts';

type Entry = { readonly key: Buffer; readonly value: Buffer };

const decodeCount = ({ key, value }: Entry): unknown => decodeKeyedRecord(key, value, key.toString());

/** How a record of each table is decoded, which throws where it is damaged. */
const decoders: Readonly<Record<string, (entry: Entry) => unknown>> = {
  records: decodeAdminRecord,
  audit: decodeAuditEntry,
  usage: decodeCount,
  secretUses: decodeCount,
  writer: decodeCount,
};

/** Every damaged record of the environment. */
export const checkAdministration = (environment: Environment): readonly Damage[] => {
  environment.root.resetReadTxn();
  const damage: DamageLog = createDamageLog();
  for (const [table, decode] of Object.entries(decoders)) {
    // A reader on read-only media cannot make a table that an older release did not know.
    const opened: Table | undefined = openTable(environment, table);
    for (const entry of opened?.getRange() ?? []) {
      const key = table === 'audit' ? entry.key.toString('hex') : entry.key.toString();
      damage.contain({ table, key }, () => decode(entry));
    }
  }
  return damage.list();
};
