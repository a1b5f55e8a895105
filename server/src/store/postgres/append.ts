// Appends a batch of reports to PostgreSQL: one transaction under one lock, so that several nodes can write. It takes the lock before it reads or assigns
// positions and the commit releases it, so positions follow the order of commits and no other window can get in between (D82).
import type { FeedId } from '@sealpost/protocol';
import { judgeReport, type Neighbor } from '../append-rules.ts';
import { mergeRollups, type Rollup, rollUp } from '../candle-rollup.ts';
import { type AppendOutcome, CorruptRecordError, type NewReport, type StoredReport } from '../store.ts';
import type { Run } from './connection.ts';
import { createPartitionTables, type Partition } from './partitions.ts';
import {
  bytesList,
  decodeReport,
  encodeKeys,
  encodeReport,
  feedBytes,
  feedIdOfBytes,
  keyBytes,
  keysStart,
  markColumn,
  markOf,
  numberList,
  type ReportRow,
} from './rows.ts';
import { type Tables, takeLock } from './schema.ts';

export type AppendedBatch = {
  readonly outcomes: readonly AppendOutcome[];
  readonly stored: readonly NewReport[];
  /** Those that are there now, by this batch or before it. */
  readonly present: readonly NewReport[];
  /** Where the stored ones stand in the order of appending; undefined when there is none. */
  readonly place: Place | undefined;
};

/** A batch in the order of appending: the position of its first report, its mark, and that of the batch before it. */
export type Place = { readonly first: number; readonly mark: number; readonly markBefore: number | undefined };

type PartitionOf = (ms: number) => Partition;

export type AppendOptions = {
  /** What the notification of other nodes says, so that this process recognizes its own. */
  readonly origin: string;
  /** Another number for each attempt: what is sent again may get the position that it had before the database lost it. */
  readonly salt: number;
  /** Are all reports compared with what is stored, also those after their stream's newest? */
  readonly comparesAll?: boolean;
};

/**
 * Writes a batch inside a transaction. Reports after their stream's newest are inserted without looking for others in their places. Where one is
 * there, because the record of the newest is damaged, the transaction fails with a unique violation, and is to be repeated with `comparesAll`.
 */
export async function appendBatch(
  run: Run,
  t: Tables,
  partitionOf: PartitionOf,
  batch: readonly NewReport[],
  { origin, salt, comparesAll = false }: AppendOptions,
): Promise<AppendedBatch> {
  // In this order on one connection, without waiting for each other: what is read after the lock is what its last holder committed.
  const [, heads, missing] = await Promise.all([
    takeLock(run, t, 'reports'),
    readHeads(run, t, [...new Set(batch.map(({ feedId }) => feedId))]),
    readMissing(run, t, withNext(partitionOf, [...groupByPartition(partitionOf, batch).keys()])),
  ]);
  // A stream without a newest report is a new one, or its row is damaged.
  const isLate = ({ feedId, validFromMs }: NewReport): boolean =>
    comparesAll || validFromMs <= (heads.get(feedId) ?? Number.POSITIVE_INFINITY);
  const late = batch.filter(isLate);
  const { judge, repairs } = createJudge(await readNeighbours(run, t, late));
  const outcomes: AppendOutcome[] = [];
  const stored: NewReport[] = [];
  const present: NewReport[] = [];
  for (const report of batch) {
    const outcome = judge(report);
    outcomes.push(outcome);
    if (outcome === 'stored') stored.push(report);
    if (outcome === 'stored' || outcome === 'duplicate') present.push(report);
  }
  if (stored.length === 0) {
    await confirmRead(run, t);
    return { outcomes, stored, present, place: undefined };
  }
  const groups = groupByPartition(partitionOf, stored);
  const needed = withNext(partitionOf, [...groups.keys()]);
  await createPartitionTables(
    run,
    t,
    missing.filter(({ startMs }) => needed.has(startMs)),
  );
  const insert = late.length === 0 ? insertNewReports : insertReports;
  const [place] = await Promise.all([
    takePositions(run, t, stored, salt),
    ...[...groups].map(([partition, reports]) => insert(run, partition, reports)),
    ...[...groups].map(([partition, reports]) =>
      countReports(
        run,
        t,
        partition,
        reports.filter((one) => !repairs(one)),
      ),
    ),
    // The minute of a damaged row has its price already.
    ...candleRows(
      partitionOf,
      stored.filter((one) => !repairs(one)),
    ).map(([partition, rows]) => putCandles(run, partition, rows)),
    raiseHeads(run, t, stored),
    run('SELECT pg_notify($1::text, $2::text)', [t.channel, origin]),
  ]);
  return { outcomes, stored, present, place };
}

/** Writes a word, so that the commit waits for the replication of whatever was read before it. */
export async function confirmRead(run: Run, t: Tables): Promise<void> {
  await run(`UPDATE ${t.counters} SET value = value + 1 WHERE name = 'confirmed'`);
}

/** What is decided about one stream in this batch so far. */
type StreamEnd = { newestMs: number; readonly accepted: NewReport[] };

type Judge = {
  readonly judge: (report: NewReport) => AppendOutcome;
  /** Does a report take the place of a damaged row? */
  readonly repairs: (report: NewReport) => boolean;
};

/** Judges reports in order, each with those before it and with the stored ones that it can collide with. */
const createJudge = (neighbours: ReadonlyMap<NewReport, readonly Neighbor[]>): Judge => {
  const streamEnds = new Map<FeedId, StreamEnd>();
  const judge = (report: NewReport): AppendOutcome => {
    const streamEnd = streamEnds.get(report.feedId) ?? { newestMs: -1, accepted: [] };
    streamEnds.set(report.feedId, streamEnd);
    const accepted = report.validFromMs > streamEnd.newestMs ? [] : streamEnd.accepted;
    const near = neighbours.get(report) ?? [];
    const isAlone = accepted.length === 0 && near.length === 0;
    const rejected = isAlone ? undefined : judgeReport(report, [...accepted, ...near]);
    if (rejected !== undefined) return rejected;
    streamEnd.accepted.push(report);
    streamEnd.newestMs = Math.max(streamEnd.newestMs, report.observationsMs);
    return 'stored';
  };
  const repairs = (report: NewReport): boolean =>
    neighbours.get(report)?.some(({ observationsMs }) => observationsMs === report.observationsMs) ?? false;
  return { judge, repairs };
};

const readHeads = async (run: Run, t: Tables, feedIds: readonly FeedId[]): Promise<ReadonlyMap<FeedId, number>> => {
  const rows = await run<{ feed_id: Buffer; observations: number }>(
    `SELECT feed_id, observations FROM ${t.heads} WHERE feed_id = ANY($1::bytea[])`,
    [bytesList(feedIds.map(feedBytes))],
  );
  return new Map(rows.map(({ feed_id, observations }) => [feedIdOfBytes(feed_id), observations]));
};

/**
 * For each report that is not after its stream's newest: the one under its own key, and the first two that end at or after its beginning: two,
 * because one may be damaged, and then counts only under its own key.
 */
const readNeighbours = async (
  run: Run,
  t: Tables,
  late: readonly NewReport[],
): Promise<ReadonlyMap<NewReport, readonly Neighbor[]>> => {
  const found = new Map<NewReport, Neighbor[]>();
  if (late.length === 0) return found;
  const rows = await run<ReportRow & { n: number }>(
    `SELECT k.n, r.observations, r.valid_from, r.record
     FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS k(feed_id, valid_from, observations, n)
     CROSS JOIN LATERAL (
       (SELECT observations, valid_from, record FROM ${t.reports} WHERE feed_id = k.feed_id AND observations = k.observations)
       UNION ALL
       (SELECT observations, valid_from, record FROM ${t.reports} WHERE feed_id = k.feed_id AND observations >= k.valid_from
        ORDER BY observations LIMIT 2)
     ) AS r`,
    [
      bytesList(late.map(({ feedId }) => feedBytes(feedId))),
      numberList(late.map(({ validFromMs }) => validFromMs)),
      numberList(late.map(({ observationsMs }) => observationsMs)),
    ],
  );
  for (const { n, ...row } of rows) {
    const report = late[n - 1] as NewReport; // ordinals count from one
    const neighbor = readNeighbor(report, row);
    if (neighbor !== undefined) found.set(report, [...(found.get(report) ?? []), neighbor]);
  }
  return found;
};

/** Unpacked only under the same key or where windows overlap: of the others the window is enough. */
const readNeighbor = ({ feedId, observationsMs }: NewReport, row: ReportRow): Neighbor | undefined => {
  const window = { validFromMs: row.valid_from, observationsMs: row.observations };
  const isSame = observationsMs === row.observations;
  if (!isSame && row.valid_from > observationsMs) return window;
  try {
    return decodeReport(feedId, row);
  } catch (error) {
    if (error instanceof CorruptRecordError) return isSame ? window : undefined;
    throw error;
  }
};

const groupByPartition = (
  partitionOf: PartitionOf,
  stored: readonly NewReport[],
): ReadonlyMap<Partition, readonly NewReport[]> => {
  const partitions = new Map<number, Partition>();
  const groups = new Map<Partition, NewReport[]>();
  for (const report of stored) {
    const found = partitionOf(report.observationsMs);
    const partition = partitions.get(found.startMs) ?? found;
    partitions.set(partition.startMs, partition);
    const group = groups.get(partition);
    if (group === undefined) groups.set(partition, [report]);
    else group.push(report);
  }
  return groups;
};

/** Partitions by their starts, each with the one after it: the first report of a new day finds its tables made. */
const withNext = (partitionOf: PartitionOf, partitions: readonly Partition[]): ReadonlyMap<number, Partition> =>
  new Map(
    partitions
      .flatMap((partition) => [partition, partitionOf(partition.endMs)])
      .map((partition) => [partition.startMs, partition]),
  );

const readMissing = async (
  run: Run,
  t: Tables,
  wanted: ReadonlyMap<number, Partition>,
): Promise<readonly Partition[]> => {
  const rows = await run<{ start_ms: number }>(
    `SELECT start_ms FROM ${t.partitions} WHERE start_ms = ANY($1::bigint[])`,
    [numberList([...wanted.keys()])],
  );
  const there = new Set(rows.map(({ start_ms }) => start_ms));
  return [...wanted.values()].filter(({ startMs }) => !there.has(startMs));
};

/** Inserts reports under keys that have none. */
const insertNewReports = (run: Run, partition: Partition, reports: readonly StoredReport[]) =>
  insertRows(run, partition, reports, '');

/** Inserts reports, also in the places of damaged rows. */
const insertReports = (run: Run, partition: Partition, reports: readonly StoredReport[]) =>
  insertRows(
    run,
    partition,
    reports,
    'ON CONFLICT (feed_id, observations) DO UPDATE SET valid_from = excluded.valid_from, record = excluded.record',
  );

/** Records go as one value: a list of them would be read digit by digit, with escapes. */
const insertRows = (run: Run, { reports: leaf }: Partition, reports: readonly StoredReport[], onConflict: string) => {
  const records = reports.map(encodeReport);
  const starts: number[] = [];
  let start = 1; // SQL counts from one
  for (const { length } of records) {
    starts.push(start);
    start += length;
  }
  return run(
    `INSERT INTO ${leaf} (feed_id, observations, valid_from, record)
     SELECT substring($1::bytea FROM ${keyBytes} * n::int - ${keyBytes - keysStart} FOR 32), observations, valid_from, substring($2::bytea FROM start FOR bytes)
     FROM unnest($3::bigint[], $4::bigint[], $5::int[], $6::int[]) WITH ORDINALITY AS r(observations, valid_from, start, bytes, n) ${onConflict}`,
    [
      encodeKeys(reports),
      Buffer.concat(records),
      numberList(reports.map(({ observationsMs }) => observationsMs)),
      numberList(reports.map(({ validFromMs }) => validFromMs)),
      numberList(starts),
      numberList(records.map(({ length }) => length)),
    ],
  );
};

const countReports = (run: Run, t: Tables, { startMs }: Partition, reports: readonly StoredReport[]) =>
  run(
    `UPDATE ${t.partitions} SET reports = reports + $2::bigint, report_bytes = report_bytes + $3::bigint WHERE start_ms = $1::bigint`,
    [startMs, reports.length, reports.reduce((sum, { fullReport }) => sum + fullReport.length, 0)],
  );

const raiseHeads = (run: Run, t: Tables, stored: readonly StoredReport[]) => {
  const newest = new Map<FeedId, number>();
  for (const { feedId, observationsMs } of stored)
    newest.set(feedId, Math.max(newest.get(feedId) ?? 0, observationsMs));
  return run(
    `INSERT INTO ${t.heads} AS h SELECT * FROM unnest($1::bytea[], $2::bigint[])
     ON CONFLICT (feed_id) DO UPDATE SET observations = excluded.observations WHERE h.observations < excluded.observations`,
    [bytesList([...newest.keys()].map(feedBytes)), numberList([...newest.values()])],
  );
};

/** What an id of an event has bytes for; a batch above it has a damaged position. */
export const positionMax = 2 ** 48 - 1;

/** Positions after those of all batches, even where the counter is damaged. */
const takePositions = async (run: Run, t: Tables, stored: readonly StoredReport[], salt: number): Promise<Place> => {
  const keys = encodeKeys(stored, salt);
  const [row] = await run<{ first_position: number; before: Buffer | null }>(
    `WITH before AS (SELECT coalesce(max(last_position), 0) AS last FROM ${t.appended} WHERE last_position <= ${positionMax}),
     taken AS (INSERT INTO ${t.counters} AS c (name, value) SELECT 'position', last + $1::bigint FROM before
       ON CONFLICT (name) DO UPDATE SET value = greatest(c.value, (SELECT last FROM before)) + $1::bigint RETURNING value)
     INSERT INTO ${t.appended} AS a (last_position, first_position, keys) SELECT value, value - $1::bigint + 1, $2::bytea FROM taken
     RETURNING first_position, (SELECT ${markColumn} FROM ${t.appended} WHERE last_position = a.first_position - 1) AS before`,
    [stored.length, keys],
  );
  const { first_position, before } = row as { first_position: number; before: Buffer | null }; // what is inserted is returned
  return { first: first_position, mark: markOf(keys), markBefore: before === null ? undefined : markOf(before) };
};

export const minuteMs = 60_000;

type CandleRow = { readonly feedId: FeedId; readonly minute: number; rollup: Rollup };

/** The minutes that stored reports with a price touch, each once, by partition. */
export function candleRows(
  partitionOf: PartitionOf,
  stored: readonly NewReport[],
): readonly (readonly [Partition, readonly CandleRow[]])[] {
  const rows = new Map<string, CandleRow>();
  for (const { feedId, observationsMs, price } of stored) {
    if (price === undefined) continue;
    const minute = Math.floor(observationsMs / minuteMs) * minuteMs;
    const name = `${feedId}${minute}`;
    const rollup = rollUp(observationsMs, price);
    const row = rows.get(name);
    if (row === undefined) rows.set(name, { feedId, minute, rollup });
    else row.rollup = mergeRollups(row.rollup, rollup);
  }
  const partitions = new Map<number, [Partition, CandleRow[]]>();
  for (const row of rows.values()) {
    const partition = partitionOf(row.minute);
    const group = partitions.get(partition.startMs) ?? [partition, []];
    group[1].push(row);
    partitions.set(partition.startMs, group);
  }
  return [...partitions.values()];
}

/** Adds prices to minutes. */
export const putCandles = (run: Run, { candles: leaf }: Partition, rows: readonly CandleRow[]) =>
  run(
    `INSERT INTO ${leaf} AS c (feed_id, minute, first_ms, last_ms, open, high, low, close, reports)
     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[], $9::int[])
     ON CONFLICT (feed_id, minute) DO UPDATE SET
       open = CASE WHEN excluded.first_ms < c.first_ms THEN excluded.open ELSE c.open END,
       close = CASE WHEN excluded.last_ms > c.last_ms THEN excluded.close ELSE c.close END,
       first_ms = least(c.first_ms, excluded.first_ms), last_ms = greatest(c.last_ms, excluded.last_ms),
       high = greatest(c.high, excluded.high), low = least(c.low, excluded.low), reports = c.reports + excluded.reports`,
    [
      bytesList(rows.map(({ feedId }) => feedBytes(feedId))),
      numberList(rows.map(({ minute }) => minute)),
      numberList(rows.map(({ rollup }) => rollup.firstMs)),
      numberList(rows.map(({ rollup }) => rollup.lastMs)),
      numberList(rows.map(({ rollup }) => rollup.open)),
      numberList(rows.map(({ rollup }) => rollup.high)),
      numberList(rows.map(({ rollup }) => rollup.low)),
      numberList(rows.map(({ rollup }) => rollup.close)),
      numberList(rows.map(({ rollup }) => rollup.reports)),
    ],
  );
