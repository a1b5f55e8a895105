// GET /api/v1/reports/coverage: gaps and completeness of a range, read in slices; /api/v1/reports/coverage/bulk: completeness of several streams, by
// hour. Sealpost extensions.
import { limits, malformedArgument } from '@sealpost/protocol';
import { type LongWork, runForClient } from '../../access/long-work.ts';
import { createKeptValues } from '../../runtime/kept-values.ts';
import { coverageOf, windowsTouching } from '../../store/coverage.ts';
import { type CoverageReader, type KeptGaps, readHourCoverage } from '../../store/hour-coverage.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { ReportStore } from '../../store/store.ts';
import { checkRange } from '../query.ts';
import type { Handler, RouteContext } from './context.ts';
import { createTextPieces } from './report-bodies.ts';

/** Windows that one answer reads: a day of 11 reports per second, and a second of the loop in slices. */
const windowsMax = 1_000_000;

export const reportCoverage: Handler<'reportCoverage'> = async ({ feedId, from, to }, context) => {
  checkRange(from, to, limits.coverageSecondsMax);
  const { reports, longWork, userId, client } = context;
  const range = { from, to };
  const coverage = await runForClient(longWork, userId, client, (slice) =>
    coverageOf(windowsTouching({ windows: boundedWindows(reports, slice, to) }, feedId, range), range),
  );
  return { status: 200, body: JSON.stringify(coverage), cacheControl: 'no-store' };
};

/** Reads windows in slices, up to `windowsMax` for one answer. */
const boundedWindows = (reports: ReportStore, slice: LongWork['slice'], to: number): ReportStore['windows'] => {
  let count = 0;
  return async (...args) => {
    const page = await slice(() => reports.windows(...args));
    count += page.length;
    if (count > windowsMax)
      throw malformedArgument('to', to, `an earlier second: the range has more than ${windowsMax} reports`);
    return page;
  };
};

/** Gaps of hours that are over change only when reports arrive late: they are in an answer after this long. */
const keptMs = 60_000;
/** Kept hours: a day of 2,000 streams has 48,000. The table of twice as many takes 6 ms to grow. */
const keptMax = 100_000;

export function createCoverageManyRoute(monotonicMs: () => number): Handler<'reportCoverageMany'> {
  const kept: KeptGaps = createKeptValues(keptMs, keptMax, monotonicMs);
  return async ({ feedIds, from, to }, context) => {
    checkRange(from, to, limits.coverageSecondsMax);
    const { longWork, userId, client } = context;
    const body = await runForClient(longWork, userId, client, async (slice) => {
      const reader = createReader(context, slice, to);
      const { add, end } = createTextPieces(slice);
      await add('{"streams":[');
      for (const [i, feedID] of feedIds.entries()) {
        const coverage = await readHourCoverage(reader, feedID, { from, to }, kept);
        await add(`${i === 0 ? '' : ','}${JSON.stringify({ feedID, ...coverage })}`);
      }
      return end(']}');
    });
    return { status: 200, body, cacheControl: 'no-store' };
  };
}

const createReader = (context: RouteContext, slice: LongWork['slice'], to: number): CoverageReader => {
  const { reports, reportNowMs, retentionDays } = context;
  return {
    windows: boundedWindows(reports, slice, to),
    neighbours: (...args) => slice(() => reports.neighbours(...args)),
    newestMs: reports.newestMs,
    hourCounts: async (feedId, range) => {
      const hours = { from: Math.floor(range.from / 3_600) * 3_600, to: range.to, resolution: 3_600 };
      const found = await slice(() => reports.candles(feedId, hours));
      return new Map(found.map(({ start, reports: count }) => [start, count]));
    },
    oldestMs: retentionEdgeMs(reportNowMs, retentionDays),
  };
};
