// GET /api/v1/reports: the report that is valid at a timestamp, or why there is none.
import { renderReport } from '../../store/format/rendered-report.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import { reportTag } from '../../store/store.ts';
import { isNotModified } from '../answer.ts';
import type { Handler } from './context.ts';
import { missError, visibleNeighbours } from './report-miss.ts';

export const reportAt: Handler<'reportAt'> = async ({ feedId, timestamp }, context) => {
  const [found] = await context.reports.at([feedId], timestamp);
  if (found === undefined || found.observationsMs < retentionEdgeMs(context.reportNowMs, context.retentionDays))
    throw missError(context, feedId, await visibleNeighbours(context, feedId, timestamp));
  const tag = reportTag(found.fullReport);
  const cacheControl = 'private, no-cache';
  if (isNotModified(context.ifNoneMatch, tag)) return { status: 304, cacheControl, tag };
  return { status: 200, ascii: true, body: `{"report":${renderReport(found)}}`, cacheControl, tag };
};
