// Reads reports by their keys from PostgreSQL: those of batches that a process follows.
import type { FeedId } from '@sealpost/protocol';
import type { Run } from './connection.ts';
import type { Partitions } from './partitions.ts';
import {
  bytesList,
  feedBytes,
  numberList,
  numbersOf,
  type ReportKey,
  type ReportLists,
  type ReportRow,
  reportColumns,
  reportLists,
  rowsOfLists,
  textList,
} from './rows.ts';
import type { Tables } from './schema.ts';

/** Reads the rows under keys, in the order asked; undefined where retention has removed one. */
export const createKeyReads = (run: Run, t: Tables, partitions: Partitions) => (keys: readonly ReportKey[]) =>
  partitions.retried(() => readKeys(run, t, partitions, keys));

/** Partitions that a reading of keys names; keys of more are asked of the parent in one statement, since a pool takes only so many. */
const keyTablesMax = 8;

const readKeys = async (run: Run, t: Tables, partitions: Partitions, keys: readonly ReportKey[]) => {
  const near = partitions.known(keys[0]?.observationsMs ?? 0);
  // Those of a batch are most often of one day.
  if (near !== undefined && keys.every(({ observationsMs: ms }) => ms >= near.startMs && ms < near.endMs))
    return readRowsOfKeys(run, near.reports, keys);
  const tables = keys.map(({ observationsMs }) => partitions.known(observationsMs)?.reports ?? t.reports);
  if (new Set(tables).size > keyTablesMax) return readRowsOfKeys(run, t.reports, keys);
  const groups = new Map<string, number[]>();
  for (const [i, table] of tables.entries()) {
    const group = groups.get(table);
    if (group === undefined) groups.set(table, [i]);
    else group.push(i);
  }
  const found: (ReportRow | undefined)[] = keys.map(() => undefined);
  const asked = [...groups].map(async ([table, places]) => {
    const wanted = places.map((i) => keys[i] as ReportKey); // places are indexes of keys
    const rows = await readRowsOfKeys(run, table, wanted);
    for (const [i, row] of rows.entries()) found[places[i] as number] = row; // one each
  });
  await Promise.all(asked);
  return found;
};

/** The rows under keys in a table: each stream is searched once, for all of its keys. */
const readRowsOfKeys = async (
  run: Run,
  table: string,
  keys: readonly ReportKey[],
): Promise<readonly (ReportRow | undefined)[]> => {
  const streams = new Map<FeedId, number[]>();
  for (const { feedId, observationsMs } of keys) {
    const stream = streams.get(feedId);
    if (stream === undefined) streams.set(feedId, [observationsMs]);
    else stream.push(observationsMs);
  }
  const [lists] = await run<ReportLists & { readonly streams: string | null }>(
    `SELECT array_agg(n) AS streams, ${reportLists} FROM (
       SELECT k.n, r.* FROM unnest($1::bytea[], $2::text[]) WITH ORDINALITY AS k(feed_id, observations, n)
       CROSS JOIN LATERAL (SELECT ${reportColumns} FROM ${table}
         WHERE feed_id = k.feed_id AND observations = ANY(k.observations::bigint[])) AS r) AS found`,
    [bytesList([...streams.keys()].map(feedBytes)), textList([...streams.values()].map(numberList))],
  );
  const found = new Map([...streams.keys()].map((feedId) => [feedId, new Map<number, ReportRow>()]));
  const byOrdinal = [...found.values()];
  const ordinals = numbersOf(lists?.streams ?? null);
  // Ordinals count from one.
  for (const [i, row] of rowsOfLists(lists).entries()) byOrdinal[(ordinals[i] ?? 0) - 1]?.set(row.observations, row);
  return keys.map(({ feedId, observationsMs }) => found.get(feedId)?.get(observationsMs));
};
