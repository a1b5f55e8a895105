// Administrative records and the audit log in LMDB: small JSON with checksums, changed by any process in short transactions. Every change increments a
// version, which other processes poll four times a second. Corrupt records are skipped and noted (D120).
import { createHash } from 'node:crypto';
import { auditHash, readAuditEntry, requireChain } from '../audit-chain.ts';
import type { DamageLog } from '../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../format/record.ts';
import type { AppliedRetention, RetentionRecord } from '../nodes.ts';
import {
  type Act,
  type AdminKind,
  type AdminRecords,
  type AdminStore,
  type AuditEntry,
  CorruptRecordError,
  type KeyedRecord,
  keyedBy,
} from '../store.ts';
import { createWake } from '../wake.ts';
import { type Environment, openTable, type Table } from './environment.ts';
import { positionKey, positionOfKey } from './report-tables.ts';

const pollMs = 250;

/** Damaged entries at the end of the audit log that are looked past. */
const damagedEntriesMax = 64;

type Entry = { readonly key: Buffer; readonly value: Buffer };

const kindOf = ({ key }: Entry): string => key.toString().split('/', 1)[0] ?? '';
const isAdminKind = (text: string): text is AdminKind => text in keyedBy;

/** An administrative record; one that is not what was written under its key is a CorruptRecordError. */
export function decodeAdminRecord<K extends AdminKind>(entry: Entry): AdminRecords[K] {
  const name = entry.key.toString();
  const kind = kindOf(entry);
  if (!isAdminKind(kind)) throw new CorruptRecordError(`${name} has a damaged key`);
  const record = decodeKeyedRecord<AdminRecords[K]>(entry.key, entry.value, name);
  const own = `${kind}/${keyedBy[kind as K](record)}`; // a kind of the table
  if (own !== name) throw new CorruptRecordError(`${name} holds the record of ${own}`);
  return record;
}

const recordKey = (kind: AdminKind, key: string) => Buffer.from(`${kind}/${key}`);

/** The tables, and what changes them inside of a transaction. */
const openAdminTables = (environment: Environment, damage: DamageLog) => {
  const records = openTable(environment, 'records');
  const audit = openTable(environment, 'audit');
  const write = (kind: AdminKind, key: string, record: object): void => {
    const stored = recordKey(kind, key);
    records.put(stored, encodeKeyedRecord(stored, record));
  };
  /** Where the log ends. After a damaged entry it continues from the hash of that entry's bytes, so that `audit verify` names one entry. */
  const lastEntry = (): Pick<AuditEntry, 'sequence' | 'hash'> | undefined => {
    let last: Pick<AuditEntry, 'sequence' | 'hash'> | undefined;
    for (const entry of audit.getRange({ reverse: true, limit: damagedEntriesMax })) {
      const key = `audit entry ${positionOfKey(entry.key)}`;
      last = damage.contain({ table: 'audit', key }, () => decodeAuditEntry(entry));
      if (last !== undefined) break;
    }
    for (let sequence = (last?.sequence ?? 0) + 1; ; sequence += 1) {
      const value = audit.get(positionKey(sequence));
      if (value === undefined) return last;
      last = { sequence, hash: createHash('sha256').update(value).digest('hex') };
    }
  };
  const putEntry = (entry: AuditEntry): void => {
    const key = positionKey(entry.sequence);
    audit.put(key, encodeKeyedRecord(key, entry));
  };
  const record = (act: Act): void => {
    const last = lastEntry();
    const entry = { sequence: (last?.sequence ?? 0) + 1, previousHash: last?.hash ?? '', ...act };
    putEntry({ ...entry, hash: auditHash(entry) });
  };
  return { records, audit, write, lastEntry, putEntry, record };
};

/** Puts records in the place of what is stored, with an audit entry; durable when it returns. */
export function putAdminRecords(
  environment: Environment,
  damage: DamageLog,
  taken: readonly KeyedRecord[],
  act: Act,
): void {
  const { write, record } = openAdminTables(environment, damage);
  environment.root.transactionSync(() => {
    for (const { kind, key, record: value } of taken) write(kind, key, value);
    record(act);
  });
}

/** `administer` makes a change, in its turn; `putElsewhere` has records put by the thread that writes, where there is one. */
export function createLmdbAdmin(
  environment: Environment,
  damage: DamageLog,
  administer: (change: () => void) => Promise<void>,
  putElsewhere: ((records: readonly KeyedRecord[], act: Act) => Promise<void>) | undefined,
): AdminStore & { readonly close: () => void } {
  const { records, audit, write, lastEntry, putEntry, record } = openAdminTables(environment, damage);
  /** Every intact record of a kind. The whole table is walked: a damaged key may be in no range. */
  const listAll = <K extends AdminKind>(kind: K): readonly AdminRecords[K][] =>
    [...records.getRange()].flatMap((entry) => {
      const key = entry.key.toString();
      if (isAdminKind(kindOf(entry)) && kindOf(entry) !== kind) return [];
      return damage.contain({ table: 'records', key }, () => [decodeAdminRecord<K>(entry)]) ?? [];
    });
  const read = <K extends AdminKind>(kind: K, key: string): AdminRecords[K] | undefined => {
    const value = records.get(recordKey(kind, key));
    return value && decodeAdminRecord<K>({ key: recordKey(kind, key), value });
  };
  const version = (): number => {
    environment.root.resetReadTxn();
    for (const key of audit.getKeys({ reverse: true, limit: 1 })) return positionOfKey(key);
    return 0;
  };
  const { listen, check: look, close } = createWake(version, pollMs);
  const change = async (write: () => void): Promise<void> => {
    await administer(() => environment.root.transactionSync(write));
    look();
  };
  return {
    list: async (kind) => {
      environment.root.resetReadTxn();
      return listAll(kind);
    },
    get: async (kind, key) => {
      environment.root.resetReadTxn();
      return read(kind, key);
    },
    update: (kind, keys, alter, act, check) =>
      change(() => {
        check?.(listAll(kind));
        // A damaged record is as good as none: what is written now takes its place.
        const current = keys.map((key) =>
          damage.contain({ table: 'records', key: `${kind}/${key}` }, () => read(kind, key)),
        );
        for (const [i, value] of alter(current).entries()) write(kind, keys[i] as string, value); // one for each key
        record(act);
      }),
    log: (act) => change(() => record(act)),
    put: async (taken, act) => {
      await (putElsewhere?.(taken, act) ?? administer(() => putAdminRecords(environment, damage, taken, act)));
      look();
    },
    takeOver: (taken, entries) =>
      change(() => {
        requireChain(lastEntry(), entries);
        for (const { kind, key, record: value } of taken) write(kind, key, value);
        for (const entry of entries) putEntry(entry);
      }),
    auditAfter: async (sequence, limit) => {
      environment.root.resetReadTxn();
      return [...audit.getRange({ start: positionKey(sequence + 1), limit })].map(decodeAuditEntry);
    },
    auditNewest: async (limit) => {
      environment.root.resetReadTxn();
      const entries = [...audit.getRange({ reverse: true, limit })].reverse();
      return entries.map((entry) => readAuditEntry(positionOfKey(entry.key), () => decodeAuditEntry(entry)));
    },
    onChanged: listen,
    close,
  };
}

/** The audit entry of a record; one that is not what was written is a CorruptRecordError. */
export function decodeAuditEntry({ key, value }: Entry): AuditEntry {
  const name = `audit entry ${positionOfKey(key)}`;
  const entry = decodeKeyedRecord<AuditEntry>(key, value, name);
  if (entry.sequence !== positionOfKey(key)) throw new CorruptRecordError(`${name} holds entry ${entry.sequence}`);
  return entry;
}

const retentionKey = Buffer.from('applied');

/** `administer` makes a change, in its turn. */
export function createLmdbRetention(
  environment: Environment,
  damage: DamageLog,
  administer: (change: () => void) => Promise<void>,
): RetentionRecord {
  const table: Table | undefined = openTable(environment, 'retention'); // undefined on read-only media
  const read = (): AppliedRetention | undefined => {
    const value = table?.get(retentionKey);
    if (value === undefined) return undefined;
    const decode = () => decodeKeyedRecord<AppliedRetention>(retentionKey, value, 'the retention that is applied');
    return damage.contain({ table: 'retention', key: 'applied' }, decode);
  };
  return {
    get: async () => {
      environment.root.resetReadTxn();
      return read();
    },
    update: async (change) => {
      let applied: AppliedRetention | undefined;
      await administer(() =>
        environment.root.transactionSync(() => {
          applied = change(read());
          table?.put(retentionKey, encodeKeyedRecord(retentionKey, applied));
        }),
      );
      return applied as unknown as AppliedRetention; // set by the change, which has run
    },
  };
}
