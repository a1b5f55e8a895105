// Owns what retention removes from PostgreSQL, and what is counted there: whole partitions, dropped at once. For want of room the
// one with the newest reports never goes. Readers hide what is older than retention (D52).
import type { Run, Writer } from './postgres-connection.ts';
import { dropPartition, type Partition } from './postgres-partitions.ts';
import { type Tables, takeLock } from './postgres-schema.ts';
import type { ReportStats, Retention } from './store.ts';

/** Positions that `appendedAfter` can go back; older batches are forgotten. */
const positionsKept = 1_000_000;

export type Trimmed = { readonly removed: number; readonly more: boolean };

/** Drops the oldest partition that is due, if any. */
export const trimPartition = (
  { write }: Writer,
  t: Tables,
  spanOf: (ms: number) => Partition,
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
    const oldest = held[0];
    if (oldest === undefined) return { removed: 0, more: false };
    const span = spanOf(oldest.start_ms);
    const isNewest = held.slice(1).every(({ reports }) => reports === 0);
    const isOld = span.endMs <= retention.beforeMs;
    const isTooMuch = async () => !isNewest && (await usedBytes(run, t)) > retention.bytesMax;
    if (!isOld && !(await isTooMuch())) return { removed: 0, more: false };
    await dropPartition(run, t, span);
    await run(`DELETE FROM ${t.heads} WHERE observations < $1::bigint`, [span.endMs]);
    await run(`UPDATE ${t.counters} SET value = value + 1 WHERE name = 'trimmed'`);
    await run('SELECT pg_notify($1::text, $2::text)', [t.channel, 'trimmed']);
    return { removed: oldest.reports, more: true };
  });

const usedBytes = async (run: Run, { schema }: Tables): Promise<number> => {
  const [row] = await run<{ bytes: number | null }>(
    `SELECT sum(pg_total_relation_size(c.oid))::bigint AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1::text AND c.relkind = 'r'`,
    [schema],
  );
  return row?.bytes ?? 0;
};

export const readStats = async (run: Run, t: Tables): Promise<ReportStats> => {
  const [row] = await run<{ streams: number; reports: number | null; report_bytes: number | null }>(
    `SELECT (SELECT count(*) FROM ${t.heads}) AS streams, sum(reports)::bigint AS reports, sum(report_bytes)::bigint AS report_bytes
     FROM ${t.partitions}`,
  );
  const bytes = await usedBytes(run, t);
  return {
    streams: row?.streams ?? 0,
    reports: row?.reports ?? 0,
    reportBytes: row?.report_bytes ?? 0,
    usedBytes: bytes,
    fileBytes: bytes,
  };
};
