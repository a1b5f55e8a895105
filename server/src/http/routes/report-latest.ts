// GET /api/v1/reports/latest: bytes that were rendered when the report came in.

import { retentionEdgeMs } from '../../store/retention.ts';
import { isNotModified } from '../answer.ts';
import type { Handler } from './context.ts';
import { missError } from './report-miss.ts';

export const reportLatest: Handler<'reportLatest'> = ({ feedId }, context) => {
  const latest = context.reports.latest(feedId);
  if (latest === undefined || latest.observationsMs < retentionEdgeMs(context.reportNowMs, context.retentionDays))
    throw missError(context, feedId, { previous: undefined, next: undefined });
  const { tag, json } = latest;
  if (isNotModified(context.ifNoneMatch, tag)) return { status: 304, cacheControl: 'no-store', tag };
  return { status: 200, ascii: true, body: json, cacheControl: 'no-store', tag };
};
