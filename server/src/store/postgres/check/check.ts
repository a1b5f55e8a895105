// Checks the PostgreSQL tables that a scan of reports does not: records against checksums, and tables against each other (D132).
import { createDamageLog, type DamageLog } from '../../damage.ts';
import { decodeRecord } from '../../format/record.ts';
import type { AdminKind, Damage } from '../../store.ts';
import { type AuditRow, decodeAdmin, decodeAuditRow } from '../admin.ts';
import type { Run } from '../connection.ts';
import { readLeaves } from '../partitions.ts';
import { type BatchRow, feedIdOfBytes, readBatch } from '../rows.ts';
import { counterNames, type Tables, validLineage } from '../schema.ts';

/** Rows read at once; batches of keys are larger than other rows, and the newest report of a stream is looked for in every partition. */
const rowsMax = 1_000;
const batchesMax = 64;
const headsMax = 64;

/** Every damaged row and every contradiction. Nodes may be writing meanwhile: what is compared is read in one statement. */
export async function checkDatabase(run: Run, t: Tables): Promise<readonly Damage[]> {
  const damage = createDamageLog();
  await checkRecords(run, t, damage);
  await checkAudit(run, t, damage);
  await checkQuarantine(run, t, damage);
  await checkBatches(run, t, damage);
  await checkPosition(run, t, damage);
  await checkCounters(run, t, damage);
  await checkHeads(run, t, damage);
  await checkStreams(run, t, damage);
  await checkPartitions(run, t, damage);
  return damage.list();
}

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
    damage.contain({ table: 'audit', key: `${row.sequence}` }, () => decodeAuditRow(row));
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
    const keys = readBatch(damage, batch);
    // What only follows from a damaged batch is not told a second time.
    if (keys !== undefined && next !== undefined && first !== next)
      damage.note({ ...place, reason: `the batch before position ${first} ends at ${next - 1}` });
    next = keys && last + 1;
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

/** Streams that have reports, and none in the table of newest reports: a start does not know their latest. */
const checkStreams = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const statement = `WITH RECURSIVE s AS (
      (SELECT feed_id, 1 AS n FROM ${t.reports} WHERE feed_id > $1::bytea ORDER BY feed_id LIMIT 1)
      UNION ALL
      SELECT r.feed_id, s.n + 1 FROM s CROSS JOIN LATERAL
        (SELECT feed_id FROM ${t.reports} WHERE feed_id > s.feed_id ORDER BY feed_id LIMIT 1) AS r WHERE s.n < $2::int)
    SELECT feed_id, EXISTS (SELECT 1 FROM ${t.heads} AS h WHERE h.feed_id = s.feed_id) AS found FROM s ORDER BY feed_id`;
  const rows = readAll<{ feed_id: Buffer; found: boolean }>(
    run,
    statement,
    Buffer.alloc(0),
    headsMax,
    (row) => row.feed_id,
  );
  for await (const { feed_id, found } of rows) {
    const feedId = feedIdOfBytes(feed_id);
    const reason = 'the stream has reports, and is not in the table of newest reports';
    if (!found) damage.note({ table: 'heads', key: feedId, reason, feedId });
  }
};

const checkCounters = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const rows = await run<{ name: string }>(`SELECT name FROM ${t.counters}`);
  for (const name of counterNames)
    if (!rows.some((row) => row.name === name)) damage.note({ table: 'counters', key: name, reason: 'it is missing' });
  for (const { name } of rows)
    if (!counterNames.includes(name)) damage.note({ table: 'counters', key: name, reason: 'it has no meaning' });
  const lineages = await run(`SELECT 1 FROM ${t.lineage} WHERE ${validLineage}`);
  if (lineages.length !== 1)
    damage.note({ table: 'lineage', key: '', reason: `it has ${lineages.length} valid rows instead of one` });
};

/** The list of partitions, which the next report of a day and retention rely on, with the tables that there are and what they hold. */
const checkPartitions = async (run: Run, t: Tables, damage: DamageLog): Promise<void> => {
  const leaves = await readLeaves(run, t);
  const held = await run<{ start_ms: number }>(`SELECT start_ms FROM ${t.partitions}`);
  for (const { start_ms } of held)
    if (!leaves.some(({ startMs }) => startMs === start_ms))
      damage.note({ table: 'partitions', key: `${start_ms}`, reason: 'there is no such partition' });
  for (const { startMs, endMs } of leaves) {
    const [row] = await run<{ listed: number | null; found: number }>(
      `SELECT (SELECT reports FROM ${t.partitions} WHERE start_ms = $1::bigint) AS listed,
        (SELECT count(*) FROM ${t.reports} WHERE observations >= $1::bigint AND observations < $2::bigint) AS found`,
      [startMs, endMs],
    );
    if (row === undefined || row.listed === row.found) continue;
    const reason =
      row.listed === null
        ? 'the partition is not listed'
        : `it lists ${row.listed} reports, the partition has ${row.found}`;
    damage.note({ table: 'partitions', key: `${startMs}`, reason });
  }
};
