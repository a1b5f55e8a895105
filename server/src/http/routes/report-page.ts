// GET /api/v1/reports/page: sequential reports, oldest first, with a link to the next page while there is more.
import { routes } from '@sealpost/protocol';
import { renderReports } from '../report-bodies.ts';
import type { Handler } from './context.ts';

export const reportPage: Handler<'reportPage'> = async ({ feedId, startTimestamp, limit }, context) => {
  const { reports, more } = await context.reports.page(feedId, startTimestamp, limit);
  const last = reports.at(-1);
  const body = renderReports(reports);
  if (!more || last === undefined) return { status: 200, ascii: true, body, cacheControl: 'no-store' };
  const next = `${routes.reportPage.path}?feedID=${feedId}&startTimestamp=${Math.floor(last.observationsMs / 1_000) + 1}&limit=${limit}`;
  return { status: 200, ascii: true, body, cacheControl: 'no-store', headers: ['Link', `<${next}>; rel="next"`] };
};
