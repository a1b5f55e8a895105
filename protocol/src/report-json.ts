// A report as JSON (D5). Separate from report.ts, so that rendering needs no ABI code.
import type { Body } from './bodies.ts';
import type { FeedId } from './feed-id.ts';

/** Exactly these four keys, in this order, integer seconds. */
export type ReportJson = Body<'Report'>;

/** Renders a report; milliseconds are rounded down to seconds. */
export const toReportJson = (
  feedId: FeedId,
  { validFromMs, observationsMs }: { readonly validFromMs: number; readonly observationsMs: number },
  fullReport: string,
): ReportJson => ({
  feedID: feedId,
  validFromTimestamp: Math.floor(validFromMs / 1_000),
  observationsTimestamp: Math.floor(observationsMs / 1_000),
  fullReport,
});
