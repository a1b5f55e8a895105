// GET /api/v1/reports: the report that is valid at a timestamp, or why there is none.
import { ApiError, type FeedId, type QueryOf } from '@sealpost/protocol';
import { tagOfRendered } from '../../store/format/rendered-report.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { Neighbours, RenderedReport, ReportStore, Window } from '../../store/store.ts';
import { type Answer, isNotModified } from '../answer.ts';
import type { Handler, RouteContext } from './context.ts';

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

export const reportAt: Handler<'reportAt'> = async (query, context) => {
  const [found] = await context.reports.renderedAt([query.feedId], query.timestamp);
  return found === undefined || found.observationsMs < retentionEdgeMs(context.reportNowMs, context.retentionDays)
    ? answerMiss(query, context)
    : answerWith(found, context);
};

export type MissReason = 'not_yet' | 'gap' | 'before_first' | 'no_reports' | 'damaged';

const texts: Readonly<Record<Exclude<MissReason, 'no_reports'>, string>> = {
  not_yet: 'No report is valid at this time yet: it is after the newest one.',
  gap: 'No report is valid at this time: it falls into a gap.',
  before_first: 'No report is valid at this time: it is before the oldest one kept.',
  damaged: 'The report for this time is damaged in the store and cannot be served. Other times are not affected.',
};

/** What an explanation is made from. */
type MissContext = Pick<RouteContext, 'admin' | 'retentionDays'> & { readonly reports: Pick<ReportStore, 'latest'> };

/** Why a stream has no visible report, so that the caller can tell whether to retry. */
const explainNoReports = ({ reports, admin, retentionDays }: MissContext, feedId: FeedId): string => {
  const decommissionedAt = admin.streams.get(feedId)?.decommissionedAt;
  if (decommissionedAt) return `The stream was decommissioned on ${decommissionedAt.slice(0, 10)} and has no reports.`;
  if (reports.latest(feedId) !== undefined) return `The stream has no report in the last ${retentionDays} days.`;
  return 'The stream has no report yet.';
};

/** The reason that two neighbors give, or that the report between them is corrupt. */
export function reasonOf({ previous, next, damaged }: Neighbours): MissReason {
  if (damaged) return 'damaged';
  if (previous === undefined) return next === undefined ? 'no_reports' : 'before_first';
  return next === undefined ? 'not_yet' : 'gap';
}

/** Neighbors of a second. `hasArrived`: its own report came after the second was read, and is none of them. */
type VisibleNeighbours = Neighbours & { readonly hasArrived: boolean };

const holds = ({ validFromMs, observationsMs }: Window, seconds: number): boolean =>
  Math.floor(validFromMs / 1_000) <= seconds && seconds <= Math.floor(observationsMs / 1_000);

/** The neighbors of a second that was read without result, without what retention hides. */
export async function visibleNeighbours(
  context: RouteContext,
  feedId: FeedId,
  seconds: number,
): Promise<VisibleNeighbours> {
  const { previous, next, damaged } = await context.reports.neighbours(feedId, seconds);
  const visible = (window: Window | undefined) =>
    window !== undefined && window.observationsMs >= retentionEdgeMs(context.reportNowMs, context.retentionDays)
      ? window
      : undefined;
  const isHidden = (seconds + 1) * 1_000 <= retentionEdgeMs(context.reportNowMs, context.retentionDays);
  const hasArrived = next !== undefined && holds(next, seconds) && damaged !== true;
  return {
    previous: visible(previous),
    next: hasArrived ? undefined : visible(next),
    hasArrived,
    ...(damaged && !isHidden && { damaged }),
  };
}

const toSeconds = (window: Window | undefined) =>
  window === undefined
    ? null
    : {
        validFromTimestamp: Math.floor(window.validFromMs / 1_000),
        observationsTimestamp: Math.floor(window.observationsMs / 1_000),
      };

/** The 404 that explains itself. */
export function missError(context: MissContext, feedId: FeedId, neighbours: Neighbours): ApiError {
  const reason = reasonOf(neighbours);
  const text = reason === 'no_reports' ? explainNoReports(context, feedId) : texts[reason];
  return new ApiError('report_not_found', text, {
    reason,
    previous: toSeconds(neighbours.previous),
    next: toSeconds(neighbours.next),
  });
}
