// Makes a file of a time range: pages of the public API, decoded in the browser, with the columns of `sealpost export`. The file exists only
// once it is whole. After a failure the same download continues where it stopped.
import { type Client, SealpostError } from '@sealpost/client';
import {
  columnsOf,
  createCsv,
  createParquetEncoder,
  type Encoder,
  type ExportRow,
  exportRowOf,
  requireFit,
} from '@sealpost/client/export';
import { isSchemaVersion, parseFeedId, type ReportJson, schemaVersionOf } from '@sealpost/protocol';
import type { Chunks } from '../../state/code/chunks.ts';
import { toAddressTime } from '../../ui/price-at/time-input.ts';

export type DownloadFormat = 'csv' | 'parquet';

export type DownloadPlan = {
  readonly feedId: string;
  /** The stream's name in the catalog. */
  readonly name: string;
  /** Seconds of observation, both included. */
  readonly from: number;
  readonly to: number;
  readonly format: DownloadFormat;
};

/** Reports of one file: what a page holds in memory without trouble, some 30 MB of CSV. */
export const downloadMax = 100_000;

export type DownloadProgress = {
  readonly reports: number;
  /** Share of the time range that was read, up to 1. */
  readonly share: number;
  /** Seconds until the next request, if the server asked to wait. */
  readonly waitSeconds: number | undefined;
};

export type DownloadedFile = {
  readonly parts: readonly (Uint8Array | string)[];
  readonly reports: number;
  /** Reports whose fields are not known; they are not in the file. */
  readonly skipped: number;
};

/** Why a range cannot be one file. */
export class DownloadError extends Error {
  override readonly name = 'DownloadError';
}

/** Time until something, cut short by the signal. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

type Reader = Pick<Client, 'pages'>;

export type Download = {
  /** Reads to the end; after a rejection it may be called again, and continues. Aborting rejects. */
  readonly run: (
    client: Reader,
    onProgress: (progress: DownloadProgress) => void,
    signal: AbortSignal,
  ) => Promise<DownloadedFile>;
};

/** The columns of a stream's file. */
export function fileColumnsOf(feedId: string) {
  const version = schemaVersionOf(feedId);
  if (!isSchemaVersion(version))
    throw new DownloadError(`This page cannot decode reports of schema version ${version}.`);
  return columnsOf([version], { isDecoded: true, isRaw: false, hasFullReport: false });
}

/** Begins a download; nothing is read yet. Parquet needs its library, which is loaded here. More than `max` reports are too many. */
export async function openDownload(
  plan: DownloadPlan,
  wait: Wait,
  chunks: Chunks,
  max = downloadMax,
): Promise<Download> {
  const columns = fileColumnsOf(plan.feedId);
  const encoder =
    plan.format === 'csv'
      ? createCsv(columns)
      : createParquetEncoder(await chunks.load(() => import('hyparquet-writer')), columns);
  const stream = { feedId: parseFeedId(plan.feedId), name: plan.name };
  const buffer = createRowBuffer(encoder);
  const take = (reports: readonly ReportJson[]): void => {
    const rows: ExportRow[] = [];
    const before = buffer.count();
    for (const report of buffer.fresh(reports)) {
      const { row } = exportRowOf(columns, stream, report, true);
      if (row === undefined) buffer.skip();
      else {
        if (plan.format === 'parquet') requireParquet(columns, row);
        rows.push(row);
      }
      // Of the second of the first report that is too many, others may fit; of the one before, all do.
      if (before + rows.length > max) throw tooMany(max, report.observationsTimestamp - 1);
    }
    buffer.add(rows);
  };
  return {
    run: async (client, onProgress, signal) => {
      const progress = (waitSeconds?: number): DownloadProgress => ({
        reports: buffer.count(),
        share: Math.min(1, Math.max(0, (buffer.second() - plan.from + 1) / (plan.to - plan.from + 1))),
        waitSeconds,
      });
      for (;;) {
        try {
          const from = Math.max(plan.from, buffer.second());
          for await (const { reports } of client.pages(plan.feedId, {
            from,
            to: plan.to,
            retryRateLimited: false, // the wait is shown
            signal,
          })) {
            take(reports);
            onProgress(progress());
          }
          signal.throwIfAborted();
          return buffer.end();
        } catch (error) {
          const waitSeconds = retryAfterOf(error);
          if (waitSeconds === undefined || signal.aborted) throw error;
          onProgress(progress(waitSeconds));
          await wait(waitSeconds * 1_000, signal);
        }
      }
    },
  };
}

/** The rows so far, and the newest second, of which a page may be read again. */
const createRowBuffer = (encoder: Encoder) => {
  const parts: (Uint8Array | string)[] = [];
  let [count, skipped, second] = [0, 0, -1];
  let ofSecond = new Set<string>();
  return {
    count: () => count,
    second: () => second,
    skip: () => {
      skipped += 1;
    },
    /** The reports that were not taken before. */
    fresh: (reports: readonly ReportJson[]): readonly ReportJson[] => {
      const found = reports.filter(
        ({ observationsTimestamp: at, fullReport }) => at > second || (at === second && !ofSecond.has(fullReport)),
      );
      for (const { observationsTimestamp, fullReport } of found) {
        if (observationsTimestamp > second) ofSecond = new Set();
        second = observationsTimestamp;
        ofSecond.add(fullReport);
      }
      return found;
    },
    add: (rows: readonly ExportRow[]) => {
      count += rows.length;
      const bytes = encoder.add(rows);
      if (bytes.length > 0) parts.push(bytes);
    },
    end: (): DownloadedFile => ({ parts: [...parts, encoder.end()], reports: count, skipped }),
  };
};

const requireParquet: typeof requireFit = (columns, row) => {
  try {
    requireFit(columns, row);
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new DownloadError(`A value does not fit Parquet: ${what}. Download CSV instead.`, { cause });
  }
};

/** `lastSecond`: the range fits up to it. */
export const tooMany = (max: number, lastSecond: number): DownloadError =>
  new DownloadError(
    `The range has more than ${max.toLocaleString('en-US')} reports. End it at ${toAddressTime(lastSecond)} or earlier, or use sealpost export.`,
  );

/** Seconds to wait, if that is what the server asked for. */
const retryAfterOf = (error: unknown): number | undefined => {
  if (!(error instanceof SealpostError) || error.code !== 'rate_limited') return undefined;
  const { retryAfterSeconds } = error.details;
  return typeof retryAfterSeconds === 'number' ? Math.max(1, retryAfterSeconds) : 1;
};

/** `ETH-USD_2026-11-15T09-28-17Z_2026-11-15T10-28-17Z.csv`. */
export function fileNameOf({ name, from, to, format }: Omit<DownloadPlan, 'feedId'>): string {
  const time = (second: number): string =>
    `${new Date(second * 1_000).toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
  return `${name.replace(/[^A-Za-z0-9.]+/g, '-')}_${time(from)}_${time(to)}.${format}`;
}
