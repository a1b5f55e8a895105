// GET /api/v1/reports/coverage: gaps and completeness of a range, read in slices. Sealpost extension.
import { limits, malformedArgument } from '@sealpost/protocol';
import { runForClient } from '../../access/long-work.ts';
import { coverageOf, windowsTouching } from '../../store/coverage.ts';
import type { ReportStore } from '../../store/store.ts';
import type { Handler } from './context.ts';
import { checkRange } from './time-range.ts';

/** Windows that one answer reads: a day of 11 reports per second, and a second of the loop in slices. */
const windowsMax = 1_000_000;

export const reportCoverage: Handler<'reportCoverage'> = async ({ feedId, from, to }, context) => {
  checkRange(from, to, limits.coverageSecondsMax);
  const { reports, longWork, userId, client } = context;
  const range = { from, to };
  const coverage = await runForClient(longWork, userId, client, (slice) => {
    let count = 0;
    const windows: ReportStore['windows'] = async (...args) => {
      const page = await slice(() => reports.windows(...args));
      count += page.length;
      if (count > windowsMax)
        throw malformedArgument('to', to, `an earlier second: the range has more than ${windowsMax} reports`);
      return page;
    };
    return coverageOf(windowsTouching({ windows }, feedId, range), range);
  });
  return { status: 200, body: JSON.stringify(coverage), cacheControl: 'no-store' };
};
