// Reads reports from PostgreSQL. A read that fits into one partition names it; what it does not find there it reads from all partitions in one statement, so
// that every answer is of one snapshot.
import assert from 'node:assert/strict';
import type { FeedId } from '@sealpost/protocol';
import type { CandleRange, CandleSlice } from '../candle-rollup.ts';
import type { DamageLog } from '../damage.ts';
import { joinRendered, renderedLength, secondOf, wholeSecondsEnd } from '../format/rendered-report.ts';
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
  containDamage,
  decodeReport,
  feedBytes,
  feedIdOfBytes,
  feedList,
  fullReportBytes,
  isLostReport,
  notLost,
  numbersOf,
  type ReportLists,
  type ReportRow,
  readReport,
  reportColumns,
  reportLists,
  rowsOfLists,
  unpackRow,
  windowOf,
  writerOf,
} from './rows.ts';
import type { Tables } from './schema.ts';

/** Checks and renders rows of several streams side by side: one piece of memory takes less than one for each. */
const renderMoment: OpenMoment<RenderedReport> = (rows) => {
  let length = 0;
  for (const [feedId, row] of rows) length += renderedLength(feedId, windowOf(row), fullReportBytes(row));
  const text = Buffer.allocUnsafe(length);
  let end = 0;
  return (feedId, row) => {
    const { digits } = unpackRow(feedId, row);
    const start = end;
    end = writerOf(feedId)(text, start, windowOf(row), digits);
    return { observationsMs: row.observations, json: text.subarray(start, end) };
  };
};

/** A report that is rendered, with those before it and commas between them, at the beginning of a piece of memory. */
type RenderedRow = { readonly observationsMs: number; readonly text: Buffer; readonly end: number };

/** Checks and renders rows one after the other, without a copy of any in between. */
const createRowRenderer =
  (damage: DamageLog, feedId: FeedId): OpenRows<RenderedRow> =>
  (rows) => {
    const lengths = rows.map((row) => 1 + renderedLength(feedId, windowOf(row), fullReportBytes(row)));
    const text = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + length, 0));
    const writeReport = writerOf(feedId);
    let end = 0;
    return (row) =>
      containDamage(damage, feedId, row, () => {
        const { digits } = unpackRow(feedId, row);
        if (end > 0) text[end++] = comma;
        end = writeReport(text, end, windowOf(row), digits);
        return { observationsMs: row.observations, text, end };
      });
  };

const comma = ','.charCodeAt(0);

/** The pieces of memory that rendered rows are in, each up to the last of them. */
const piecesOf = (rows: readonly RenderedRow[]): readonly Buffer[] => {
  const ends = new Map(rows.map(({ text, end }) => [text, end]));
  return [...ends].map(([text, end]) => text.subarray(0, end));
};

/** Reports that are unpacked, or rendered, before the event loop is free for other work: less than 3 ms. */
const sliceReports = 250;
const otherWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Statements for one reading that finds damaged rows, and rows of each after the first. */
const damagedReadsMax = 16;
const damagedRowsRead = 64;

/** Given some rows, reads each of them in turn; undefined where it is damaged or lost. */
type OpenRows<T> = (rows: readonly ReportRow[]) => (row: ReportRow) => T | undefined;

/** Given the rows of several streams, reads each of them in turn; throws a CorruptRecordError where it is damaged. */
type OpenMoment<T> = (rows: ReadonlyMap<FeedId, ReportRow>) => (feedId: FeedId, row: ReportRow) => T;

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
  const decodeRows =
    (feedId: FeedId): OpenRows<StoredReport> =>
    () =>
    (row) =>
      readReport(damage, feedId, row);
  return {
    at: (feedIds: readonly FeedId[], seconds: number) =>
      retried(() => readAt(source, feedIds, seconds, () => decodeReport)),
    page: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<ReportPage> => {
      const open = decodeRows(feedId);
      const { reports, more } = await retried(() => readPage(source, { feedId, fromSeconds, limit, open }));
      return { reports, more };
    },
    renderedAt: (feedIds: readonly FeedId[], seconds: number) =>
      retried(() => readAt(source, feedIds, seconds, renderMoment)),
    renderedPage: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<RenderedPage> => {
      const open = createRowRenderer(damage, feedId);
      const { reports, more, isDamaged } = await retried(() => readPage(source, { feedId, fromSeconds, limit, open }));
      return {
        json: joinRendered(piecesOf(reports)),
        lastMs: reports.at(-1)?.observationsMs,
        more,
        ...(isDamaged && { damaged: true }),
      };
    },
    neighbours: (feedId: FeedId, seconds: number) => readNeighbours(source, feedId, seconds),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number) =>
      readWindows(source, feedId, fromSeconds, toSeconds, limit),
    candles: (feedId: FeedId, range: CandleRange) => readCandles(source, feedId, range),
  };
};

/** For each stream the row that is valid at a second, as `open` reads it; undefined where there is none. */
const readAt = async <T>(
  source: Source,
  feedIds: readonly FeedId[],
  seconds: number,
  open: OpenMoment<T>,
): Promise<readonly (T | undefined)[]> => {
  const { run, t, partitions, damage, notice } = source;
  const found = new Map<FeedId, T>();
  const damaged: FeedId[] = [];
  const take = (feedId: FeedId, { valid_from }: ReportRow, report: T): void => {
    if (secondOf(valid_from) <= seconds) found.set(feedId, report);
  };
  /** Returns those that have no report from that second on in a table. */
  const look = async (table: string, wanted: readonly FeedId[]): Promise<readonly FeedId[]> => {
    const rows = await readFirstRows(run, table, wanted, seconds * 1_000);
    const read = open(rows);
    for (const [feedId, row] of rows) {
      const report = containDamage(damage, feedId, row, () => read(feedId, row));
      if (report === undefined) damaged.push(feedId);
      else {
        notice(feedId, row);
        take(feedId, row, report);
      }
    }
    if (rows.size === wanted.length) return [];
    return wanted.filter((feedId) => !rows.has(feedId));
  };
  const all = [...new Set(feedIds)];
  const leaf = partitions.known(seconds * 1_000)?.reports;
  const rest = leaf === undefined ? all : await look(leaf, all);
  if (rest.length > 0) await look(t.reports, rest);
  // A row whose key is damaged may stand before the report that holds.
  for (const feedId of damaged) {
    const openRows: OpenRows<{ readonly row: ReportRow; readonly report: T }> = () => (row) =>
      containDamage(damage, feedId, row, () => ({ row, report: open(new Map([[feedId, row]]))(feedId, row) }));
    const [intact] = (await readIntact(source, feedId, seconds * 1_000, 1, openRows)).reports;
    if (intact !== undefined) take(feedId, intact.row, intact.report);
  }
  return feedIds.map((feedId) => found.get(feedId));
};

/** The first row of each stream at or after a moment in a table; streams without one are left out. */
const readFirstRows = async (
  run: Run,
  table: string,
  feedIds: readonly FeedId[],
  fromMs: number,
): Promise<ReadonlyMap<FeedId, ReportRow>> => {
  const [lists] = await run<ReportLists & { readonly streams: string | null }>(
    `SELECT array_agg(n) AS streams, ${reportLists} FROM (
       SELECT k.n, r.* FROM unnest($1::bytea[]) WITH ORDINALITY AS k(feed_id, n)
       CROSS JOIN LATERAL (SELECT ${reportColumns} FROM ${table} WHERE feed_id = k.feed_id AND observations >= $2::bigint
         ORDER BY observations LIMIT 1) AS r) AS found`,
    [feedList(feedIds), fromMs],
  );
  const ordinals = numbersOf(lists?.streams ?? null);
  const rows = new Map<FeedId, ReportRow>();
  for (const [i, row] of rowsOfLists(lists).entries()) rows.set(feedIds[(ordinals[i] ?? 0) - 1] as FeedId, row); // ordinals count from one
  return rows;
};

type IntactPage<T> = { readonly reports: readonly T[]; readonly more: boolean; readonly isDamaged: boolean };

type PageRead<T> = {
  readonly feedId: FeedId;
  readonly fromSeconds: number;
  readonly limit: number;
  readonly open: OpenRows<T>;
};

/** A page of what can be read: damaged rows are left out, and the ones that follow take their places. */
const readPage = async <T extends { readonly observationsMs: number }>(
  source: Source,
  { feedId, fromSeconds, limit, open }: PageRead<T>,
): Promise<IntactPage<T>> => {
  const { reports, damagedMs, isCut } = await readIntact(source, feedId, fromSeconds * 1_000, limit + 1, open);
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
const readIntact = async <T>(source: Source, feedId: FeedId, fromMs: number, count: number, open: OpenRows<T>) => {
  const reports: T[] = [];
  const damagedMs: number[] = [];
  let from = fromMs;
  for (let reads = 0; reads < damagedReadsMax; reads++) {
    const asked = reads === 0 ? count : Math.max(count, damagedRowsRead);
    const rows = await readRows(source, feedId, from, asked);
    let newest: ReportRow | undefined;
    for (let i = 0; i < rows.length; i += sliceReports) {
      if (i > 0) await otherWork();
      const slice = rows.slice(i, i + sliceReports);
      const read = open(slice);
      for (const row of slice) {
        const report = read(row);
        if (report === undefined) damagedMs.push(row.observations);
        else {
          reports.push(report);
          newest = row;
        }
      }
    }
    if (newest !== undefined) source.notice(feedId, newest);
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
  const ask = async (table: string) => {
    const [lists] = await run<ReportLists>(
      `SELECT ${reportLists} FROM (SELECT ${reportColumns} FROM ${table} WHERE feed_id = $1::bytea AND observations >= $2::bigint
       ORDER BY observations LIMIT $3::int) AS page`,
      [feedBytes(feedId), fromMs, asked],
    );
    return rowsOfLists(lists);
  };
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
