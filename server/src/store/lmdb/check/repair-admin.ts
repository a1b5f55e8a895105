// Repairs the administrative environment of LMDB: a record under a damaged key is moved to its own key, a corrupt record is removed. Audit log entries are
// never changed: a log that can be repaired can be forged (D131).
import type { SignerSets } from '@sealpost/protocol';
import { keyedBy } from '../../admin-keys.ts';
import { dependentsOf } from '../../damage.ts';
import { attempt } from '../../format/report-correction.ts';
import type { AdminKind, AdminRecords, AuditEntry, RegisteredSignerSet } from '../../store.ts';
import { decodeAdminRecord, decodeAuditEntry } from '../admin.ts';
import { type Environment, openTable, type Table } from '../environment.ts';
import { positionKey } from '../report-tables.ts';
import { type AdminEntry, adminDecoders, nameOfKey } from './admin-check.ts';
import { isAscending, type Repair } from './repair-tables.ts';

/** The intact signer sets, retired ones included. */
export const readSignerSets = (admin: Environment): SignerSets => {
  const sets = [...openTable(admin, 'records').getRange()].flatMap((entry) =>
    entry.key.toString().startsWith('signerSet/') ? (attempt(() => decodeAdminRecord<'signerSet'>(entry)) ?? []) : [],
  );
  return new Map(sets.map((set: RegisteredSignerSet) => [set.configDigest, set]));
};

const reads = (decode: () => unknown): boolean => attempt(() => [decode()]) !== undefined;

const parse = ({ value }: AdminEntry): unknown => {
  try {
    return JSON.parse(value.toString('utf8', 4));
  } catch {
    return undefined;
  }
};

/** The key that a record was written under, as its own content says; undefined where it does not match its checksum there. */
const ownKeys: Readonly<Record<string, (entry: AdminEntry) => Buffer | undefined>> = {
  records: (entry) => {
    const record = parse(entry);
    if (typeof record !== 'object' || record === null) return undefined;
    const kinds = Object.keys(keyedBy) as AdminKind[]; // keys of its own
    const names = kinds.map(
      (kind) => `${kind}/${keyedBy[kind](record as AdminRecords[AdminKind] as never)}`, // tried as each kind in turn
    );
    return names.map((name) => Buffer.from(name)).find((key) => reads(() => decodeAdminRecord({ ...entry, key })));
  },
  audit: (entry) => {
    const sequence = Number((parse(entry) as Partial<AuditEntry> | undefined)?.sequence); // checked where it is used
    const key = Number.isSafeInteger(sequence) && sequence > 0 ? positionKey(sequence) : undefined;
    return key !== undefined && reads(() => decodeAuditEntry({ ...entry, key })) ? key : undefined;
  },
};

/** Who writes is the lock's to say: a damaged place is taken by the next writer (D136). */
const repairedTables = Object.keys(adminDecoders).filter((name) => name !== 'writer');

export const repairAdministration = (repair: Repair, admin: Environment): void => {
  for (const name of repairedTables) {
    const table = openTable(admin, name);
    if (repair.options.dryRun) planTable(repair, name, table);
    else
      admin.root.transactionSync(() => {
        const isOrdered = isAscending(table);
        const { kept, removed } = planTable(repair, name, table);
        if (isOrdered && removed.length === 0) return;
        // Other processes may change these tables: all of it is one transaction, with the file before its end.
        repair.file.flush();
        table.clearSync();
        for (const { key, value } of kept) table.put(key, value);
      });
  }
};

/** What stays, and what goes. Everything that goes is in the file. */
const planTable = (
  repair: Repair,
  name: string,
  table: Table,
): { readonly kept: readonly AdminEntry[]; readonly removed: readonly AdminEntry[] } => {
  const [kept, removed]: [AdminEntry[], AdminEntry[]] = [[], []];
  for (const found of table.getRange()) {
    const entry = { key: Buffer.from(found.key), value: Buffer.from(found.value) };
    if (reads(() => adminDecoders[name]?.(entry))) {
      kept.push(entry);
      continue;
    }
    const key = nameOfKey(name, entry.key);
    const own = ownKeys[name]?.(entry);
    repair.file.put({
      environment: 'admin',
      table: name,
      key: entry.key.toString('hex'),
      value: entry.value,
      reason: 'it is damaged',
    });
    if (own !== undefined) {
      removed.push(entry);
      kept.push({ key: own, value: entry.value });
      repair.tally.add(name);
    } else if (name === 'audit') {
      kept.push(entry);
      repair.left.push({
        table: name,
        key,
        why: 'entries of the audit log are never removed; sealpost audit verify names it',
      });
    } else {
      removed.push(entry);
      repair.lost.push({
        table: name,
        key,
        feedId: null,
        fromMs: null,
        toMs: null,
        reports: null,
        what: dependentsOf(name, key),
      });
    }
  }
  return { kept, removed };
};
