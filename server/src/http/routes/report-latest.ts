// GET /api/v1/reports/latest: bytes that were rendered when the report came in.

import type { FeedId } from '@sealpost/protocol';
import { createValuesByObject } from '../../runtime/kept-values.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { LatestReport } from '../../store/store.ts';
import { isNotModified } from '../answer.ts';
import type { Handler } from './context.ts';
import { missError } from './report-at.ts';

export const reportLatest: Handler<'reportLatest'> = ({ feedId }, context) => {
  const latest = context.reports.latest(feedId);
  if (latest === undefined || latest.observationsMs < retentionEdgeMs(context.reportNowMs, context.retentionDays))
    throw missError(context, feedId, { previous: undefined, next: undefined });
  const { tag, json } = latest;
  if (isNotModified(context.ifNoneMatch, tag)) return { status: 304, cacheControl: 'no-store', tag };
  return { status: 200, ascii: true, body: json, cacheControl: 'no-store', tag };
};

/** What a stream's own answer has around its report. */
const [opening, closing] = ['{"report":', '}'];

/** Bytes of all kept bodies. */
const keptBytesMax = 2_000_000;

type Kept = { readonly reports: readonly LatestReport[]; readonly body: Buffer };

/** Keeps the body of a complete answer until one of its streams has a newer report: many clients ask for the same streams. */
export function createLatestManyRoute(): Handler<'reportLatestMany'> {
  // By the list itself: the parser gives the same one for the same text.
  const kept = createValuesByObject<readonly FeedId[], Kept>(keptBytesMax);
  const bodyOf = (feedIds: readonly FeedId[], reports: readonly LatestReport[]): Buffer => {
    const known = kept.get(feedIds);
    if (known?.reports.every((report, i) => report === reports[i])) return known.body;
    const body = Buffer.from(`{"reports":[${joinReports(reports)}]}`, 'latin1');
    kept.put(feedIds, { reports, body }, body.length);
    return body;
  };
  return ({ feedIds, missing }, context) => {
    const oldest = retentionEdgeMs(context.reportNowMs, context.retentionDays);
    const reports: LatestReport[] = [];
    const absent: { readonly feedID: FeedId; readonly reason: 'no_reports' }[] = [];
    for (const feedID of feedIds) {
      const latest = context.reports.latest(feedID);
      if (latest === undefined || latest.observationsMs < oldest) absent.push({ feedID, reason: 'no_reports' });
      else reports.push(latest);
    }
    if (absent.length === 0) return { status: 200, body: bodyOf(feedIds, reports), cacheControl: 'no-store' };
    const rest = missing ? `,"missing":${JSON.stringify(absent)}` : '';
    const body = `{"reports":[${joinReports(reports)}]${rest}}`;
    return { status: 206, ascii: true, body, cacheControl: 'no-store' };
  };
}

const joinReports = (reports: readonly LatestReport[]): string =>
  reports.map(({ json }) => json.slice(opening.length, -closing.length)).join(',');
