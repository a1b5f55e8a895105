// Finds the reports before and after a report, across gaps. Reports of a millisecond stream share seconds, so these are read by page.
import { type Client, SealpostError } from '@sealpost/client';
import { type ReportJson, timeResolutionOf } from '@sealpost/protocol';
import { readLiveReport } from '../state/live-prices.ts';

/** What is on one side of a report. */
export type Side =
  /** `gapMs`: the time between the two for which no report is valid; 0 if they are contiguous. */
  | { readonly kind: 'report'; readonly report: ReportJson; readonly gapMs: number }
  /** No report: before the first one that is kept, or after the newest. */
  | { readonly kind: 'end'; readonly why: EndReason }
  | { readonly kind: 'failed'; readonly error: unknown };

/** `retained`: earlier reports are no longer kept. */
export type EndReason = 'first' | 'retained' | 'newest';

export type Direction = 'previous' | 'next';

/** The validity of a report, both ends included. */
export type ReportSpan = { readonly fromMs: number; readonly toMs: number };

/** From the bytes, which have milliseconds; from the response if they are malformed. */
export function reportSpanOf(report: ReportJson): ReportSpan {
  const { validFromMs = report.validFromTimestamp * 1_000, observationsMs = report.observationsTimestamp * 1_000 } =
    readLiveReport(report) ?? {};
  return { fromMs: validFromMs, toMs: observationsMs };
}

export const isMillisecondStream = (feedId: string): boolean => timeResolutionOf(feedId) === 'milliseconds';

/** The time between two reports for which neither is valid. */
export function gapMsBetween(earlier: ReportJson, later: ReportJson): number {
  const unitMs = isMillisecondStream(earlier.feedID) ? 1 : 1_000;
  return Math.max(0, reportSpanOf(later).fromMs - reportSpanOf(earlier).toMs - unitMs);
}

type Reader = Pick<Client, 'at' | 'page'>;

/** Reports of one second of a millisecond stream that are searched. */
const secondMax = 1_000;

/** The milliseconds in the address of a report: which one of its second. `problem`: why they are ignored. */
export function readAddressMs(
  feedId: string,
  timestamp: number,
  text: string | null,
): { readonly ms: number | undefined; readonly problem: string | undefined } {
  const problemOf = (problem: string) => ({ ms: undefined, problem });
  if (text === null) return { ms: undefined, problem: undefined };
  if (!isMillisecondStream(feedId)) return problemOf('The reports of this stream have whole seconds.');
  const example = timestamp * 1_000;
  if (!/^[0-9]{1,15}$/.test(text)) return problemOf(`Expected Unix milliseconds, such as ${example}.`);
  if (Math.floor(Number(text) / 1_000) !== timestamp)
    return problemOf(`${text} is not in second ${timestamp}: expected ${example} to ${example + 999}.`);
  return { ms: Number(text), problem: undefined };
}

/** What the address of a report says; `ms`: which report of the second. */
type ReportAddress = { readonly feedId: string; readonly timestamp: number; readonly ms: number | undefined };

/** The report of an address: the one of the millisecond if it is given, otherwise the one valid at the second. */
export async function readReportAt(
  client: Reader,
  { feedId, timestamp, ms }: ReportAddress,
  signal: AbortSignal,
): Promise<ReportJson> {
  if (ms === undefined) return (await client.at(feedId, timestamp, { signal })).report;
  const { reports } = await client.page(feedId, timestamp, secondMax, { signal });
  // The page continues with later seconds.
  const found = reports.find((one) => one.observationsTimestamp === timestamp && reportSpanOf(one).toMs === ms);
  if (found === undefined) throw new SealpostError('report_not_found', 'No report at this millisecond.');
  return found;
}

/** The report on one side. Does not reject: a failed read is a side too. */
export async function readSide(
  client: Reader,
  own: ReportJson,
  direction: Direction,
  signal: AbortSignal,
): Promise<Side> {
  const read = isMillisecondStream(own.feedID) ? readWithinSeconds : readSeconds;
  try {
    const found = await read[direction](client, own, signal);
    if (typeof found === 'string') return { kind: 'end', why: found };
    const gapMs = direction === 'previous' ? gapMsBetween(found, own) : gapMsBetween(own, found);
    return { kind: 'report', report: found, gapMs };
  } catch (error) {
    return { kind: 'failed', error };
  }
}

/** A report, or why there is none. */
type NeighborResult = ReportJson | EndReason;

type Read = (client: Reader, own: ReportJson, signal: AbortSignal) => Promise<NeighborResult>;

/** The report at a second; before a gap, the one on its other side. */
const readAtOrBefore = async (
  client: Reader,
  feedId: string,
  second: number,
  signal: AbortSignal,
): Promise<NeighborResult> => {
  if (second < 0) return 'first';
  try {
    return (await client.at(feedId, second, { signal })).report;
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    if (error.code === 'timestamp_out_of_bounds') return 'retained';
    if (error.code !== 'report_not_found') throw error;
    const { observationsTimestamp } = Object(error.details.previous);
    // A window at or after the second would lead in a circle.
    if (!Number.isSafeInteger(observationsTimestamp) || observationsTimestamp >= second) return 'first';
    return (await client.at(feedId, observationsTimestamp, { signal })).report;
  }
};

const readSeconds: Readonly<Record<Direction, Read>> = {
  previous: (client, own, signal) => readAtOrBefore(client, own.feedID, own.validFromTimestamp - 1, signal),
  next: async (client, own, signal) => {
    const { reports } = await client.page(own.feedID, own.observationsTimestamp + 1, 1, { signal });
    return reports[0] ?? 'newest';
  },
};

/** Reports per page of a millisecond stream: a few seconds. */
const pageSize = 100;

const readWithinSeconds: Readonly<Record<Direction, Read>> = {
  previous: async (client, own, signal) => {
    const { fromMs, toMs } = reportSpanOf(own);
    const lastBefore = async (second: number): Promise<ReportJson | undefined> => {
      const { reports } = await client.page(own.feedID, Math.max(0, second), pageSize, { signal });
      return reports.filter((report) => reportSpanOf(report).toMs < toMs).at(-1);
    };
    const second = Math.floor((fromMs - 1) / 1_000);
    const near = await lastBefore(second);
    if (near !== undefined) return near;
    const found = await readAtOrBefore(client, own.feedID, second, signal);
    return typeof found === 'string' ? found : ((await lastBefore(found.observationsTimestamp)) ?? 'first');
  },
  next: async (client, own, signal) => {
    const { toMs } = reportSpanOf(own);
    const { reports } = await client.page(own.feedID, own.observationsTimestamp, pageSize, { signal });
    const near = reports.find((report) => reportSpanOf(report).toMs > toMs);
    return near ?? readSeconds.next(client, own, signal);
  },
};
