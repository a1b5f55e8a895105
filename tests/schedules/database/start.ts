// The tables of a new store, as its schema makes them.
import { createPartitionLookup } from '../../../server/src/store/postgres/partitions.ts';
import { counterNames, tablesOf } from '../../../server/src/store/postgres/schema.ts';
import { firstSecond } from '../sample-reports.ts';
import { type Committed, createCommitted } from './tables.ts';

const dayMs = 86_400_000;

/** Without reports; with the partitions of the first days, or none. */
export const startTables = (hasPartitions: boolean): Committed => {
  const tables = createCommitted();
  for (const name of counterNames) tables.counters.set(name, { name, value: 0 });
  if (!hasPartitions) return tables;
  const partitionOf = createPartitionLookup(tablesOf('sealpost'), dayMs);
  for (const day of [0, 1, 2]) {
    const { startMs, reports, candles } = partitionOf(firstSecond * 1_000 + day * dayMs);
    tables.partitions.set(`${startMs}`, { start_ms: startMs, reports: 0, report_bytes: 0 });
    for (const name of [reports, candles]) tables.relations.set(name, { name });
  }
  return tables;
};
