// Reads reports from PostgreSQL. A read that fits into one partition names it; what it does not find there it reads from all partitions in one statement, so
// that every answer is of one snapshot.
import assert from 'node:assert/strict';
import type { FeedId } from '@sealpost/protocol';
import type { Candle, CandleRange } from '../candle-rollup.ts';
import type { DamageLog } from '../damage.ts';
import { joinRendered, secondOf, wholeSecondsEnd } from '../format/rendered-report.ts';
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
import type { Pool, Run } from './connection.ts';
import type { Partitions } from './partitions.ts';
import {
  decodeHexRow,
  decodeReport,
  digitsOf,
  feedBytes,
  feedIdOfBytes,
  feedList,
  type HexRow,
  hexRowOf,
  numberAt,
  numberDigits,
  numberList,
  placeOf,
  type ReportKey,
  type ReportRow,
  readReport,
  renderedRoom,
  renderRow,
  reportColumns,
  reportValue,
  textList,
  windowOf,
} from './rows.ts';
import type { Tables } from './schema.ts';

/** Reads rows that came together, each with its stream, in turn; throws a CorruptRecordError where one is damaged. */
type OpenRows<T> = (rows: readonly (readonly [FeedId, HexRow])[]) => (feedId: FeedId, row: HexRow) => T;

const openStored: OpenRows<StoredReport> = () => decodeHexRow;

/** A rendered report, with those before it and commas between them, in a piece of memory. */
type InText = RenderedReport & { readonly text: Buffer };

/** Checks and renders rows one after the other into one piece of memory. */
const openRendered: OpenRows<InText> = (rows) => {
  const text = Buffer.allocUnsafe(renderedRoom(rows));
  let end = 0;
  return (feedId, row) => {
    const start = end === 0 ? 0 : end + 1;
    const report = renderRow(feedId, row, text, start);
    if (end > 0) text[end] = comma;
    end = start + report.json.length;
    return { ...report, text };
  };
};

const comma = ','.charCodeAt(0);

/** Rendered reports with commas between them: the memory that they are in, up to the last of them, where it is one piece. */
const joined = (reports: readonly InText[]): Buffer => {
  const ends = new Map(reports.map(({ text, json }) => [text, json.byteOffset - text.byteOffset + json.length]));
  const pieces = [...ends].map(([text, end]) => text.subarray(0, end));
  const [only] = pieces;
  return only !== undefined && pieces.length === 1 ? only : joinRendered(pieces);
};

/** Statements for one reading that finds damaged rows, and rows of each after the first. */
const damagedReadsMax = 16;
const damagedRowsRead = 64;

/** Told of the newest row that a reading found of a stream. */
type Notice = (feedId: FeedId, row: HexRow) => void;

/** Where to read: statements, tables, and which partitions may be named. */
type Source = Pick<Pool, 'run' | 'runRaw'> & {
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

export function createReportReads(
  { run, runRaw }: Pick<Pool, 'run' | 'runRaw'>,
  t: Tables,
  partitions: Partitions,
  damage: DamageLog,
  notice: Notice = () => {},
): HistoryReads {
  const source: Source = { run, runRaw, t, partitions, damage, notice };
  const { retried, known } = partitions;
  const readOne = createMomentReads(source);
  const readMany = <T>(feedIds: readonly FeedId[], seconds: number, open: OpenRows<T>) => {
    const moments = feedIds.map((feedId) => ({ feedId, seconds }));
    return retried(() => readAt(source, known(seconds * 1_000)?.reports, moments, open));
  };
  return {
    at: (feedIds: readonly FeedId[], seconds: number) => readMany(feedIds, seconds, openStored),
    page: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<ReportPage> => {
      const page = await retried(() => readPage(source, { feedId, fromSeconds, limit, open: openStored }));
      return { reports: page.reports, more: page.more };
    },
    renderedAt: async (feedIds: readonly FeedId[], seconds: number) => {
      const [only] = feedIds;
      return only !== undefined && feedIds.length === 1
        ? [await readOne(only, seconds)]
        : readMany(feedIds, seconds, openRendered);
    },
    renderedPage: async (feedId: FeedId, fromSeconds: number, limit: number): Promise<RenderedPage> => {
      const page = await retried(() => readPage(source, { feedId, fromSeconds, limit, open: openRendered }));
      return {
        json: joined(page.reports),
        lastMs: page.reports.at(-1)?.observationsMs,
        more: page.more,
        ...(page.isDamaged && { damaged: true }),
      };
    },
    neighbours: (feedId: FeedId, seconds: number) => readNeighbours(source, feedId, seconds),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number) =>
      readWindows(source, feedId, fromSeconds, toSeconds, limit),
    candles: (feedId: FeedId, range: CandleRange) => readCandles(source, feedId, range),
  };
}

/** What `read` makes of a row; a damaged one is noted, and undefined. */
const contain = <T>({ damage }: Source, feedId: FeedId, row: HexRow, read: ReturnType<OpenRows<T>>): T | undefined => {
  try {
    return read(feedId, row);
  } catch (error) {
    return damage.contain(placeOf(feedId, row.observations), (): T => {
      throw error;
    });
  }
};

/** A stream and a second, of which the row is wanted that is valid then. */
type Moment = { readonly feedId: FeedId; readonly seconds: number };

/** For each moment the row that is valid, as `open` reads it; undefined where there is none. All are in one partition, `leaf`, where that is known. */
const readAt = async <T>(
  source: Source,
  leaf: string | undefined,
  moments: readonly Moment[],
  open: OpenRows<T>,
): Promise<readonly (T | undefined)[]> => {
  const found: (T | undefined)[] = moments.map(() => undefined);
  const damaged: number[] = [];
  const take = (i: number, { valid_from }: HexRow, report: T): void => {
    if (secondOf(valid_from) <= (moments[i] as Moment).seconds) found[i] = report; // a number of one of them
  };
  /** Returns those that have no report from that second on in a table. */
  const look = async (table: string, wanted: readonly number[]): Promise<readonly number[]> => {
    const asked = wanted.map((i) => moments[i] as Moment); // as above
    const rows = await readFirstRows(source, table, asked);
    const read = open(rows.map(([i, row]) => [(asked[i] as Moment).feedId, row])); // as above
    for (const [i, row] of rows) {
      const { feedId } = asked[i] as Moment; // as above
      const number = wanted[i] as number; // one for each that was asked
      const report = contain(source, feedId, row, read);
      if (report === undefined) damaged.push(number);
      else {
        source.notice(feedId, row);
        take(number, row, report);
      }
    }
    if (rows.length === wanted.length) return [];
    const there = new Set(rows.map(([i]) => i));
    return wanted.filter((_, i) => !there.has(i));
  };
  const all = moments.map((_, i) => i);
  const rest = leaf === undefined ? all : await look(leaf, all);
  if (rest.length > 0) await look(source.t.reports, rest);
  // A row whose key is damaged may stand before the report that holds.
  for (const i of damaged) {
    const { feedId, seconds } = moments[i] as Moment; // as above
    const [intact] = (await readIntact(source, feedId, seconds * 1_000, 1, open)).found;
    if (intact !== undefined) take(i, intact.row, intact.report);
  }
  return found;
};

/** The first row at or after each moment in a table, with the number of the moment; those without one are left out. */
const readFirstRows = async (
  { runRaw }: Source,
  table: string,
  moments: readonly Moment[],
): Promise<readonly (readonly [number, HexRow])[]> => {
  const [only] = moments;
  if (only !== undefined && moments.length === 1) {
    const rows = await runRaw<Value>(selectRows(table, '1'), [feedBytes(only.feedId), only.seconds * 1_000]);
    return rows.map(([value]) => [0, hexRowOf(digitsOf(value))]);
  }
  const rows = await runRaw<Value>(
    `SELECT int8send(k.n) || r.value FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS k(feed_id, ms, n)
     CROSS JOIN LATERAL (SELECT ${reportValue} AS value FROM ${table} WHERE feed_id = k.feed_id AND observations >= k.ms
       ORDER BY observations LIMIT 1) AS r`,
    [feedList(moments.map(({ feedId }) => feedId)), numberList(moments.map(({ seconds }) => seconds * 1_000))],
  );
  return rows.map(([value]) => {
    const digits = digitsOf(value);
    return [numberAt(digits, 0) - 1, hexRowOf(digits.subarray(numberDigits))]; // ordinals count from one
  });
};

type Value = readonly [value: Buffer];

const selectRows = (table: string, limit: string): string =>
  `SELECT ${reportValue} FROM ${table} WHERE feed_id = $1::bytea AND observations >= $2::bigint ORDER BY observations LIMIT ${limit}`;

type Wanted = {
  readonly moment: Moment;
  readonly give: (found: InText | undefined) => void;
  readonly fail: (error: unknown) => void;
};

/** Moments of one statement at most: as many as the streams of a bulk read. */
const momentsMax = 230;

/** Reads single moments. Those that requests of one turn of the event loop want from a partition are one statement: alone, each takes the database three times as long (D287). */
const createMomentReads = (source: Source) => {
  const waiting = new Map<string | undefined, Wanted[]>();
  const leafAt = (seconds: number) => source.partitions.known(seconds * 1_000)?.reports;
  const send = (wanted: readonly Wanted[]): void => {
    const moments = wanted.map(({ moment }) => moment);
    // Found again at a retry: a partition may be gone.
    const read = () => readAt(source, leafAt(moments[0]?.seconds ?? 0), moments, openRendered);
    source.partitions.retried(read).then(
      (found) => {
        for (const [i, { give }] of wanted.entries()) give(found[i]);
      },
      (error: unknown) => {
        for (const { fail } of wanted) fail(error);
      },
    );
  };
  const sendAll = (): void => {
    const groups = [...waiting];
    waiting.clear();
    for (const [, wanted] of groups)
      for (let i = 0; i < wanted.length; i += momentsMax) send(wanted.slice(i, i + momentsMax));
  };
  return (feedId: FeedId, seconds: number): Promise<InText | undefined> =>
    new Promise((give, fail) => {
      const leaf = leafAt(seconds);
      const wanted = { moment: { feedId, seconds }, give, fail };
      if (waiting.size === 0) setImmediate(sendAll);
      const others = waiting.get(leaf);
      if (others === undefined) waiting.set(leaf, [wanted]);
      else others.push(wanted);
    });
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
  const { found, damagedMs, isCut } = await readIntact(source, feedId, fromSeconds * 1_000, limit + 1, open);
  if (isCut && found.length === 0)
    throw new CorruptRecordError(`${damagedMs.length} reports of ${feedId} from ${fromSeconds} on are damaged`);
  const reports = found.map(({ report }) => report);
  const more = isCut || reports.length > limit;
  const secondAt = (i: number) => reports[i] && secondOf(reports[i].observationsMs);
  const end = reports.length > limit ? wholeSecondsEnd(secondAt, limit) : reports.length;
  // Behind the page they are those of the next one.
  const until = more ? (secondAt(end - 1) ?? 0) : Number.POSITIVE_INFINITY;
  return { reports: reports.slice(0, end), more, isDamaged: damagedMs.some((ms) => secondOf(ms) <= until) };
};

/** At least `count` intact reports observed at or after a moment, or all there are; `isCut` where too many rows are damaged to look further. */
const readIntact = async <T>(source: Source, feedId: FeedId, fromMs: number, count: number, open: OpenRows<T>) => {
  const found: { readonly row: HexRow; readonly report: T }[] = [];
  const damagedMs: number[] = [];
  let from = fromMs;
  for (let reads = 0; reads < damagedReadsMax; reads++) {
    const asked = reads === 0 ? count : Math.max(count, damagedRowsRead);
    const rows = await readRows(source, feedId, from, asked);
    const read = open(rows.map((row) => [feedId, row]));
    for (const row of rows) {
      const report = contain(source, feedId, row, read);
      if (report === undefined) damagedMs.push(row.observations);
      else found.push({ row, report });
    }
    const newest = found.at(-1)?.row;
    if (newest !== undefined) source.notice(feedId, newest);
    const last = rows.at(-1);
    if (found.length >= count || last === undefined || rows.length < asked) return { found, damagedMs, isCut: false };
    from = last.observations + 1;
  }
  return { found, damagedMs, isCut: true };
};

const readRows = async (
  { runRaw, t, partitions }: Source,
  feedId: FeedId,
  fromMs: number,
  asked: number,
): Promise<readonly HexRow[]> => {
  const ask = async (table: string) => {
    const rows = await runRaw<Value>(selectRows(table, '$3::int'), [feedBytes(feedId), fromMs, asked]);
    return rows.map(([value]) => hexRowOf(digitsOf(value)));
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
  { from, to, resolution }: CandleRange,
): Promise<readonly Candle[]> => {
  const rows = await run<CandleRow>(
    `SELECT minute / $4::bigint * $4::bigint AS start, (array_agg(open ORDER BY minute))[1] AS open, max(high) AS high, min(low) AS low,
       (array_agg(close ORDER BY minute DESC))[1] AS close, sum(reports)::int AS reports
     FROM ${t.candles} WHERE feed_id = $1::bytea AND minute >= $2::bigint AND minute <= $3::bigint GROUP BY 1 ORDER BY 1`,
    [feedBytes(feedId), from * 1_000, to * 1_000, resolution * 1_000],
  );
  return rows.map(({ start, open, high, low, close, reports }) => ({
    start: start / 1_000,
    open: BigInt(open),
    high: BigInt(high),
    low: BigInt(low),
    close: BigInt(close),
    reports,
  }));
};

/** Reads the rows under keys, in the order asked; undefined where retention has removed one. */
export const createKeyReads =
  (run: Run, t: Tables, partitions: Partitions) =>
  (keys: readonly ReportKey[]): Promise<readonly (ReportRow | undefined)[]> =>
    partitions.retried(() => {
      const near = partitions.known(keys[0]?.observationsMs ?? 0);
      // Those of a batch are most often of one day.
      const isNear = near && keys.every(({ observationsMs: ms }) => ms >= near.startMs && ms < near.endMs);
      return readRowsOfKeys(run, isNear ? near.reports : t.reports, keys);
    });

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
  const rows = await run<ReportRow & { readonly n: number }>(
    `SELECT k.n, r.observations, r.valid_from, r.record FROM unnest($1::bytea[], $2::text[]) WITH ORDINALITY AS k(feed_id, observations, n)
     CROSS JOIN LATERAL (SELECT ${reportColumns} FROM ${table} WHERE feed_id = k.feed_id AND observations = ANY(k.observations::bigint[])) AS r`,
    [feedList([...streams.keys()]), textList([...streams.values()].map(numberList))],
  );
  const found = new Map([...streams.keys()].map((feedId) => [feedId, new Map<number, ReportRow>()]));
  const byOrdinal = [...found.values()];
  for (const row of rows) byOrdinal[row.n - 1]?.set(row.observations, row); // ordinals count from one
  return keys.map(({ feedId, observationsMs }) => found.get(feedId)?.get(observationsMs));
};

/** Every row in key order after a cursor, checked. */
export async function scanReports(run: Run, t: Tables, cursor: ScanCursor | undefined, limit: number) {
  // Damaged keys included: they may be of any length, and before every other.
  const [, feed, ms] = /^0x([0-9a-f]*):(-?\d+)$/.exec(cursor ?? '0x:-1') ?? [];
  assert(feed !== undefined && ms !== undefined, `${cursor} is not a cursor of a scan`);
  const rows = await run<ReportRow & { feed_id: Buffer }>(
    `SELECT feed_id, ${reportColumns} FROM ${t.reports} WHERE (feed_id, observations) > ($1::bytea, $2::bigint)
     ORDER BY feed_id, observations LIMIT $3::int`,
    [Buffer.from(feed, 'hex'), Number(ms), limit],
  );
  const entries = rows.map((row) => checkRow(feedIdOfBytes(row.feed_id), row));
  const last = rows.at(-1);
  return rows.length < limit || last === undefined
    ? { entries }
    : { entries, next: `${feedIdOfBytes(last.feed_id)}:${last.observations}` };
}

const checkRow = (feedId: FeedId, row: ReportRow): ScannedReport => {
  try {
    return { report: decodeReport(feedId, row) };
  } catch (error) {
    if (error instanceof CorruptRecordError)
      return {
        error,
        ...placeOf(feedId, row.observations),
        observationsMs: row.observations,
      };
    throw error;
  }
};
