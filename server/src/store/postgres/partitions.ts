// The partitions of reports and minutes: which one a timestamp falls into, table names, creating and dropping. Statements name a partition where they
// can: through the parent table each costs three times as much.
import { dayMs } from '@sealpost/protocol';
import { createCoalescer } from '../../runtime/coalesce.ts';
import type { Run } from './connection.ts';
import { sqlState } from './connection.ts';
import { textList } from './rows.ts';
import type { Tables } from './schema.ts';

/** One partition of time and the tables that hold it. */
export type Partition = {
  readonly startMs: number;
  readonly endMs: number;
  readonly reports: string;
  readonly candles: string;
};

export type Partitions = {
  /** The partition that a moment falls into, whether its tables are there or not. */
  readonly partitionOf: (ms: number) => Partition;
  /** The partition that holds a moment, if this process knows of it. */
  readonly known: (ms: number) => Partition | undefined;
  /** Reads again which there are. */
  readonly refresh: () => Promise<void>;
  /** Runs with what is known; when a partition went meanwhile, once more with what is there now. */
  readonly retried: <T>(act: () => Promise<T>) => Promise<T>;
};

export function createPartitionLookup(t: Tables, partitionMs: number): (ms: number) => Partition {
  let last: Partition | undefined;
  return (ms) => {
    // Most reports fall where the one before did.
    if (last !== undefined && ms >= last.startMs && ms < last.endMs) return last;
    const startMs = Math.floor(ms / partitionMs) * partitionMs;
    const stamp = new Date(startMs).toISOString().replaceAll(/[^0-9]/g, '');
    const name = stamp.slice(0, partitionMs % dayMs === 0 ? 8 : 14);
    last = {
      startMs,
      endMs: startMs + partitionMs,
      reports: `${t.reports}_p${name}`,
      candles: `${t.candles}_p${name}`,
    };
    return last;
  };
}

export function createPartitions(run: Run, t: Tables, partitionMs: number): Partitions {
  const partitionOf = createPartitionLookup(t, partitionMs);
  let known = new Map<number, Partition>();
  const { wake: refresh } = createCoalescer(async () => {
    const rows = await run<{ start_ms: number }>(`SELECT start_ms FROM ${t.partitions}`);
    known = new Map(rows.map(({ start_ms }) => [start_ms, partitionOf(start_ms)]));
  });
  return {
    partitionOf,
    known: (ms) => known.get(Math.floor(ms / partitionMs) * partitionMs),
    refresh,
    retried: async (act) => {
      try {
        return await act();
      } catch (error) {
        if (sqlState(error) !== '42P01') throw error;
        await refresh();
        return act();
      }
    },
  };
}

/** The partitions that the database has, whatever the list of them says. */
export async function readLeaves(run: Run, t: Tables): Promise<readonly Pick<Partition, 'startMs' | 'endMs'>[]> {
  const rows = await run<{ bound: string }>(
    `SELECT pg_get_expr(c.relpartbound, c.oid) AS bound FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
     WHERE i.inhparent = to_regclass($1) ORDER BY c.relname`,
    [t.reports],
  );
  return rows.flatMap(({ bound }) => {
    const [, start, end] = /FROM \('?(-?\d+)'?\) TO \('?(-?\d+)/.exec(bound) ?? [];
    return start === undefined ? [] : [{ startMs: Number(start), endMs: Number(end) }];
  });
}

/** Which of these tables there are. */
const readPresent = async (run: Run, names: readonly string[]): Promise<readonly string[]> => {
  const rows = await run<{ name: string }>(
    'SELECT name FROM unnest($1::text[]) AS n(name) WHERE to_regclass(name) IS NOT NULL',
    [textList(names)],
  );
  return rows.map(({ name }) => name);
};

/** Makes the tables of partitions that are not listed. Attached, not made as a partition: that would lock out all readers. */
export async function createPartitionTables(run: Run, t: Tables, partitions: readonly Partition[]): Promise<void> {
  if (partitions.length === 0) return;
  // Where the list of partitions is damaged, the tables are there.
  const leaves = partitions.flatMap(({ reports, candles }) => [reports, candles]);
  const there = new Set(await readPresent(run, leaves));
  for (const { startMs, endMs, reports, candles } of partitions) {
    for (const [parent, leaf] of [
      [t.reports, reports],
      [t.candles, candles],
    ] as const) {
      if (there.has(leaf)) continue;
      await run(`CREATE TABLE ${leaf} (LIKE ${parent} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
      await run(`ALTER TABLE ${parent} ATTACH PARTITION ${leaf} FOR VALUES FROM (${startMs}) TO (${endMs})`);
    }
    await run(`INSERT INTO ${t.partitions} (start_ms) VALUES ($1::bigint)`, [startMs]);
  }
}

/** Readers wait behind a lock on a whole table, so a transaction waits for it for a short while only. */
export const lockBriefly = (run: Run) => run(`SET LOCAL lock_timeout = 500`);

/** Drops a partition at once, whatever it holds. Readers wait for it, so it waits for them for a short while only. */
export async function dropPartition(run: Run, t: Tables, { startMs, reports, candles }: Partition): Promise<void> {
  await lockBriefly(run);
  await run(`DROP TABLE IF EXISTS ${reports}, ${candles}`); // where the list is damaged, there is none
  await run(`DELETE FROM ${t.partitions} WHERE start_ms = $1::bigint`, [startMs]);
}
