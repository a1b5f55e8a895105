// GET /api/v1/reports/bulk: several streams at one timestamp, in the order asked for; 206 when some have no data.

import { retentionEdgeMs } from '../../store/retention.ts';
import type { RenderedReport } from '../../store/store.ts';
import type { Answer } from '../answer.ts';
import type { Handler } from './context.ts';
import { listBody } from './report-bodies.ts';
import { reasonOf, visibleNeighbours } from './report-miss.ts';

/** Keeps the body of a complete answer for as long as the store gives the same list: many clients ask for the same streams at the same second. */
export const createBulkRoute = (): Handler<'reportBulk'> => {
  const complete = new WeakMap<readonly (RenderedReport | undefined)[], NonNullable<Answer['body']>>();
  return async ({ feedIds, timestamp, missing }, context) => {
    const found = await context.reports.renderedAt(feedIds, timestamp);
    const known = complete.get(found);
    if (known !== undefined) return { status: 200, body: known, cacheControl: 'no-store' };
    const isThere = (report: RenderedReport | undefined): report is RenderedReport =>
      report !== undefined && report.observationsMs >= retentionEdgeMs(context.reportNowMs, context.retentionDays);
    const reports = found.filter(isThere).map(({ json }) => json);
    if (reports.length === feedIds.length) {
      const body = listBody('reports', reports);
      complete.set(found, body);
      return { status: 200, body, cacheControl: 'no-store' };
    }
    const absent = feedIds.filter((_, i) => !isThere(found[i]));
    const reasons = missing
      ? await Promise.all(
          absent.map(async (feedID) => ({
            feedID,
            reason: reasonOf(await visibleNeighbours(context, feedID, timestamp)),
          })),
        )
      : [];
    return {
      status: 206,
      body: listBody('reports', reports, missing ? `,"missing":${JSON.stringify(reasons)}` : ''),
      cacheControl: 'no-store',
    };
  };
};
