// GET /api/v1/reports/latest: bytes that were rendered when the report came in.
import { ApiError } from '@sealpost/protocol';
import { isNotModified } from '../answer.ts';
import type { Handler } from './context.ts';
import { oldestMs } from './report-miss.ts';

export const reportLatest: Handler<'reportLatest'> = ({ feedId }, context) => {
  const latest = context.reports.latest(feedId);
  if (latest === undefined || latest.observationsMs < oldestMs(context)) {
    throw new ApiError('report_not_found', 'The stream has no report yet.', {
      reason: 'no_reports',
      previous: null,
      next: null,
    });
  }
  const { tag, json } = latest;
  if (isNotModified(context.ifNoneMatch, tag)) return { status: 304, cacheControl: 'no-store', tag };
  return { status: 200, ascii: true, body: json, cacheControl: 'no-store', tag };
};
