// GET /api/v1/reports/page: sequential reports, oldest first, with a link to the next page, or one that marks the last (D95). A header says when
// corrupt reports are left out (D120).
import { routes } from '@sealpost/protocol';
import { runInTurn } from '../../access/long-work.ts';
import type { Handler } from './context.ts';
import { listBody } from './report-bodies.ts';

/** Pages of more reports than this, 170 KB, are made one at a time for each account. */
const reportsAtOnceMax = 100;

export const reportPage: Handler<'reportPage'> = async (query, context) => {
  const { reports, longWork, userId, client } = context;
  const { feedId, startTimestamp, limit } = query;
  const read = () => reports.renderedPage(feedId, startTimestamp, limit);
  const page = limit <= reportsAtOnceMax ? read() : runInTurn(longWork, userId, client, read);
  const { json, lastMs, more, damaged } = await page;
  const isLast = !more || lastMs === undefined;
  const start = isLast ? startTimestamp : Math.floor(lastMs / 1_000) + 1;
  const target = `${routes.reportPage.path}?feedID=${feedId}&startTimestamp=${start}&limit=${limit}`;
  const link = `<${target}>; rel="${isLast ? 'last' : 'next'}"`;
  const headers = damaged ? ['Link', link, 'Sealpost-Missing', 'damaged'] : ['Link', link];
  return { status: 200, body: listBody('reports', [json]), cacheControl: 'no-store', headers };
};
