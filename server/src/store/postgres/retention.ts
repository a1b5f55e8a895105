// Removes old reports from PostgreSQL by dropping whole partitions, and counts what they hold. When space runs short it never drops the partition with the
// newest reports, and keeps each stream's newest report of the others (D147). Readers hide what is older than retention (D52).
import { positionsKept } from '../bounds.ts';
import { createDamageLog, type DamageLog } from '../damage.ts';
import { decodeRecord, encodeRecord } from '../format/record.ts';
import { withPrice } from '../format/report-contents.ts';
import type { AppliedRetention, RetentionRecord } from '../nodes.ts';
import type { ReportStats, Retention, Trimmed } from '../store.ts';
import { candleRows, putCandles } from './append.ts';
import type { Run, WriteConnection } from './connection.ts';
import { dropPartition, lockBriefly, type Partition } from './partitions.ts';
import { bytesList, feedIdOfBytes, numberList, type ReportRow, readReport } from './rows.ts';
import { type Tables, takeLock } from './schema.ts';

/** Drops or empties the oldest partition that is due, if any. */
export const trimPartition = (
  { write }: WriteConnection,
  t: Tables,
  partitionOf: (ms: number) => Partition,
  retention: Retention,
): Promise<Trimmed> =>
  write(async (run) => {
    await takeLock(run, t, 'reports');
    const held = await run<{ start_ms: number; reports: number }>(
      `SELECT start_ms, reports FROM ${t.partitions} ORDER BY start_ms`,
    );
    await run(
      `DELETE FROM ${t.appended} WHERE last_position <= (SELECT value FROM ${t.counters} WHERE name = 'position') - ${positionsKept}`,
    );
    const aged = held.find(({ start_ms }) => partitionOf(start_ms).endMs <= retention.beforeMs);
    const { beforeMs, overdueMaxMs = Number.POSITIVE_INFINITY } = retention;
    if (aged && beforeMs - partitionOf(aged.start_ms).endMs > overdueMaxMs)
      return { removed: 0, more: false, isWithheld: true };
    const freed = aged
      ? await drop(run, t, partitionOf, aged)
      : await makeRoom(run, t, partitionOf, held, retention.bytesMax);
    if (freed === undefined) return { removed: 0, more: false };
    await run(`UPDATE ${t.counters} SET value = value + 1 WHERE name = 'trimmed'`);
    await run('SELECT pg_notify($1::text, $2::text)', [t.channel, 'trimmed']);
    return { ...freed, more: true };
  });

type Held = { readonly start_ms: number; readonly reports: number };
type Freed = Required<Pick<Trimmed, 'removed' | 'endMs'>>;

const drop = async (run: Run, t: Tables, partitionOf: (ms: number) => Partition, { start_ms, reports }: Held) => {
  const partition = partitionOf(start_ms);
  await dropPartition(run, t, partition);
  await run(`DELETE FROM ${t.heads} WHERE observations >= $1::bigint AND observations < $2::bigint`, [
    partition.startMs,
    partition.endMs,
  ]);
  return { removed: reports, endMs: partition.endMs };
};

/** While reports take too much room, empties the oldest partition that has more than newest reports; undefined when there is nothing to do. */
const makeRoom = async (
  run: Run,
  t: Tables,
  partitionOf: (ms: number) => Partition,
  held: readonly Held[],
  bytesMax: number,
): Promise<Freed | undefined> => {
  const newest = held.findLastIndex(({ reports }) => reports > 0);
  if (newest < 1 || (await usedBytes(run, t, 'partitions')) <= bytesMax) return undefined;
  for (const one of held.slice(0, newest)) {
    const partition = partitionOf(one.start_ms);
    const heads = await readHeadsIn(run, t, partition);
    if (heads.length === 0) return drop(run, t, partitionOf, one);
    if (one.reports > heads.length) {
      const kept = await keepOnly(run, t, partition, heads);
      return { removed: one.reports - kept, endMs: partition.endMs };
    }
  }
  return undefined;
};

type HeadRow = ReportRow & { readonly feed_id: Buffer };

/** The reports of a partition that are the newest of their streams. */
const readHeadsIn = (run: Run, t: Tables, { startMs, endMs, reports: leaf }: Partition): Promise<readonly HeadRow[]> =>
  run<HeadRow>(
    `SELECT r.feed_id, r.observations, r.valid_from, r.record FROM ${t.heads} AS h
     JOIN ${leaf} AS r ON r.feed_id = h.feed_id AND r.observations = h.observations
     WHERE h.observations >= $1::bigint AND h.observations < $2::bigint`,
    [startMs, endMs],
  );

/** Empties a partition but for these reports and what they make of their minutes; returns their number. */
const keepOnly = async (run: Run, t: Tables, partition: Partition, heads: readonly HeadRow[]): Promise<number> => {
  await lockBriefly(run);
  await run(`TRUNCATE ${partition.reports}, ${partition.candles}`);
  await run(
    `INSERT INTO ${partition.reports} (feed_id, observations, valid_from, record)
     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[])`,
    [
      bytesList(heads.map(({ feed_id }) => feed_id)),
      numberList(heads.map(({ observations }) => observations)),
      numberList(heads.map(({ valid_from }) => valid_from)),
      bytesList(heads.map(({ record }) => record)),
    ],
  );
  const damage = createDamageLog(); // what is damaged was noted when it was read
  const kept = heads.flatMap((row) => readReport(damage, feedIdOfBytes(row.feed_id), row) ?? []);
  const minutes = candleRows(() => partition, kept.map(withPrice));
  for (const [, rows] of minutes) await putCandles(run, partition, rows);
  const bytes = kept.reduce((sum, { fullReport }) => sum + fullReport.length, 0); // 0 of a damaged one
  await run(`UPDATE ${t.partitions} SET reports = $2::bigint, report_bytes = $3::bigint WHERE start_ms = $1::bigint`, [
    partition.startMs,
    heads.length,
    bytes,
  ]);
  return heads.length;
};

/** Bytes of all tables, or of those that retention frees. */
const usedBytes = async (run: Run, { schema }: Tables, which: 'all' | 'partitions'): Promise<number> => {
  const [row] = await run<{ bytes: number | null }>(
    `SELECT sum(pg_total_relation_size(c.oid))::bigint AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1::text AND c.relkind = 'r'${which === 'partitions' ? ' AND c.relispartition' : ''}`,
    [schema],
  );
  return row?.bytes ?? 0;
};

export async function readStats(run: Run, t: Tables): Promise<ReportStats> {
  const [row] = await run<{ streams: number; reports: number | null; report_bytes: number | null }>(
    `SELECT (SELECT count(*) FROM ${t.heads}) AS streams, sum(reports)::bigint AS reports, sum(report_bytes)::bigint AS report_bytes
     FROM ${t.partitions}`,
  );
  const bytes = await usedBytes(run, t, 'all');
  return {
    streams: row?.streams ?? 0,
    reports: row?.reports ?? 0,
    reportBytes: row?.report_bytes ?? 0,
    usedBytes: bytes,
    fileBytes: bytes,
  };
}

/** Retention as the nodes on the database apply it. */
export function createRetentionRecord(
  run: Run,
  { write }: WriteConnection,
  t: Tables,
  damage: DamageLog,
): RetentionRecord {
  const read = async (on: Run): Promise<AppliedRetention | undefined> => {
    const [row] = await on<{ record: Buffer }>(`SELECT record FROM ${t.retention}`);
    const decode = () => row && decodeRecord<AppliedRetention>(row.record, 'the retention that is applied');
    return damage.contain({ table: 'retention', key: 'applied' }, decode);
  };
  return {
    get: () => read(run),
    update: (change) =>
      write(async (on) => {
        await takeLock(on, t, 'admin');
        const applied = change(await read(on));
        await on(`DELETE FROM ${t.retention}`);
        await on(`INSERT INTO ${t.retention} VALUES ($1::bytea)`, [encodeRecord(applied)]);
        return applied;
      }),
  };
}
