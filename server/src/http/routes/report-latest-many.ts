// GET /api/v1/reports/latest?feedIDs=…: the newest reports of several streams, joined from texts that were rendered on ingest; 206 when a stream
// has none (D99). Sealpost extension.
import type { FeedId } from '@sealpost/protocol';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { Handler } from './context.ts';

/** What a stream's own answer has around its report. */
const [opening, closing] = ['{"report":', '}'];

export const reportLatestMany: Handler<'reportLatestMany'> = ({ feedIds, missing }, context) => {
  const oldest = retentionEdgeMs(context.reportNowMs, context.retentionDays);
  const reports: string[] = [];
  const absent: { readonly feedID: FeedId; readonly reason: 'no_reports' }[] = [];
  for (const feedID of feedIds) {
    const latest = context.reports.latest(feedID);
    if (latest === undefined || latest.observationsMs < oldest) absent.push({ feedID, reason: 'no_reports' });
    else reports.push(latest.json.slice(opening.length, -closing.length));
  }
  const rest = missing && absent.length > 0 ? `,"missing":${JSON.stringify(absent)}` : '';
  const body = `{"reports":[${reports.join(',')}]${rest}}`;
  return { status: absent.length === 0 ? 200 : 206, ascii: true, body, cacheControl: 'no-store' };
};
