// Administrative records and the audit log in memory.
import { auditHash, requireChain } from '../audit-chain.ts';
import type { Act, AdminKind, AdminRecords, AdminStore, AuditEntry, KeyedRecord } from '../store.ts';
import { createListeners } from '../wake.ts';

/** The administration of one store in memory, for all who opened it. */
export function createMemoryAdmin(): AdminStore {
  const records = new Map<string, AdminRecords[AdminKind]>();
  const audit: AuditEntry[] = [];
  const changed = createListeners();
  const nameOf = (kind: AdminKind, key: string): string => `${kind}/${key}`;
  const get = <K extends AdminKind>(kind: K, key: string) =>
    records.get(nameOf(kind, key)) as AdminRecords[K] | undefined; // put under its kind
  const put = (taken: readonly KeyedRecord[]): void => {
    // As with other engines, what the caller does to its object later changes nothing here.
    for (const { kind, key, record } of taken) records.set(nameOf(kind, key), structuredClone(record));
  };
  const log = (act: Act): void => {
    const last = audit.at(-1);
    const entry = { sequence: (last?.sequence ?? 0) + 1, previousHash: last?.hash ?? '', ...structuredClone(act) };
    audit.push({ ...entry, hash: auditHash(entry) });
  };
  const putWithEntry = (taken: readonly KeyedRecord[], act: Act): void => {
    put(taken);
    log(act);
    changed.wake();
  };
  const list = <K extends AdminKind>(kind: K): readonly AdminRecords[K][] =>
    [...records]
      .filter(([name]) => name.startsWith(`${kind}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, record]) => record as AdminRecords[K]); // put under its kind
  return {
    list: async (kind) => list(kind),
    get: async (kind, key) => get(kind, key),
    update: async (kind, keys, change, act, check) => {
      check?.(list(kind));
      const next = change(keys.map((key) => get(kind, key)));
      putWithEntry(
        next.map((record, i) => ({ kind, key: keys[i] as string, record })), // one for each key
        act,
      );
    },
    log: async (act) => putWithEntry([], act),
    put: async (taken, act) => putWithEntry(taken, act),
    takeOver: async (taken, entries) => {
      requireChain(audit.at(-1), entries);
      put(taken);
      audit.push(...entries);
      changed.wake();
    },
    auditAfter: async (sequence, limit) => audit.slice(sequence, sequence + limit),
    auditNewest: async (limit) => (limit > 0 ? audit.slice(-limit) : []),
    onChanged: changed.listen,
  };
}
