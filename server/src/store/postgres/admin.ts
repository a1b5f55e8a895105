// Administrative records, the audit log, quarantine and usage in PostgreSQL: small records with checksums, as in LMDB. Changes run one at a time under
// their own lock, and every node is notified.
import { createHash } from 'node:crypto';

import { auditHash, readAuditEntry, requireChain } from '../audit-chain.ts';
import { fitQuarantine, quarantineBytesMax, quarantineLinesMax } from '../bounds.ts';
import type { DamageLog } from '../damage.ts';
import { decodeRecord, encodeRecord } from '../format/record.ts';
import {
  type Act,
  type AdminKind,
  type AdminRecords,
  type AdminStore,
  type AuditEntry,
  CorruptRecordError,
  type KeyedRecord,
  keyedBy,
  type Quarantine,
  type QuarantinedReport,
} from '../store.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Run, WriteConnection } from './connection.ts';
import { bytesList, numberList, textList } from './rows.ts';
import { type Tables, takeLock } from './schema.ts';

type RecordRow = { readonly key: string; readonly record: Buffer };

export function createPostgresAdmin(
  run: Run,
  { write }: WriteConnection,
  t: Tables,
  feed: ChangeFeed,
  damage: DamageLog,
): AdminStore {
  const read = async <K extends AdminKind>(on: Run, kind: K, keys: readonly string[]) => {
    const rows = await on<RecordRow>(
      `SELECT key, record FROM ${t.records} WHERE kind = $1::text AND key = ANY($2::text[])`,
      [kind, textList(keys)],
    );
    const found = new Map(rows.map(({ key, record }) => [key, record]));
    return keys.map((key) => {
      const record = found.get(key);
      return record && (() => decodeAdmin(kind, key, record));
    });
  };
  const list = async <K extends AdminKind>(on: Run, kind: K): Promise<readonly AdminRecords[K][]> => {
    const rows = await on<RecordRow>(`SELECT key, record FROM ${t.records} WHERE kind = $1::text ORDER BY key`, [kind]);
    return rows.flatMap(
      ({ key, record }) =>
        damage.contain({ table: 'records', key: `${kind}/${key}` }, () => [decodeAdmin(kind, key, record)]) ?? [],
    );
  };
  const change = async (alter: (on: Run) => Promise<void>): Promise<void> => {
    await write(async (on) => {
      await takeLock(on, t, 'admin');
      await alter(on);
      await on(`UPDATE ${t.counters} SET value = value + 1 WHERE name = 'admin'`);
      await on('SELECT pg_notify($1::text, $2::text)', [t.channel, 'admin']);
    });
    // Listeners in this process are called at once; if that read fails, the next poll makes up for it.
    feed.look().catch(() => {});
  };
  return {
    list: (kind) => list(run, kind),
    get: async (kind, key) => (await read(run, kind, [key]))[0]?.(),
    update: (kind, keys, alter, act, check) =>
      change(async (on) => {
        check?.(await list(on, kind));
        // A damaged record is as good as none: what is written now takes its place.
        const current = (await read(on, kind, keys)).map((decode, i) =>
          damage.contain({ table: 'records', key: `${kind}/${keys[i]}` }, () => decode?.()),
        );
        const next = alter(current);
        const records = next.map((record, i) => ({ kind, key: keys[i] as string, record })); // one for each key
        await putWithEntry(on, t, records, act, damage);
      }),
    log: (act) => change((on) => recordAct(on, t, act, damage)),
    put: (records, act) => change((on) => putWithEntry(on, t, records, act, damage)),
    takeOver: (records, entries) =>
      change(async (on) => {
        requireChain(await lastEntry(on, t, damage), entries);
        await putRecords(on, t, records);
        await addEntries(on, t, entries);
      }),
    auditAfter: async (sequence, limit) => {
      const rows = await run<AuditRow>(
        `SELECT sequence, record FROM ${t.audit} WHERE sequence > $1::bigint ORDER BY sequence LIMIT $2::int`,
        [sequence, limit],
      );
      return rows.map(decodeAuditRow);
    },
    auditNewest: async (limit) => {
      const rows = await run<AuditRow>(`SELECT sequence, record FROM ${t.audit} ORDER BY sequence DESC LIMIT $1::int`, [
        limit,
      ]);
      return rows.map((row) => readAuditEntry(row.sequence, () => decodeAuditRow(row))).reverse();
    },
    onChanged: feed.onAdminChanged,
  };
}

const putRecords = (on: Run, t: Tables, records: readonly KeyedRecord[]) =>
  on(
    `INSERT INTO ${t.records} (kind, key, record) SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[])
     ON CONFLICT (kind, key) DO UPDATE SET record = excluded.record`,
    [
      textList(records.map(({ kind }) => kind)),
      textList(records.map(({ key }) => key)),
      bytesList(records.map(({ record }) => encodeRecord(record))),
    ],
  );

const isAdminKind = (text: string): text is AdminKind => Object.hasOwn(keyedBy, text);

/** A record of a kind; one that is not what was written under its key is a CorruptRecordError. */
export function decodeAdmin<K extends AdminKind>(kind: K, key: string, record: Buffer): AdminRecords[K] {
  if (!isAdminKind(kind)) throw new CorruptRecordError(`${kind}/${key} has a damaged key`);
  const decoded = decodeRecord<AdminRecords[K]>(record, `${kind}/${key}`);
  const own = keyedBy[kind](decoded);
  if (own !== key) throw new CorruptRecordError(`${kind}/${key} holds the record of ${own}`);
  return decoded;
}

/** An entry of the audit log as a row. */
export type AuditRow = { readonly sequence: number; readonly record: Buffer };

/** The audit entry of a row; one that is not what was written is a CorruptRecordError. */
export function decodeAuditRow({ sequence, record }: AuditRow): AuditEntry {
  const entry = decodeRecord<AuditEntry>(record, `audit entry ${sequence}`);
  if (entry.sequence !== sequence)
    throw new CorruptRecordError(`audit entry ${sequence} holds entry ${entry.sequence}`);
  return entry;
}

/** Damaged entries at the end of the audit log that are looked past. */
const damagedEntriesMax = 64;

/** Where the log ends. After a damaged entry it continues from the hash of that entry's bytes, so that `audit verify` names one entry. */
const lastEntry = async (run: Run, t: Tables, damage: DamageLog) => {
  const rows = await run<AuditRow>(
    `SELECT sequence, record FROM ${t.audit} ORDER BY sequence DESC LIMIT ${damagedEntriesMax}`,
  );
  let last: Pick<AuditEntry, 'sequence' | 'hash'> | undefined;
  for (const row of rows) {
    last = damage.contain({ table: 'audit', key: `${row.sequence}` }, () => decodeAuditRow(row));
    if (last !== undefined) break;
  }
  // A row whose number is damaged does not follow: the log continues where the ones that do end.
  const ascending = rows.filter(({ sequence }) => last === undefined || sequence > last.sequence).reverse();
  for (const { sequence, record } of ascending) {
    if (last !== undefined && sequence !== last.sequence + 1) break;
    last = { sequence, hash: createHash('sha256').update(record).digest('hex') };
  }
  return last;
};

const addEntries = async (run: Run, t: Tables, entries: readonly AuditEntry[]): Promise<void> => {
  await run(`INSERT INTO ${t.audit} (sequence, record) SELECT * FROM unnest($1::bigint[], $2::bytea[])`, [
    numberList(entries.map(({ sequence }) => sequence)),
    bytesList(entries.map(encodeRecord)),
  ]);
};

const recordAct = async (run: Run, t: Tables, act: Act, damage: DamageLog): Promise<void> => {
  const last = await lastEntry(run, t, damage);
  const entry = { sequence: (last?.sequence ?? 0) + 1, previousHash: last?.hash ?? '', ...act };
  await addEntries(run, t, [{ ...entry, hash: auditHash(entry) }]);
};

const putWithEntry = async (
  run: Run,
  t: Tables,
  records: readonly KeyedRecord[],
  act: Act,
  damage: DamageLog,
): Promise<void> => {
  await putRecords(run, t, records);
  await recordAct(run, t, act, damage);
};

export const createQuarantine = (run: Run, { write }: WriteConnection, t: Tables, damage: DamageLog): Quarantine => ({
  add: async (rejected) => {
    if (rejected.length === 0) return;
    await write(async (on) => {
      await on(
        `INSERT INTO ${t.quarantine} (record) SELECT record FROM unnest($1::bytea[]) WITH ORDINALITY AS r(record, n) ORDER BY n`,
        [bytesList(fitQuarantine(rejected).map(encodeRecord))],
      );
      await on(
        `DELETE FROM ${t.quarantine} WHERE sequence <= (SELECT max(sequence) FROM (
           SELECT sequence, row_number() OVER newest AS lines, sum(octet_length(record)) OVER newest AS bytes
           FROM ${t.quarantine} WINDOW newest AS (ORDER BY sequence DESC)
         ) AS kept WHERE lines > ${quarantineLinesMax} OR bytes > ${quarantineBytesMax})`,
      );
    });
  },
  list: async (limit) => {
    const rows = await run<{ sequence: number; record: Buffer }>(
      `SELECT sequence, record FROM ${t.quarantine} ORDER BY sequence DESC LIMIT $1::int`,
      [limit],
    );
    return rows.flatMap(
      ({ sequence, record }) =>
        damage.contain({ table: 'quarantine', key: `${sequence}` }, () => [
          decodeRecord<QuarantinedReport>(record, 'a quarantined line'),
        ]) ?? [],
    );
  },
  count: async () => {
    const [row] = await run<{ count: number }>(`SELECT count(*) AS count FROM ${t.quarantine}`);
    return row?.count ?? 0;
  },
});
