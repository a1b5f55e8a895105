// The first value of streams that come into view: the newest report of each, in one request per 100 streams.
import type { Client } from '@sealpost/client';
import { limits, type ReportJson } from '@sealpost/protocol';

export type FirstParts = {
  readonly client: Pick<Client, 'latestMany'>;
  readonly onReport: (report: ReportJson) => void;
  readonly signal: AbortSignal;
};

/** Calls `onReport` for each stream that has a report, after each response. Rejects if a request fails. */
export const readFirst = async (
  feedIds: readonly string[],
  { client, onReport, signal }: FirstParts,
): Promise<void> => {
  for (let start = 0; start < feedIds.length; start += limits.feedIdsMax) {
    const { reports } = await client.latestMany(feedIds.slice(start, start + limits.feedIdsMax), { signal });
    reports.forEach(onReport);
  }
};
