// When the first report of a candle was observed. A candle has only the first second of its bucket, and a stream may begin hours later.
import type { Client } from '@sealpost/client';
import { limits, type ReportJson } from '@sealpost/protocol';
import { readLiveReport } from '../../state/live-prices.ts';

/** The start of a change: a candle's opening. */
export type CandleStart = {
  readonly feedId: string;
  /** First second of the candle. */
  readonly second: number;
  readonly open: bigint;
};

/** Undefined if it is not the candle's first report. */
const observedMsOf = (report: ReportJson | undefined, { second, open }: CandleStart): number | undefined => {
  const read = report && readLiveReport(report);
  return read?.decoded?.price === open && read.observationsMs >= second * 1_000 ? read.observationsMs : undefined;
};

/** In milliseconds; undefined if the server no longer has that report. */
export async function readFirstMs(
  client: Pick<Client, 'page'>,
  start: CandleStart,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { reports } = await client.page(start.feedId, start.second, 1, { signal });
  return observedMsOf(reports[0], start);
}

/** The same for many streams, by feed ID. Those that could not be read before a failure or the signal are missing. */
export async function readFirstMsOfMany(
  client: Pick<Client, 'page' | 'bulk'>,
  starts: readonly CandleStart[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const keep = (start: CandleStart, ms: number | undefined): void => {
    if (ms !== undefined) found.set(start.feedId, ms);
  };
  try {
    // The report that is valid at a candle's first second is its first; one request has it for 100 streams.
    for (const group of groupsOf(starts)) {
      const { reports } = await client.bulk(
        group.map(({ feedId }) => feedId),
        group[0]?.second ?? 0,
        { signal },
      );
      const byFeed = new Map<string, ReportJson>(reports.map((report) => [report.feedID, report]));
      for (const start of group) keep(start, observedMsOf(byFeed.get(start.feedId), start));
    }
    for (const start of starts) if (!found.has(start.feedId)) keep(start, await readFirstMs(client, start, signal));
  } catch {
    // What was found is what there is: the client has retried, or the time is over.
  }
  return found;
}

/** Those with the same second, at most 100 each. */
const groupsOf = (starts: readonly CandleStart[]): readonly (readonly CandleStart[])[] => {
  const groups: CandleStart[][] = [];
  for (const start of starts) {
    const open = groups.findLast(([first]) => first?.second === start.second);
    if (open === undefined || open.length === limits.feedIdsMax) groups.push([start]);
    else open.push(start);
  }
  return groups;
};
