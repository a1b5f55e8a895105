// Owns reading reports from PostgreSQL. A reading that fits into one partition names it; what it does not find there is asked of all
// of them in one statement, so that every answer is of one moment.
import type { FeedId } from '@sealpost/protocol';
import type { CandleSlice, CandleSpan } from './candle-rollup.ts';
import type { Run } from './postgres-connection.ts';
import type { Partitions } from './postgres-partitions.ts';
import {
  bytesList,
  decodeReport,
  feedBytes,
  feedIdOfBytes,
  numberList,
  type ReportKey,
  type ReportRow,
  reportColumns,
} from './postgres-rows.ts';
import type { Tables } from './postgres-schema.ts';
import { createReportWriter, renderedLength, renderReport, secondOf, wholeSecondsEnd } from './rendered-report.ts';
import {
  CorruptRecordError,
  type Neighbours,
  type RenderedPage,
  type RenderedReport,
  type ReportPage,
  type ReportStore,
  type ScanCursor,
  type ScannedReport,
  type StoredReport,
  StoreError,
  type Window,
} from './store.ts';

const windowOf = ({ valid_from, observations }: Omit<ReportRow, 'record'>): Window => ({
  validFromMs: valid_from,
  observationsMs: observations,
});

const render = (report: StoredReport): RenderedReport => ({
  observationsMs: report.observationsMs,
  json: Buffer.from(renderReport(report), 'latin1'),
});

/** Reports with commas between them, written into one piece of memory. */
const renderRows = (feedId: FeedId, rows: readonly ReportRow[]): Buffer => {
  const reports = rows.map((row) => decodeReport(feedId, row));
  const length = reports.reduce((sum, one) => sum + 1 + renderedLength(feedId, one, one.fullReport.length), -1);
  const text = Buffer.allocUnsafe(length);
  const writeReport = createReportWriter(feedId);
  let end = 0;
  for (const report of reports) {
    if (end > 0) end += text.write(',', end, 'latin1');
    end = writeReport(text, end, report, Buffer.from((report.fullReport as Buffer).toString('hex'), 'latin1')); // unpacked just now
  }
  return text;
};

/** Rows that are rendered before others get their turn: some 3 ms. */
const renderedSlice = 250;

/** Told of the newest row that a reading found of a stream. */
type Notice = (feedId: FeedId, row: ReportRow) => void;

/** Where to read: statements, tables, and which partitions may be named. */
type Source = { readonly run: Run; readonly t: Tables; readonly partitions: Partitions; readonly notice: Notice };

/** Readings of history, all of them for one or more streams. */
export type HistoryReads = Pick<
  ReportStore,
  'at' | 'page' | 'renderedAt' | 'renderedPage' | 'neighbours' | 'windows' | 'candles'
>;

export const createReportReads = (
  run: Run,
  t: Tables,
  partitions: Partitions,
  notice: Notice = () => {},
): HistoryReads => {
  const source: Source = { run, t, partitions, notice };
  const { retried } = partitions;
  const at = (feedIds: readonly FeedId[], seconds: number) => retried(() => readAt(source, feedIds, seconds));
  const pageRows = (feedId: FeedId, fromSeconds: number, limit: number) =>
    retried(() => readPage(source, feedId, fromSeconds, limit));
  return {
    at,
    page: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<ReportPage> => {
      const { rows, more } = await pageRows(feedId, fromSeconds, limit);
      return { reports: rows.map((row) => decodeReport(feedId, row)), more };
    },
    renderedAt: async (feedIds: readonly FeedId[], seconds: number): Promise<readonly (RenderedReport | undefined)[]> =>
      (await at(feedIds, seconds)).map((report) => report && render(report)),
    renderedPage: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<RenderedPage> => {
      const { rows, more } = await pageRows(feedId, fromSeconds, limit);
      const json: Buffer[] = [];
      for (let i = 0; i < rows.length; i += renderedSlice) {
        if (i > 0) await new Promise((resolve) => setImmediate(resolve));
        json.push(renderRows(feedId, rows.slice(i, i + renderedSlice)));
      }
      return { json, lastMs: rows.at(-1)?.observations, more };
    },
    neighbours: (feedId: FeedId, seconds: number) => readNeighbours(source, feedId, seconds),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number) =>
      readWindows(source, feedId, fromSeconds, toSeconds, limit),
    candles: (feedId: FeedId, span: CandleSpan) => readCandles(source, feedId, span),
  };
};

/** Reads the rows under keys, in the order asked; undefined where retention has removed one. */
export const createKeyReads = (run: Run, t: Tables, partitions: Partitions) => (keys: readonly ReportKey[]) =>
  partitions.retried(() => readKeys(run, t, partitions, keys));

const readAt = async (
  { run, t, partitions, notice }: Source,
  feedIds: readonly FeedId[],
  seconds: number,
): Promise<readonly (StoredReport | undefined)[]> => {
  const found = new Map<FeedId, StoredReport>();
  /** Returns those that have no report from that second on in a table. */
  const look = async (table: string, wanted: readonly FeedId[]): Promise<readonly FeedId[]> => {
    const rows = await run<ReportRow & { n: number }>(
      `SELECT k.n, r.* FROM unnest($1::bytea[]) WITH ORDINALITY AS k(feed_id, n)
       CROSS JOIN LATERAL (SELECT ${reportColumns} FROM ${table} WHERE feed_id = k.feed_id AND observations >= $2::bigint
         ORDER BY observations LIMIT 1) AS r`,
      [bytesList(wanted.map(feedBytes)), seconds * 1_000],
    );
    const seen = new Set<FeedId>();
    for (const row of rows) {
      const feedId = wanted[row.n - 1] as FeedId; // ordinals count from one
      seen.add(feedId);
      notice(feedId, row);
      if (secondOf(row.valid_from) <= seconds) found.set(feedId, decodeReport(feedId, row));
    }
    return wanted.filter((feedId) => !seen.has(feedId));
  };
  const all = [...new Set(feedIds)];
  const leaf = partitions.known(seconds * 1_000)?.reports;
  const rest = leaf === undefined ? all : await look(leaf, all);
  if (rest.length > 0) await look(t.reports, rest);
  return feedIds.map((feedId) => found.get(feedId));
};

const readPage = async (
  { run, t, partitions, notice }: Source,
  feedId: FeedId,
  fromSeconds: number,
  limit: number,
): Promise<{ readonly rows: readonly ReportRow[]; readonly more: boolean }> => {
  const ask = (table: string) =>
    run<ReportRow>(
      `SELECT ${reportColumns} FROM ${table} WHERE feed_id = $1::bytea AND observations >= $2::bigint
       ORDER BY observations LIMIT $3::int`,
      [feedBytes(feedId), fromSeconds * 1_000, limit + 1],
    );
  const leaf = partitions.known(fromSeconds * 1_000)?.reports;
  const near = leaf === undefined ? [] : await ask(leaf);
  const rows = near.length > limit ? near : await ask(t.reports);
  const more = rows.length > limit;
  const last = rows.at(-1);
  if (last !== undefined) notice(feedId, last);
  const secondAt = (i: number) => rows[i] && secondOf(rows[i].observations);
  const end = more ? wholeSecondsEnd(secondAt, limit) : rows.length;
  return { rows: rows.slice(0, end), more };
};

const readNeighbours = async ({ run, t }: Source, feedId: FeedId, seconds: number): Promise<Neighbours> => {
  const rows = await run<Omit<ReportRow, 'record'>>(
    `(SELECT observations, valid_from FROM ${t.reports} WHERE feed_id = $1::bytea AND observations < $2::bigint
      ORDER BY observations DESC LIMIT 1)
     UNION ALL
     (SELECT observations, valid_from FROM ${t.reports} WHERE feed_id = $1::bytea AND observations >= $2::bigint
      ORDER BY observations LIMIT 1)`,
    [feedBytes(feedId), seconds * 1_000],
  );
  const windows = rows.map(windowOf);
  return {
    previous: windows.find(({ observationsMs }) => observationsMs < seconds * 1_000),
    next: windows.find(({ observationsMs }) => observationsMs >= seconds * 1_000),
  };
};

const readWindows = async (
  { run, t }: Source,
  feedId: FeedId,
  fromSeconds: number,
  toSeconds: number,
  limit: number,
): Promise<readonly Window[]> => {
  const rows = await run<Omit<ReportRow, 'record'>>(
    `SELECT observations, valid_from FROM ${t.reports} WHERE feed_id = $1::bytea AND observations >= $2::bigint
       AND observations < $3::bigint ORDER BY observations LIMIT $4::int`,
    [feedBytes(feedId), fromSeconds * 1_000, (toSeconds + 1) * 1_000, limit],
  );
  return rows.map(windowOf);
};

type CandleRow = { readonly [price in 'open' | 'high' | 'low' | 'close']: string } & {
  readonly start: number;
  readonly reports: number;
};

/** The database merges minutes into buckets: at most 1,440 rows come here, whatever the resolution. */
const readCandles = async (
  { run, t }: Source,
  feedId: FeedId,
  { from, to, resolution }: CandleSpan,
): Promise<CandleSlice> => {
  const rows = await run<CandleRow>(
    `SELECT minute / $4::bigint * $4::bigint AS start, (array_agg(open ORDER BY minute))[1] AS open, max(high) AS high, min(low) AS low,
       (array_agg(close ORDER BY minute DESC))[1] AS close, sum(reports)::int AS reports
     FROM ${t.candles} WHERE feed_id = $1::bytea AND minute >= $2::bigint AND minute <= $3::bigint GROUP BY 1 ORDER BY 1`,
    [feedBytes(feedId), from * 1_000, to * 1_000, resolution * 1_000],
  );
  const candles = rows.map(({ start, open, high, low, close, reports }) => ({
    start: start / 1_000,
    open: BigInt(open),
    high: BigInt(high),
    low: BigInt(low),
    close: BigInt(close),
    reports,
  }));
  return { candles };
};

/** Partitions that a reading of keys names; keys of more are asked of the parent in one statement, since a pool takes only so many. */
const keyTablesMax = 8;

const readKeys = async (run: Run, t: Tables, partitions: Partitions, keys: readonly ReportKey[]) => {
  const found: (ReportRow | undefined)[] = keys.map(() => undefined);
  const tables = keys.map(({ observationsMs }) => partitions.known(observationsMs)?.reports ?? t.reports);
  const isNear = new Set(tables).size <= keyTablesMax;
  const groups = new Map<string, number[]>();
  for (const [i, near] of tables.entries()) {
    const table = isNear ? near : t.reports;
    const group = groups.get(table);
    if (group === undefined) groups.set(table, [i]);
    else group.push(i);
  }
  const asked = [...groups].map(async ([table, places]) => {
    const wanted = places.map((i) => keys[i] as ReportKey); // places are indexes of keys
    const rows = await run<ReportRow & { n: number }>(
      `SELECT k.n, r.* FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS k(feed_id, observations, n)
       CROSS JOIN LATERAL (SELECT ${reportColumns} FROM ${table} WHERE feed_id = k.feed_id AND observations = k.observations) AS r`,
      [
        bytesList(wanted.map(({ feedId }) => feedBytes(feedId))),
        numberList(wanted.map(({ observationsMs }) => observationsMs)),
      ],
    );
    for (const row of rows) found[places[row.n - 1] as number] = row; // ordinals count from one
  });
  await Promise.all(asked);
  return found;
};

/** Every row in key order after a cursor, checked. */
export const scanReports = async (run: Run, t: Tables, cursor: ScanCursor | undefined, limit: number) => {
  const [, feed, ms] = /^(0x[0-9a-f]{64}):(\d+)$/.exec(cursor ?? `0x${'0'.repeat(64)}:0`) ?? [];
  if (feed === undefined || ms === undefined)
    throw new StoreError('store_corrupt', `${cursor} is no cursor of a scan.`);
  const rows = await run<ReportRow & { feed_id: Buffer }>(
    `SELECT feed_id, ${reportColumns} FROM ${t.reports} WHERE (feed_id, observations) > ($1::bytea, $2::bigint)
     ORDER BY feed_id, observations LIMIT $3::int`,
    [Buffer.from(feed.slice(2), 'hex'), Number(ms), limit],
  );
  const entries = rows.map((row) => checkRow(feedIdOfBytes(row.feed_id), row));
  const last = rows.at(-1);
  return rows.length < limit || last === undefined
    ? { entries }
    : { entries, next: `${feedIdOfBytes(last.feed_id)}:${last.observations}` };
};

const checkRow = (feedId: FeedId, row: ReportRow): ScannedReport => {
  try {
    return { report: decodeReport(feedId, row) };
  } catch (error) {
    if (error instanceof CorruptRecordError)
      return {
        error,
        table: 'reports',
        key: `${feedId}/${row.observations}`,
        feedId,
        observationsMs: row.observations,
      };
    throw error;
  }
};
