// GET /api/v1/reports/bulk: several streams at one timestamp, in the order asked for; 206 when some have no data.
import type { FeedId, QueryOf } from '@sealpost/protocol';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { RenderedReport } from '../../store/store.ts';
import type { Answer } from '../answer.ts';
import type { Handler, RouteContext } from './context.ts';
import { listBody } from './report-bodies.ts';
import { reasonOf, visibleNeighbours } from './report-miss.ts';

type Found = readonly (RenderedReport | undefined)[];

/** Keeps the body of a complete answer for as long as the store gives the same list: many clients ask for the same streams at the same second. */
export const createBulkRoute = (): Handler<'reportBulk'> => {
  const complete = new WeakMap<Found, NonNullable<Answer['body']>>();
  const answer = (query: QueryOf<'reportBulk'>, context: RouteContext, found: Found): Answer | Promise<Answer> => {
    const known = complete.get(found);
    if (known !== undefined) return { status: 200, body: known, cacheControl: 'no-store' };
    const isThere = (report: RenderedReport | undefined): report is RenderedReport =>
      report !== undefined && report.observationsMs >= retentionEdgeMs(context.reportNowMs, context.retentionDays);
    const reports = found.filter(isThere).map(({ json }) => json);
    if (reports.length < query.feedIds.length) {
      const absent = query.feedIds.filter((_, i) => !isThere(found[i]));
      return answerPart(query, context, reports, absent);
    }
    const body = listBody('reports', reports);
    complete.set(found, body);
    return { status: 200, body, cacheControl: 'no-store' };
  };
  return (query, context) => {
    const found = context.reports.renderedAt(query.feedIds, query.timestamp);
    return found instanceof Promise
      ? found.then((late) => answer(query, context, late))
      : answer(query, context, found);
  };
};

const answerPart = async (
  { timestamp, missing }: QueryOf<'reportBulk'>,
  context: RouteContext,
  reports: readonly Buffer[],
  absent: readonly FeedId[],
): Promise<Answer> => {
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
