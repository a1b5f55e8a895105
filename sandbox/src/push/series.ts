// Series of prices: a CSV text, or rows, in the order of their times. An error names the line, or the row.

import type { FeedId } from '@sealpost/protocol';
import { durationMs } from '../faults/fields.ts';
import { type Catalog, type CompiledEvent, eventFeedIds } from '../scenario/compile.ts';
import { createBody, type Moment, type PushOptions, parseMoment } from './body.ts';
import { SandboxError, unexpected } from './errors.ts';
import type { PushAct } from './outcomes.ts';
import { type Price, parsePrice } from './prices.ts';

/** One price. `time` is a moment, or a duration such as `'10s'` after the start of the series. */
export type SeriesRow = {
  readonly time: Moment;
  readonly stream: string;
  readonly price: Price;
  readonly bid?: Price;
  readonly ask?: Price;
};

export type TimedRow = {
  /** Such as `line 3`, for errors. */
  readonly where: string;
  readonly ms: number;
  readonly stream: string;
  readonly price: Price;
  readonly options: Pick<PushOptions, 'bid' | 'ask'>;
};

/** Some 20 s of work. */
const rowsMax = 100_000;

const requiredColumns = ['time', 'stream', 'price'] as const;
const columns: readonly string[] = [...requiredColumns, 'bid', 'ask'];

type ReadRow = { readonly where: string; readonly row: Readonly<Record<string, unknown>> };

/** Runs what an error is thrown by, whose place is a line or a row. */
export function inRow<T>(where: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw rowError(where, error);
  }
}

/** The error about a row, with its place. */
export const rowError = (where: string, error: unknown): unknown =>
  error instanceof SandboxError
    ? new SandboxError(`${where}: ${error.argument}`, `${where}: ${error.message}`, { cause: error })
    : error;

/** Reads a series, sorted by time; `startMs` is what durations come after. Throws a SandboxError. */
export function readSeries(series: string | readonly SeriesRow[], startMs: number): readonly TimedRow[] {
  const rows = typeof series === 'string' ? readCsv(series) : readRows(series);
  if (rows.length === 0 || rows.length > rowsMax)
    throw new SandboxError('series', `The series has ${rows.length} rows, expected 1 to ${rowsMax}.`);
  const timed = rows.map((read) => inRow(read.where, () => timedRow(read, startMs)));
  const seen = new Map<string, string>();
  for (const { where, ms, stream } of timed) {
    const key = `${ms} ${stream.toLowerCase()}`;
    const before = seen.get(key);
    if (before !== undefined)
      throw new SandboxError(
        `${where}: time`,
        `${where}: ${stream} has a price at this time in ${before}, too. Delete one.`,
      );
    seen.set(key, where);
  }
  return timed.sort((a, b) => a.ms - b.ms);
}

/** The first date in a series, in ms; undefined where all times are durations. */
export function firstDateMs(csv: string): number | undefined {
  const dates = readCsv(csv).flatMap(({ where, row: { time } }) =>
    isDuration(time) ? [] : [inRow(where, () => parseTime(time, 0))],
  );
  return dates.length === 0 ? undefined : dates.reduce((least, ms) => Math.min(least, ms));
}

const isDuration = (time: unknown): time is string => typeof time === 'string' && durationMs(time) !== undefined;

const parseTime = (time: unknown, startMs: number): number => {
  if (isDuration(time)) return startMs + (durationMs(time) ?? 0);
  const isUnix = typeof time === 'string' && /^\d+(\.\d{1,3})?$/.test(time);
  const ms = isUnix ? Math.round(Number(time) * 1_000) : undefined;
  return parseMoment('time', ms === undefined ? time : new Date(ms));
};

const timedRow = ({ where, row }: ReadRow, startMs: number): TimedRow => {
  const { time, stream, price, bid, ask } = row;
  if (typeof stream !== 'string' || stream === '') throw unexpected('stream', stream, 'a pair such as ETH/USD');
  const ms = parseTime(time, startMs);
  for (const [name, value] of Object.entries({ price, bid, ask }))
    if (name === 'price' || value !== undefined) parsePrice(name, value);
  const sides = { ...(bid !== undefined && { bid: bid as Price }), ...(ask !== undefined && { ask: ask as Price }) }; // just parsed
  return { where, ms, stream, price: price as Price, options: sides }; // just parsed
};

const readRows = (series: unknown): readonly ReadRow[] => {
  if (!Array.isArray(series))
    throw unexpected(
      'series',
      series,
      "CSV text, the URL of a file, or a list such as [{ time: '0s', stream: 'ETH/USD', price: '4200' }]",
    );
  return series.map((row: unknown, i) => {
    const where = `series[${i}]`;
    if (typeof row !== 'object' || row === null) throw unexpected(where, row, 'an object with time, stream and price');
    const unknown = Object.keys(row).find((name) => !columns.includes(name));
    if (unknown !== undefined)
      throw new SandboxError(
        `${where}.${unknown}`,
        `${where}.${unknown} is not a field. Fields: ${columns.join(', ')}.`,
      );
    return { where, row: { ...row } };
  });
};

/** A header with the names of the columns, then a line for each price. Empty lines are left out. */
const readCsv = (text: string): readonly ReadRow[] => {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line, i) => ({ where: `line ${i + 1}`, cells: line.trim() === '' ? [] : line.split(',').map(readCell) }))
    .filter(({ cells }) => cells.length > 0);
  const [header, ...others] = lines;
  const names = header?.cells ?? [];
  const wrong = names.find((name, i) => !columns.includes(name) || names.indexOf(name) !== i);
  if (wrong !== undefined || requiredColumns.some((name) => !names.includes(name)))
    throw new SandboxError(
      'line 1',
      `${header?.where ?? 'line 1'}: ${wrong === undefined ? 'a column is missing' : `"${wrong}" is no column, or there twice`}, expected the columns time,stream,price and optionally bid,ask.`,
    );
  return others.map(({ where, cells }) => {
    if (cells.length !== names.length)
      throw new SandboxError(
        where,
        `${where}: there are ${cells.length} values, expected ${names.length}: ${names.join(',')}.`,
      );
    const given = names.flatMap((name, i) => (cells[i] === '' ? [] : [[name, cells[i]]]));
    return { where, row: Object.fromEntries(given) };
  });
};

/** Spreadsheets may quote every value. */
const readCell = (cell: string): string =>
  cell
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .trim();

/** Throws a SandboxError or a ScenarioError that names the line. */
export function compileSeries(rows: readonly TimedRow[], catalog: Catalog): CompiledEvent {
  const found = new Map<string, Catalog[number]>();
  const streamOf = (asked: string, where: string): Catalog[number] => {
    const known = found.get(asked);
    if (known !== undefined) return known;
    const [feedId] = eventFeedIds(asked, catalog, where);
    const stream = catalog.find((one) => one.feedId === feedId) as Catalog[number]; // or it threw
    found.set(asked, stream);
    return stream;
  };
  const acts = rows.map(({ where, ms, stream: asked, price, options }): PushAct => {
    const stream = streamOf(asked, where);
    const window = { validFromMs: ms, observationsMs: ms };
    inRow(where, () => createBody(stream, parsePrice('price', price), window, options));
    const report = { stream, price, options: { ...options, at: new Date(ms) } };
    return { kind: 'push', second: Math.ceil(ms / 1_000), report };
  });
  const feedIds: readonly FeedId[] = [...new Set([...found.values()].map(({ feedId }) => feedId))];
  const silence = { kind: 'silence', from: 0, to: Number.POSITIVE_INFINITY, feedIds, backfill: false } as const;
  return { effects: [silence], acts };
}
