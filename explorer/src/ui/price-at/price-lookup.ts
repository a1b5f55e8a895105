// Looks up the price at a time: the report that was valid, or the nearest two and why there is none.
import { type Client, type DecodedReport, SealpostError } from '@sealpost/client';
import type { Body } from '@sealpost/protocol';
import { type LiveReport, readLiveReport } from '../../state/live-prices.ts';
import { formatAge } from '../format.ts';

export type WindowJson = Body<'Window'>;
export type MissReason = Body<'ReportMiss'>['reason'];

/** An adjacent report; `decoded` if its fields are known. */
export type Neighbor = WindowJson & { readonly decoded: DecodedReport | undefined };

export type PriceLookup =
  | { readonly kind: 'found'; readonly seconds: number; readonly report: LiveReport }
  | {
      readonly kind: 'miss';
      readonly seconds: number;
      readonly reason: MissReason;
      readonly previous: Neighbor | undefined;
      readonly next: Neighbor | undefined;
    }
  | (TooOld & { readonly seconds: number });

export type TooOld = { readonly kind: 'too-old'; readonly oldestTimestamp: number | undefined };

/** Looks up a second. Rejects with errors other than a miss, such as no network or no access. */
export async function lookUpPrice(
  client: Pick<Client, 'at'>,
  feedId: string,
  seconds: number,
  signal: AbortSignal,
): Promise<PriceLookup> {
  try {
    const { report } = await client.at(feedId, seconds, { signal });
    const liveReport = readLiveReport(report);
    if (liveReport === undefined) throw new SealpostError('malformed_report', 'The server sent a malformed report.');
    return { kind: 'found', seconds, report: liveReport };
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const tooOld = readTooOld(error);
    if (tooOld !== undefined) return { ...tooOld, seconds };
    if (error.code !== 'report_not_found') throw error;
    const { reason, previous, next } = error.details as Partial<Body<'ReportMiss'>>; // the details of a miss
    const [before, after] = await Promise.all([
      readNeighbor(client, feedId, previous, signal),
      readNeighbor(client, feedId, next, signal),
    ]);
    return { kind: 'miss', seconds, reason: reason ?? 'gap', previous: before, next: after };
  }
}

/** The oldest second that the server keeps, if that is why a request failed. */
export function readTooOld(error: unknown): TooOld | undefined {
  if (!(error instanceof SealpostError) || error.code !== 'timestamp_out_of_bounds') return undefined;
  const { oldestTimestamp } = error.details;
  return { kind: 'too-old', oldestTimestamp: typeof oldestTimestamp === 'number' ? oldestTimestamp : undefined };
}

const readNeighbor = async (
  client: Pick<Client, 'at'>,
  feedId: string,
  window: WindowJson | null | undefined,
  signal: AbortSignal,
): Promise<Neighbor | undefined> => {
  if (window === null || window === undefined) return undefined;
  try {
    const { report } = await client.at(feedId, window.observationsTimestamp, { signal });
    return { ...window, decoded: readLiveReport(report)?.decoded };
  } catch {
    return { ...window, decoded: undefined }; // its window is still known
  }
};

/** Writes a time, in the zone that the user chose. */
type FormatTime = (ms: number) => string;

const lengthOf = (from: number, to: number): string => formatAge((to - from + 1) * 1_000);

/** Why there is no report, in one or two sentences. */
export function explainMiss(
  { seconds, reason, previous, next }: Extract<PriceLookup, { kind: 'miss' }>,
  nowSeconds: number,
  format: FormatTime,
): string {
  const at = (second: number): string => format(second * 1_000);
  if (reason === 'no_reports') return 'This stream has no reports.';
  if (reason === 'damaged') return 'The report for this time is damaged on the server and cannot be shown.';
  if (reason === 'before_first' && next !== undefined)
    return `The first report kept for this stream is valid from ${at(next.validFromTimestamp)}.`;
  if (reason === 'not_yet' && previous !== undefined) {
    const newest = `The newest report is valid to ${at(previous.observationsTimestamp)}`;
    return seconds > nowSeconds
      ? `That time is in the future. ${newest}.`
      : `${newest}; no later one has arrived. Try again in a moment.`;
  }
  if (previous === undefined || next === undefined) return 'No report is valid at that time.';
  const [from, to] = [previous.observationsTimestamp + 1, next.validFromTimestamp - 1];
  return `Nothing was observed from ${at(from)} to ${at(to)}, a gap of ${lengthOf(from, to)}. A price is never carried over a gap.`;
}

/** Why a time is before the retained history. */
export const explainTooOld = ({ oldestTimestamp }: TooOld, format: FormatTime): string =>
  oldestTimestamp === undefined
    ? 'That time is before this server’s retained history. Enter a later one.'
    : `This server keeps reports from ${format(oldestTimestamp * 1_000)}. Enter a later time.`;
