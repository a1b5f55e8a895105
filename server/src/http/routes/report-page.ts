// GET /api/v1/reports/page: sequential reports, oldest first, with a link to the next page while there is more.
import { routes } from '@sealpost/protocol';
import { reportsBody } from '../report-bodies.ts';
import type { Handler } from './context.ts';

export const reportPage: Handler<'reportPage'> = async ({ feedId, startTimestamp, limit }, context) => {
  const { json, lastMs, more } = await context.reports.renderedPage(feedId, startTimestamp, limit);
  const body = reportsBody(json);
  if (!more || lastMs === undefined) return { status: 200, body, cacheControl: 'no-store' };
  const next = `${routes.reportPage.path}?feedID=${feedId}&startTimestamp=${Math.floor(lastMs / 1_000) + 1}&limit=${limit}`;
  return { status: 200, body, cacheControl: 'no-store', headers: ['Link', `<${next}>; rel="next"`] };
};
