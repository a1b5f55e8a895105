// Repairs a PostgreSQL store while nodes use it: reads everything without a lock, saves corrupt records to a file, and replaces them in short
// transactions under the writers' locks, each of which checks again (D137).
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FeedId } from '@sealpost/protocol';
import { attempt } from '../../format/report-correction.ts';
import { createAsideFile, createRepairTally, type Repaired, type RepairOptions } from '../../repair.ts';
import { StoreError } from '../../store.ts';
import { parseAddress } from '../address.ts';
import { openPool, openWriteConnection } from '../connection.ts';
import { createPartitionLookup } from '../partitions.ts';
import { decodeReport, feedIdOfBytes, isLostReport, reportColumns } from '../rows.ts';
import { lookAtLayout, tablesOf } from '../schema.ts';
import { createMinuteCheck, minuteOf, rebuildMinutes, removeStrayMinutes } from './repair-candles.ts';
import { type KeyedRow, listLost, listUnknown, readLost, repairHeads, repairRow } from './repair-reports.ts';
import {
  type PostgresRepair,
  readStoredSets,
  repairBatches,
  repairCounters,
  repairLogs,
  repairPartitions,
  repairRecords,
} from './repair-tables.ts';

/** Bound of a reading or a transaction; the longest ones count the reports of a partition. */
const stepMs = 60_000;

/** Repairs the store at `postgres://…`. */
export const repairPostgresStore = async (url: string, options: RepairOptions): Promise<Repaired> => {
  const address = parseAddress(url);
  const layout = await lookAtLayout(address);
  if (layout === undefined)
    throw new StoreError('store_not_found', `No store in ${address.shown}. Set another one with --store.`);
  const t = tablesOf(address.schema);
  const pool = openPool(address, 1, stepMs);
  const writer = openWriteConnection({ ...address, writeMs: Math.max(address.writeMs, stepMs) });
  const file = createAsideFile(options);
  const parts = { run: pool.run, write: writer.write, t, partitionOf: createPartitionLookup(t, layout.partitionMs) };
  const repair: PostgresRepair = { ...parts, file, tally: createRepairTally(), lost: [], left: [], options };
  try {
    if (options.lossesOnly) await listLost(repair, await readLost(repair));
    else await repairAll(repair);
    const { tally, lost, left } = repair;
    return { file: file.path(), setAside: file.count(), rebuilt: tally.all(), lost, left };
  } finally {
    file.close();
    await writer.close();
    await pool.close();
  }
};

const repairAll = async (repair: PostgresRepair): Promise<void> => {
  await repairCounters(repair);
  const feedIds = await repairReports(repair);
  await removeStrayMinutes(repair, feedIds);
  await repairHeads(repair, feedIds);
  await repairPartitions(repair);
  await repairBatches(repair);
  await repairRecords(repair);
  await repairLogs(repair);
};

/** Rows read at once. */
const rowsRead = 1_000;

/** Every row of reports in key order; lets signals through in between. */
async function* readRows({ run, t, options }: PostgresRepair): AsyncGenerator<KeyedRow> {
  const [sum] = await run<{ total: number }>(`SELECT coalesce(sum(reports), 0)::bigint AS total FROM ${t.partitions}`);
  let [feed, ms, done]: [Buffer, number, number] = [Buffer.alloc(0), -1, 0];
  for (;;) {
    const rows = await run<KeyedRow>(
      `SELECT feed_id, ${reportColumns} FROM ${t.reports} WHERE (feed_id, observations) > ($1::bytea, $2::bigint)
       ORDER BY feed_id, observations LIMIT ${rowsRead}`,
      [feed, ms],
    );
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsRead) return;
    [feed, ms, done] = [last.feed_id, last.observations, done + rows.length];
    options.onProgress?.(done, Math.max(done, sum?.total ?? 0));
    await nextTurn();
    options.signal?.throwIfAborted();
  }
}

/** Rows of reports and the minutes of their candles; returns the streams that have intact ones. */
const repairReports = async (repair: PostgresRepair): Promise<ReadonlySet<FeedId>> => {
  const { run, t, options } = repair;
  const signerSets = await readStoredSets(run, t);
  const minutes = createMinuteCheck(repair);
  const feedIds = new Set<FeedId>();
  const [lost, moved]: [KeyedRow[], Map<string, readonly [FeedId, number]>] = [[], new Map()];
  for await (const row of readRows(repair)) {
    const feedId = feedIdOfBytes(row.feed_id);
    let report = isLostReport(row) ? undefined : attempt(() => decodeReport(feedId, row));
    if (report === undefined && isLostReport(row)) lost.push(row);
    else if (report === undefined) {
      const outcome = await repairRow(repair, row, signerSets);
      if (outcome === 'lost') lost.push(row);
      else if (outcome === 'unknown') listUnknown(repair, row);
      else if (outcome.feedId === feedId && outcome.observationsMs === row.observations) report = outcome;
      else {
        const minute = minuteOf(outcome.observationsMs);
        moved.set(`${outcome.feedId}${minute}`, [outcome.feedId, minute]);
        feedIds.add(outcome.feedId);
      }
    }
    if (report === undefined) continue;
    feedIds.add(feedId);
    await minutes.add(report);
  }
  await minutes.end();
  // Their reports may have come back after they were compared.
  if (!options.dryRun) for (const [feedId, minute] of moved.values()) await rebuildMinutes(repair, feedId, [minute]);
  await listLost(repair, options.dryRun ? lost : lost.map((row) => ({ ...row, record: Buffer.alloc(0) })));
  return feedIds;
};
