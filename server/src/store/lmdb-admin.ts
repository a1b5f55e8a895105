// Owns administrative records and the audit log in LMDB: small JSON under checksums, changed by any process in short transactions.
// A version grows with every change; processes that listen look at it four times a second.
import { auditHash, requireChain } from './audit-chain.ts';
import { type Environment, openTable } from './lmdb-environment.ts';
import { positionKey, positionOfKey } from './lmdb-report-tables.ts';
import { decodeRecord, encodeRecord } from './record.ts';
import type { Act, AdminKind, AdminRecords, AdminStore, AuditEntry } from './store.ts';
import { createWake } from './wake.ts';

const pollMs = 250;

export const createAdminStore = (environment: Environment): AdminStore & { readonly close: () => void } => {
  const records = openTable(environment, 'records');
  const audit = openTable(environment, 'audit');
  const recordKey = (kind: AdminKind, key: string) => Buffer.from(`${kind}/${key}`);
  const read = <K extends AdminKind>(kind: K, key: string): AdminRecords[K] | undefined => {
    const value = records.get(recordKey(kind, key));
    return value && decodeRecord<AdminRecords[K]>(value, `${kind} ${key}`);
  };
  const lastEntry = (): AuditEntry | undefined => {
    for (const { value } of audit.getRange({ reverse: true, limit: 1 }))
      return decodeRecord<AuditEntry>(value, 'the last audit entry');
    return undefined;
  };
  const record = (act: Act): void => {
    const last = lastEntry();
    const entry = { sequence: (last?.sequence ?? 0) + 1, previousHash: last?.hash ?? '', ...act };
    audit.put(positionKey(entry.sequence), encodeRecord({ ...entry, hash: auditHash(entry) }));
  };
  const version = (): number => {
    environment.root.resetReadTxn();
    for (const key of audit.getKeys({ reverse: true, limit: 1 })) return positionOfKey(key);
    return 0;
  };
  const { listen, check, close } = createWake(version, pollMs);
  const change = async (write: () => void): Promise<void> => {
    environment.root.transactionSync(write);
    check();
  };
  return {
    list: async (kind) => {
      environment.root.resetReadTxn();
      const range = { start: Buffer.from(`${kind}/`), end: Buffer.from(`${kind}0`) }; // 0 follows / in ASCII
      return [...records.getRange(range)].map(({ key, value }) => decodeRecord(value, key.toString()));
    },
    get: async (kind, key) => {
      environment.root.resetReadTxn();
      return read(kind, key);
    },
    update: (kind, keys, alter, act) =>
      change(() => {
        const next = alter(keys.map((key) => read(kind, key)));
        for (const [i, value] of next.entries()) records.put(recordKey(kind, keys[i] as string), encodeRecord(value)); // one for each key
        record(act);
      }),
    log: (act) => change(() => record(act)),
    takeOver: (taken, entries) =>
      change(() => {
        requireChain(lastEntry(), entries);
        for (const { kind, key, record: value } of taken) records.put(recordKey(kind, key), encodeRecord(value));
        for (const entry of entries) audit.put(positionKey(entry.sequence), encodeRecord(entry));
      }),
    auditAfter: async (sequence, limit) => {
      environment.root.resetReadTxn();
      return [...audit.getRange({ start: positionKey(sequence + 1), limit })].map(({ key, value }) =>
        decodeRecord<AuditEntry>(value, `audit entry ${positionOfKey(key)}`),
      );
    },
    onChanged: listen,
    close,
  };
};
