// Pushes a series of prices: CSV text, a CSV file, or rows.
import { readFile } from 'node:fs/promises';
import type { ReportJson } from '@sealpost/protocol';
import { inRow, type Price, type PushOptions, readSeries, rowError, type SeriesRow } from 'sealpost/sandbox';
import type { ChosenStream } from './options.ts';

export type Series = string | URL | readonly SeriesRow[];

type SeriesParts = {
  readonly nowMs: () => number;
  readonly find: (stream: string) => ChosenStream;
  readonly push: (stream: ChosenStream, price: Price, options: PushOptions) => Promise<ReportJson>;
};

/** Pushes each price at its time. Nothing is pushed if a row cannot be read or names a stream that there is not. */
export const pushSeries = async (
  series: Series,
  { nowMs, find, push }: SeriesParts,
): Promise<readonly ReportJson[]> => {
  const rows = readSeries(series instanceof URL ? await readFile(series, 'utf8') : series, nowMs());
  const streams = rows.map(({ where, stream }) => inRow(where, () => find(stream)));
  const reports: ReportJson[] = [];
  for (const [i, { where, price, options, ms }] of rows.entries()) {
    const pushing = push(streams[i] as ChosenStream, price, { ...options, at: new Date(ms) }); // one for each row
    reports.push(await pushing.catch((error: unknown) => Promise.reject(rowError(where, error))));
  }
  return reports;
};
