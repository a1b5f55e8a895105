// Owns administrative records, the audit log, the quarantine and usage in PostgreSQL: small records under checksums, as in the embedded
// engine. Changes are one after the other under a lock of their own, and every node hears of them.
import { auditHash, requireChain } from './audit-chain.ts';
import type { Run, Writer } from './postgres-connection.ts';
import type { Feed } from './postgres-feed.ts';
import { bytesList, numberList, textList } from './postgres-rows.ts';
import { type Tables, takeLock } from './postgres-schema.ts';
import { fitQuarantine, quarantineBytesMax, quarantineLinesMax } from './quarantine-bounds.ts';
import { decodeRecord, encodeRecord } from './record.ts';
import type {
  Act,
  AdminKind,
  AdminRecords,
  AdminStore,
  AuditEntry,
  KeyedRecord,
  Quarantine,
  QuarantinedReport,
} from './store.ts';

type RecordRow = { readonly key: string; readonly record: Buffer };

export const createAdminStore = (run: Run, { write }: Writer, t: Tables, feed: Feed): AdminStore => {
  const read = async <K extends AdminKind>(on: Run, kind: K, keys: readonly string[]) => {
    const rows = await on<RecordRow>(
      `SELECT key, record FROM ${t.records} WHERE kind = $1::text AND key = ANY($2::text[])`,
      [kind, textList(keys)],
    );
    const found = new Map(rows.map(({ key, record }) => [key, record]));
    return keys.map((key) => {
      const record = found.get(key);
      return record && decodeRecord<AdminRecords[K]>(record, `${kind} ${key}`);
    });
  };
  const change = async (alter: (on: Run) => Promise<void>): Promise<void> => {
    await write(async (on) => {
      await takeLock(on, t, 'admin');
      await alter(on);
      await on(`UPDATE ${t.counters} SET value = value + 1 WHERE name = 'admin'`);
      await on('SELECT pg_notify($1::text, $2::text)', [t.channel, 'admin']);
    });
    // Its own listeners hear of it at once; a failure to look is made good by the next look.
    feed.look().catch(() => {});
  };
  const put = (on: Run, records: readonly KeyedRecord[]) =>
    on(
      `INSERT INTO ${t.records} (kind, key, record) SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[])
       ON CONFLICT (kind, key) DO UPDATE SET record = excluded.record`,
      [
        textList(records.map(({ kind }) => kind)),
        textList(records.map(({ key }) => key)),
        bytesList(records.map(({ record }) => encodeRecord(record))),
      ],
    );
  return {
    list: async <K extends AdminKind>(kind: K) => {
      const rows = await run<RecordRow>(`SELECT key, record FROM ${t.records} WHERE kind = $1::text ORDER BY key`, [
        kind,
      ]);
      return rows.map(({ key, record }) => decodeRecord<AdminRecords[K]>(record, `${kind}/${key}`));
    },
    get: async (kind, key) => (await read(run, kind, [key]))[0],
    update: (kind, keys, alter, act) =>
      change(async (on) => {
        const next = alter(await read(on, kind, keys));
        const records = next.map((record, i) => ({ kind, key: keys[i] as string, record })); // one for each key
        await put(on, records);
        await recordAct(on, t, act);
      }),
    log: (act) => change((on) => recordAct(on, t, act)),
    takeOver: (records, entries) =>
      change(async (on) => {
        requireChain(await lastEntry(on, t), entries);
        await put(on, records);
        await addEntries(on, t, entries);
      }),
    auditAfter: async (sequence, limit) => {
      const rows = await run<{ sequence: number; record: Buffer }>(
        `SELECT sequence, record FROM ${t.audit} WHERE sequence > $1::bigint ORDER BY sequence LIMIT $2::int`,
        [sequence, limit],
      );
      return rows.map((row) => decodeRecord<AuditEntry>(row.record, `audit entry ${row.sequence}`));
    },
    onChanged: feed.onAdminChanged,
  };
};

const lastEntry = async (run: Run, t: Tables): Promise<AuditEntry | undefined> => {
  const [row] = await run<{ record: Buffer }>(`SELECT record FROM ${t.audit} ORDER BY sequence DESC LIMIT 1`);
  return row && decodeRecord<AuditEntry>(row.record, 'the last audit entry');
};

const addEntries = async (run: Run, t: Tables, entries: readonly AuditEntry[]): Promise<void> => {
  await run(`INSERT INTO ${t.audit} (sequence, record) SELECT * FROM unnest($1::bigint[], $2::bytea[])`, [
    numberList(entries.map(({ sequence }) => sequence)),
    bytesList(entries.map(encodeRecord)),
  ]);
};

const recordAct = async (run: Run, t: Tables, act: Act): Promise<void> => {
  const last = await lastEntry(run, t);
  const entry = { sequence: (last?.sequence ?? 0) + 1, previousHash: last?.hash ?? '', ...act };
  await addEntries(run, t, [{ ...entry, hash: auditHash(entry) }]);
};

export const createQuarantine = (run: Run, { write }: Writer, t: Tables): Quarantine => ({
  add: async (refused) => {
    if (refused.length === 0) return;
    await write(async (on) => {
      await on(
        `INSERT INTO ${t.quarantine} (record) SELECT record FROM unnest($1::bytea[]) WITH ORDINALITY AS r(record, n) ORDER BY n`,
        [bytesList(fitQuarantine(refused).map(encodeRecord))],
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
    const rows = await run<{ record: Buffer }>(
      `SELECT record FROM ${t.quarantine} ORDER BY sequence DESC LIMIT $1::int`,
      [limit],
    );
    return rows.map(({ record }) => decodeRecord<QuarantinedReport>(record, 'a quarantined line'));
  },
  count: async () => {
    const [row] = await run<{ count: number }>(`SELECT count(*) AS count FROM ${t.quarantine}`);
    return row?.count ?? 0;
  },
});
