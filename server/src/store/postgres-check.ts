// Looking through the tables of PostgreSQL that a scan of reports does not: records under their checksums, and what must agree (D132).
import { createDamageLog, type DamageLog } from './damage.ts';
import { type AuditRow, decodeAdmin, decodeAudit } from './postgres-admin.ts';
import type { Run } from './postgres-connection.ts';
import { type BatchRow, decodeBatch, feedIdOfBytes } from './postgres-rows.ts';
import type { Tables } from './postgres-schema.ts';
import { decodeRecord } from './record.ts';
import type { AdminKind, Damage } from './store.ts';

/** Rows read at once; batches of keys are larger than other rows, and the newest report of a stream is looked for in every partition. */
const rowsMax = 1_000;
const batchesMax = 64;
const headsMax = 64;

/** Every damaged row and every contradiction. Nodes may be writing meanwhile: what is compared is read in one statement. */
export const checkDatabase = async (run: Run, t: Tables): Promise<readonly Damage[]> => {
  const damage = createDamageLog();
  await checkRecords(run, t, damage);
  await checkAudit(run, t, damage);
  await checkQuarantine(run, t, damage);
  await checkBatches(run, t, damage);
  await checkPosition(run, t, damage);
  await checkHeads(run, t, damage);
  return damage.list();
};

/** All rows of a statement whose first parameter is the key to continue after, and whose second is how many to read. */
async function* readAll<T>(
  run: Run,
  statement: string,
  start: number | Buffer,
  limit: number,
  keyOf: (row: T) => number | Buffer,
): AsyncGenerator<T> {
  for (let after: number | Buffer | undefined = start; after !== undefined; ) {
    const rows: readonly T[] = await run<T>(statement, [after, limit]);
    yield* rows;
    const last: T | undefined = rows.at(-1);
    after = last === undefined || rows.length < limit ? undefined : keyOf(last);
  }
}

const checkRecords = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const records = await run<{ kind: AdminKind; key: string; record: Buffer }>(
    `SELECT kind, key, record FROM ${t.records}`,
  );
  for (const { kind, key, record } of records)
    damage.contain({ table: 'records', key: `${kind}/${key}` }, () => decodeAdmin(kind, key, record));
};

const sequenceOf = ({ sequence }: AuditRow): number => sequence;
const inSequence = (table: string): string =>
  `SELECT sequence, record FROM ${table} WHERE sequence > $1::bigint ORDER BY sequence LIMIT $2::int`;

const checkAudit = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  for await (const row of readAll<AuditRow>(run, inSequence(t.audit), -1, rowsMax, sequenceOf))
    damage.contain({ table: 'audit', key: `${row.sequence}` }, () => decodeAudit(row));
};

const checkQuarantine = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  for await (const { sequence, record } of readAll<AuditRow>(run, inSequence(t.quarantine), -1, rowsMax, sequenceOf))
    damage.contain({ table: 'quarantine', key: `${sequence}` }, () =>
      decodeRecord(record, `quarantined line ${sequence}`),
    );
};

const checkBatches = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const statement = `SELECT first_position, last_position, keys FROM ${t.appended} WHERE last_position > $1::bigint
    ORDER BY last_position LIMIT $2::int`;
  let next: number | undefined;
  for await (const batch of readAll<BatchRow>(run, statement, -1, batchesMax, (row) => row.last_position)) {
    const { first_position: first, last_position: last } = batch;
    const place = { table: 'appended', key: `${last}` };
    const keys = damage.contain(place, () => decodeBatch(batch));
    // What only follows from a damaged batch is not told a second time.
    if (keys !== undefined && next !== undefined && first !== next)
      damage.note({ ...place, reason: `the batch before position ${first} ends at ${next - 1}` });
    next = keys === undefined ? undefined : last + 1;
  }
};

const checkPosition = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const [row] = await run<{ value: number | null; last: number | null }>(
    `SELECT (SELECT value FROM ${t.counters} WHERE name = 'position') AS value, (SELECT max(last_position) FROM ${t.appended}) AS last`,
  );
  // Without any batch, retention has removed them all.
  if (row === undefined || row.last === null || row.value === row.last) return;
  const reason = `the last position is ${row.value}, the last appended batch ends at ${row.last}`;
  damage.note({ table: 'counters', key: 'position', reason });
};

type Head = { readonly feed_id: Buffer; readonly head: number; readonly newest: number | null };

/** When each stream was last observed, which decides what a new report is compared with. */
const checkHeads = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const statement = `SELECT h.feed_id, h.observations AS head,
      (SELECT observations FROM ${t.reports} AS r WHERE r.feed_id = h.feed_id ORDER BY observations DESC LIMIT 1) AS newest
    FROM ${t.heads} AS h WHERE h.feed_id > $1::bytea ORDER BY h.feed_id LIMIT $2::int`;
  for await (const { feed_id, head, newest } of readAll<Head>(
    run,
    statement,
    Buffer.alloc(0),
    headsMax,
    (row) => row.feed_id,
  )) {
    const feedId = feedIdOfBytes(feed_id);
    const reason = `the newest report is observed at ${newest}, the table of newest reports says ${head}`;
    if (head !== newest) damage.note({ table: 'heads', key: feedId, reason, feedId });
  }
};
