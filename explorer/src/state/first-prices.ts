// The first value of streams that come into view: the newest report of each, asked for together.
import type { Client } from '@sealpost/client';
import { limits, type ReportJson } from '@sealpost/protocol';

export type FirstParts = {
  readonly client: Pick<Client, 'latestMany'>;
  readonly onReport: (report: ReportJson) => void;
  readonly signal: AbortSignal;
};

/** Tells a report for each of the streams that has one, those of a request as soon as it is answered. Rejects where the server cannot be asked. */
export const readFirst = async (
  feedIds: readonly string[],
  { client, onReport, signal }: FirstParts,
): Promise<void> => {
  for (let start = 0; start < feedIds.length; start += limits.feedIdsMax) {
    const { reports } = await client.latestMany(feedIds.slice(start, start + limits.feedIdsMax), { signal });
    reports.forEach(onReport);
  }
};
