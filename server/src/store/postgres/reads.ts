// Reads reports from PostgreSQL. A read that fits into one partition names it; what it does not find there it reads from all partitions in one statement, so
// that every answer is of one snapshot.
import assert from 'node:assert/strict';
import type { FeedId } from '@sealpost/protocol';
import type { CandleRange, CandleSlice } from '../candle-rollup.ts';
import type { DamageLog } from '../damage.ts';
import {
  createReportRenderer,
  renderedLength,
  renderReport,
  secondOf,
  wholeSecondsEnd,
} from '../format/rendered-report.ts';
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
  type Window,
} from '../store.ts';
import type { Run } from './connection.ts';
import type { Partitions } from './partitions.ts';
import {
  bytesList,
  decodeReport,
  feedBytes,
  feedIdOfBytes,
  isLostReport,
  notLost,
  numberList,
  type ReportKey,
  type ReportRow,
  readReport,
  reportColumns,
} from './rows.ts';
import type { Tables } from './schema.ts';

const windowOf = ({ valid_from, observations }: Omit<ReportRow, 'record'>): Window => ({
  validFromMs: valid_from,
  observationsMs: observations,
});

const render = (report: StoredReport): RenderedReport => ({
  observationsMs: report.observationsMs,
  json: Buffer.from(renderReport(report), 'latin1'),
});

/** Reports with commas between them, written into one piece of memory. */
const renderReports = (feedId: FeedId, reports: readonly StoredReport[]): Buffer => {
  const length = reports.reduce((sum, one) => sum + 1 + renderedLength(feedId, one, one.fullReport.length), -1);
  const text = Buffer.allocUnsafe(length);
  const writeReport = createReportRenderer(feedId);
  let end = 0;
  for (const report of reports) {
    if (end > 0) end += text.write(',', end, 'latin1');
    end = writeReport(text, end, report, Buffer.from((report.fullReport as Buffer).toString('hex'), 'latin1')); // unpacked just now
  }
  return text;
};

/** Reports that are unpacked, or rendered, before the event loop is free for other work: less than 3 ms. */
const sliceReports = 250;
const otherWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Statements for one reading that finds damaged rows, and rows of each after the first. */
const damagedReadsMax = 16;
const damagedRowsRead = 64;

/** Told of the newest row that a reading found of a stream. */
type Notice = (feedId: FeedId, row: ReportRow) => void;

/** Where to read: statements, tables, and which partitions may be named. */
type Source = {
  readonly run: Run;
  readonly t: Tables;
  readonly partitions: Partitions;
  readonly damage: DamageLog;
  readonly notice: Notice;
};

/** Readings of history, all of them for one or more streams. */
export type HistoryReads = Pick<
  ReportStore,
  'at' | 'page' | 'renderedAt' | 'renderedPage' | 'neighbours' | 'windows' | 'candles'
>;

export const createReportReads = (
  run: Run,
  t: Tables,
  partitions: Partitions,
  damage: DamageLog,
  notice: Notice = () => {},
): HistoryReads => {
  const source: Source = { run, t, partitions, damage, notice };
  const { retried } = partitions;
  const at = (feedIds: readonly FeedId[], seconds: number) => retried(() => readAt(source, feedIds, seconds));
  const pageOf = (feedId: FeedId, fromSeconds: number, limit: number) =>
    retried(() => readPage(source, feedId, fromSeconds, limit));
  return {
    at,
    page: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<ReportPage> => {
      const { reports, more } = await pageOf(feedId, fromSeconds, limit);
      return { reports, more };
    },
    renderedAt: async (feedIds: readonly FeedId[], seconds: number): Promise<readonly (RenderedReport | undefined)[]> =>
      (await at(feedIds, seconds)).map((report) => report && render(report)),
    renderedPage: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<RenderedPage> => {
      const { reports, more, isDamaged } = await pageOf(feedId, fromSeconds, limit);
      const json: Buffer[] = [];
      for (let i = 0; i < reports.length; i += sliceReports) {
        if (i > 0) await otherWork();
        json.push(renderReports(feedId, reports.slice(i, i + sliceReports)));
      }
      return { json, lastMs: reports.at(-1)?.observationsMs, more, ...(isDamaged && { damaged: true }) };
    },
    neighbours: (feedId: FeedId, seconds: number) => readNeighbours(source, feedId, seconds),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number) =>
      readWindows(source, feedId, fromSeconds, toSeconds, limit),
    candles: (feedId: FeedId, range: CandleRange) => readCandles(source, feedId, range),
  };
};

/** Reads the rows under keys, in the order asked; undefined where retention has removed one. */
export const createKeyReads = (run: Run, t: Tables, partitions: Partitions) => (keys: readonly ReportKey[]) =>
  partitions.retried(() => readKeys(run, t, partitions, keys));

const readAt = async (
  source: Source,
  feedIds: readonly FeedId[],
  seconds: number,
): Promise<readonly (StoredReport | undefined)[]> => {
  const { run, t, partitions, damage, notice } = source;
  const found = new Map<FeedId, StoredReport>();
  const damaged: FeedId[] = [];
  const take = (report: StoredReport | undefined): void => {
    if (report !== undefined && secondOf(report.validFromMs) <= seconds) found.set(report.feedId, report);
  };
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
      const report = readReport(damage, feedId, row);
      if (report === undefined) damaged.push(feedId);
      else notice(feedId, row);
      take(report);
    }
    return wanted.filter((feedId) => !seen.has(feedId));
  };
  const all = [...new Set(feedIds)];
  const leaf = partitions.known(seconds * 1_000)?.reports;
  const rest = leaf === undefined ? all : await look(leaf, all);
  if (rest.length > 0) await look(t.reports, rest);
  // A row whose key is damaged may stand before the report that holds.
  for (const feedId of damaged) take((await readIntact(source, feedId, seconds * 1_000, 1)).reports[0]);
  return feedIds.map((feedId) => found.get(feedId));
};

type IntactPage = { readonly reports: readonly StoredReport[]; readonly more: boolean; readonly isDamaged: boolean };

/** A page of what can be read: damaged rows are left out, and the ones that follow take their places. */
const readPage = async (source: Source, feedId: FeedId, fromSeconds: number, limit: number): Promise<IntactPage> => {
  const { reports, damagedMs, isCut } = await readIntact(source, feedId, fromSeconds * 1_000, limit + 1);
  if (isCut && reports.length === 0)
    throw new CorruptRecordError(`${damagedMs.length} reports of ${feedId} from ${fromSeconds} on are damaged`);
  const more = isCut || reports.length > limit;
  const secondAt = (i: number) => reports[i] && secondOf(reports[i].observationsMs);
  const end = reports.length > limit ? wholeSecondsEnd(secondAt, limit) : reports.length;
  // Behind the page they are those of the next one.
  const until = more ? (secondAt(end - 1) ?? 0) : Number.POSITIVE_INFINITY;
  return { reports: reports.slice(0, end), more, isDamaged: damagedMs.some((ms) => secondOf(ms) <= until) };
};

/** At least `count` intact reports observed at or after a moment, or all there are; `isCut` where too many rows are damaged to look further. */
const readIntact = async (source: Source, feedId: FeedId, fromMs: number, count: number) => {
  const { damage, notice } = source;
  const reports: StoredReport[] = [];
  const damagedMs: number[] = [];
  let from = fromMs;
  for (let reads = 0; reads < damagedReadsMax; reads++) {
    const asked = reads === 0 ? count : Math.max(count, damagedRowsRead);
    const rows = await readRows(source, feedId, from, asked);
    let newest: ReportRow | undefined;
    for (const [i, row] of rows.entries()) {
      if (i > 0 && i % sliceReports === 0) await otherWork();
      const report = readReport(damage, feedId, row);
      if (report === undefined) damagedMs.push(row.observations);
      else {
        reports.push(report);
        newest = row;
      }
    }
    if (newest !== undefined) notice(feedId, newest);
    if (reports.length >= count || rows.length < asked) return { reports, damagedMs, isCut: false };
    from = (rows.at(-1)?.observations ?? from) + 1;
  }
  return { reports, damagedMs, isCut: true };
};

const readRows = async (
  { run, t, partitions }: Source,
  feedId: FeedId,
  fromMs: number,
  asked: number,
): Promise<readonly ReportRow[]> => {
  const ask = (table: string) =>
    run<ReportRow>(
      `SELECT ${reportColumns} FROM ${table} WHERE feed_id = $1::bytea AND observations >= $2::bigint
       ORDER BY observations LIMIT $3::int`,
      [feedBytes(feedId), fromMs, asked],
    );
  const leaf = partitions.known(fromMs)?.reports;
  const near = leaf === undefined ? [] : await ask(leaf);
  return near.length >= asked ? near : ask(t.reports);
};

const readNeighbours = async (source: Source, feedId: FeedId, seconds: number): Promise<Neighbours> => {
  const { run, t, damage } = source;
  const ms = seconds * 1_000;
  const ask = async (limit: number) => {
    const rows = await run<ReportRow>(
      `(SELECT ${reportColumns} FROM ${t.reports} WHERE feed_id = $1::bytea AND observations < $2::bigint
        ORDER BY observations DESC LIMIT $3::int)
       UNION ALL
       (SELECT ${reportColumns} FROM ${t.reports} WHERE feed_id = $1::bytea AND observations >= $2::bigint
        ORDER BY observations LIMIT $3::int)`,
      [feedBytes(feedId), ms, limit],
    );
    const read = rows.map((row) => ({ ...windowOf(row), isIntact: readReport(damage, feedId, row) !== undefined }));
    return read.sort((a, b) => a.observationsMs - b.observationsMs);
  };
  const nearest = await ask(1);
  const around = nearest.every(({ isIntact }) => isIntact) ? nearest : await ask(damagedRowsRead);
  const previous = around.findLast(({ observationsMs, isIntact }) => isIntact && observationsMs < ms);
  const next = around.find(({ observationsMs, isIntact }) => isIntact && observationsMs >= ms);
  // What holds here counts as missing only because it cannot be read. Where a damaged row begins is not known.
  const isHeld = next !== undefined && secondOf(next.validFromMs) <= seconds;
  const untilMs = next?.observationsMs ?? Number.POSITIVE_INFINITY;
  const isDamaged =
    !isHeld && around.some((one) => !one.isIntact && one.observationsMs >= ms && one.observationsMs < untilMs);
  return { previous: windowOnly(previous), next: windowOnly(next), ...(isDamaged && { damaged: true }) };
};

const windowOnly = (window: Window | undefined): Window | undefined =>
  window && { validFromMs: window.validFromMs, observationsMs: window.observationsMs };

const readWindows = async (
  { run, t }: Source,
  feedId: FeedId,
  fromSeconds: number,
  toSeconds: number,
  limit: number,
): Promise<readonly Window[]> => {
  const rows = await run<Omit<ReportRow, 'record'>>(
    `SELECT observations, valid_from FROM ${t.reports} WHERE feed_id = $1::bytea AND observations >= $2::bigint
       AND observations < $3::bigint AND ${notLost} ORDER BY observations LIMIT $4::int`,
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
  { from, to, resolution }: CandleRange,
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
  // Damaged keys included: they may be of any length, and before every other.
  const [, feed, ms] = /^0x([0-9a-f]*):(-?\d+)$/.exec(cursor ?? '0x:-1') ?? [];
  assert(feed !== undefined && ms !== undefined, `${cursor} is not a cursor of a scan`);
  const rows = await run<ReportRow & { feed_id: Buffer }>(
    `SELECT feed_id, ${reportColumns} FROM ${t.reports} WHERE (feed_id, observations) > ($1::bytea, $2::bigint)
     ORDER BY feed_id, observations LIMIT $3::int`,
    [Buffer.from(feed, 'hex'), Number(ms), limit],
  );
  const entries = rows.flatMap((row) => (isLostReport(row) ? [] : [checkRow(feedIdOfBytes(row.feed_id), row)]));
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
