// GET /api/v1/reports/coverage: gaps and completeness of a span. An extension of ours.
import { limits } from '@sealpost/protocol';
import { coverageOf, windowsTouching } from '../../store/coverage.ts';
import type { Handler } from './context.ts';
import { checkSpan } from './span.ts';

export const reportCoverage: Handler<'reportCoverage'> = async ({ feedId, from, to }, { reports }) => {
  checkSpan(from, to, limits.coverageSecondsMax);
  const span = { from, to };
  return {
    status: 200,
    body: JSON.stringify(await coverageOf(windowsTouching(reports, feedId, span), span)),
    cacheControl: 'no-store',
  };
};
