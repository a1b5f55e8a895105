// GET /api/v1/reports: the report that is valid at a timestamp, or why there is none.
import type { QueryOf } from '@sealpost/protocol';
import { tagOfRendered } from '../../store/format/rendered-report.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { RenderedReport } from '../../store/store.ts';
import { type Answer, isNotModified } from '../answer.ts';
import type { Handler, RouteContext } from './context.ts';
import { missError, visibleNeighbours } from './report-miss.ts';

const cacheControl = 'private, no-cache';

const answerWith = ({ json }: RenderedReport, { ifNoneMatch }: RouteContext): Answer => {
  const tag = tagOfRendered(json);
  return isNotModified(ifNoneMatch, tag)
    ? { status: 304, cacheControl, tag }
    : { status: 200, ascii: true, body: `{"report":${json.toString('latin1')}}`, cacheControl, tag };
};

/** Explains why there is none; if one arrived while that was read, it is the answer. */
const answerMiss = async ({ feedId, timestamp }: QueryOf<'reportAt'>, context: RouteContext): Promise<Answer> => {
  const neighbours = await visibleNeighbours(context, feedId, timestamp);
  const [late] = neighbours.hasArrived ? await context.reports.renderedAt([feedId], timestamp) : [];
  if (late !== undefined) return answerWith(late, context);
  throw missError(context, feedId, neighbours);
};

export const reportAt: Handler<'reportAt'> = (query, context) => {
  const answer = ([found]: readonly (RenderedReport | undefined)[]): Answer | Promise<Answer> =>
    found === undefined || found.observationsMs < retentionEdgeMs(context.reportNowMs, context.retentionDays)
      ? answerMiss(query, context)
      : answerWith(found, context);
  const found = context.reports.renderedAt([query.feedId], query.timestamp);
  return found instanceof Promise ? found.then(answer) : answer(found);
};
