// How many reports a download has, before it starts: an estimate from what is known of the stream, and a count by the server where the
// estimate is too high.
import type { Client } from '@sealpost/client';
import { limits } from '@sealpost/protocol';
import { DownloadError, type DownloadPlan, downloadMax, fileColumnsOf, tooMany } from './download.ts';

/** What the page knows of a stream's reports. */
export type StreamActivity = {
  readonly intervalMs: number | undefined;
  /** Whether the stream has none. */
  readonly isEmpty: boolean;
  /** The second of the newest one; undefined if there may be newer ones. */
  readonly newestSecond: number | undefined;
};

/** About how many reports and bytes a range has. */
export function estimateDownload(
  { feedId, from, to, format }: Omit<DownloadPlan, 'name'>,
  { intervalMs, isEmpty, newestSecond }: StreamActivity,
): { readonly reports: number; readonly requests: number; readonly bytes: number } {
  const seconds = isEmpty ? 0 : Math.max(0, Math.min(to, newestSecond ?? to) - from + 1);
  const reports = Math.ceil((seconds * 1_000) / Math.max(1, intervalMs ?? 1_000));
  const cellBytes = format === 'csv' ? 21 : 6; // measured on every schema
  const bytes = reports * fileColumnsOf(feedId).length * cellBytes;
  return { reports, requests: Math.ceil(reports / limits.pageLimitMax), bytes };
}

type Counter = Pick<Client, 'page' | 'coverage'>;

/** Requests that count reports, at most; each covers a day. */
const countsMax = 100;
/** Requests that find the last second that fits. */
const fitsMax = 4;

/**
 * Rejects with a DownloadError if the range has too many reports. The server counts them only if the estimate is too high; if it cannot,
 * or if counting takes too many requests, the download itself finds out.
 */
export async function requireSize(
  client: Counter,
  plan: DownloadPlan,
  activity: StreamActivity,
  signal: AbortSignal,
  max = downloadMax,
): Promise<void> {
  if (estimateDownload(plan, activity).reports <= max) return;
  try {
    const last = await findLastFit(client, plan, max, signal);
    if (last !== undefined && last >= plan.from) throw tooMany(max, last);
  } catch (error) {
    if (error instanceof DownloadError || signal.aborted) throw error;
  }
}

/** The last second up to which the range is known to fit; undefined if all of it may. */
const findLastFit = async (
  client: Counter,
  { feedId, from, to }: DownloadPlan,
  max: number,
  signal: AbortSignal,
): Promise<number | undefined> => {
  const countOf = async (first: number, last: number): Promise<number> =>
    (await client.coverage(feedId, { from: first, to: last }, { signal })).coverage.reports;
  const [oldest] = (await client.page(feedId, from, 1, { signal })).reports;
  let start = oldest?.observationsTimestamp ?? to + 1;
  for (let [count, round] = [0, 1]; start <= to && round <= countsMax; round += 1) {
    const end = Math.min(to, start + limits.coverageSecondsMax - 1);
    const reports = await countOf(start, end);
    // A report that is valid across the end of a count is in two of them.
    if (count + reports - round > max) return shrink(start, end, reports, max - count, countOf);
    count += reports;
    start = end + 1;
  }
  return undefined;
};

/** The end of a shorter range that starts at the same second and has at most `max` reports. */
const shrink = async (
  start: number,
  end: number,
  reports: number,
  max: number,
  countOf: (first: number, last: number) => Promise<number>,
): Promise<number> => {
  let [last, found] = [end, reports];
  for (let round = 0; round < fitsMax && found > max; round += 1) {
    last = start + Math.floor(((last - start + 1) * max) / found) - 1;
    if (last < start) return start - 1;
    found = await countOf(start, last);
  }
  return found > max ? start - 1 : last;
};
