// Owns the explained miss: why no report holds at a moment, and what lies on both sides of it (D7).
import { ApiError, type FeedId } from '@sealpost/protocol';
import type { Neighbours, Window } from '../../store/store.ts';
import type { RouteContext } from './context.ts';

export type MissReason = 'not_yet' | 'gap' | 'before_first' | 'no_reports';

/** Reports observed before this moment are invisible, trimmed or not. */
export const oldestMs = ({ nowMs, retentionDays }: Pick<RouteContext, 'nowMs' | 'retentionDays'>): number =>
  nowMs - retentionDays * 86_400_000;

const texts: Readonly<Record<MissReason, string>> = {
  not_yet: 'No report holds at this moment yet: it is after the newest one.',
  gap: 'No report holds at this moment: it falls into a gap.',
  before_first: 'No report holds at this moment: it is before the oldest one kept.',
  no_reports: 'The stream has no report yet.',
};

/** The reason that two neighbours give. */
export const reasonOf = ({ previous, next }: Neighbours): MissReason => {
  if (previous === undefined) return next === undefined ? 'no_reports' : 'before_first';
  return next === undefined ? 'not_yet' : 'gap';
};

/** The neighbours of a second, leaving out what retention hides. */
export const visibleNeighbours = async (
  context: RouteContext,
  feedId: FeedId,
  seconds: number,
): Promise<Neighbours> => {
  const { previous, next } = await context.reports.neighbours(feedId, seconds);
  const visible = (window: Window | undefined) =>
    window !== undefined && window.observationsMs >= oldestMs(context) ? window : undefined;
  return { previous: visible(previous), next: visible(next) };
};

const toSeconds = (window: Window | undefined) =>
  window === undefined
    ? null
    : {
        validFromTimestamp: Math.floor(window.validFromMs / 1_000),
        observationsTimestamp: Math.floor(window.observationsMs / 1_000),
      };

/** The 404 that explains itself. */
export const missError = (neighbours: Neighbours): ApiError => {
  const reason = reasonOf(neighbours);
  return new ApiError('report_not_found', texts[reason], {
    reason,
    previous: toSeconds(neighbours.previous),
    next: toSeconds(neighbours.next),
  });
};
