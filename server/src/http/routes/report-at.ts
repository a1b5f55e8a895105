// GET /api/v1/reports: the report that is valid at a timestamp, or why there is none.
import type { QueryOf } from '@sealpost/protocol';
import { tagOfRendered } from '../../store/format/rendered-report.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { RenderedReport } from '../../store/store.ts';
import { type Answer, isNotModified } from '../answer.ts';
import type { Handler, RouteContext } from './context.ts';
import { missError, visibleNeighbours } from './report-miss.ts';

const cacheControl = 'private, no-cache';

type Whole = { readonly tag: string; readonly body: string };

const wholeOf = ({ json }: RenderedReport): Whole => ({
  tag: tagOfRendered(json),
  body: `{"report":${json.toString('latin1')}}`,
});

const answerWith = ({ tag, body }: Whole, { ifNoneMatch }: RouteContext): Answer =>
  isNotModified(ifNoneMatch, tag)
    ? { status: 304, cacheControl, tag }
    : { status: 200, ascii: true, body, cacheControl, tag };

/** Explains why there is none; if one arrived while that was read, it is the answer. */
const answerMiss = async ({ feedId, timestamp }: QueryOf<'reportAt'>, context: RouteContext): Promise<Answer> => {
  const neighbours = await visibleNeighbours(context, feedId, timestamp);
  const [late] = neighbours.hasArrived ? await context.reports.renderedAt([feedId], timestamp) : [];
  if (late !== undefined) return answerWith(wholeOf(late), context);
  throw missError(context, feedId, neighbours);
};

/** Keeps the body for as long as the store gives the same rendered report: many clients ask for the same second. */
export const createReportAtRoute = (): Handler<'reportAt'> => {
  const known = new WeakMap<RenderedReport, Whole>();
  const knownOf = (report: RenderedReport): Whole => {
    const before = known.get(report);
    if (before !== undefined) return before;
    const whole = wholeOf(report);
    known.set(report, whole);
    return whole;
  };
  const answer = (
    query: QueryOf<'reportAt'>,
    context: RouteContext,
    found: RenderedReport | undefined,
    make: (report: RenderedReport) => Whole,
  ): Answer | Promise<Answer> => {
    if (found === undefined || found.observationsMs < retentionEdgeMs(context.reportNowMs, context.retentionDays))
      return answerMiss(query, context);
    return answerWith(make(found), context);
  };
  return (query, context) => {
    const found = context.reports.renderedAt([query.feedId], query.timestamp);
    return found instanceof Promise
      ? found.then(([late]) => answer(query, context, late, wholeOf)) // read for this request alone
      : answer(query, context, found[0], knownOf);
  };
};
