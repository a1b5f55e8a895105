// GET /api/v1/reports/bulk: several streams at one timestamp, in the order asked for; 206 when some have no data.
import type { FeedId, QueryOf } from '@sealpost/protocol';
import { runForClient } from '../../access/long-work.ts';
import { retentionEdgeMs } from '../../store/retention.ts';
import type { RenderedReport } from '../../store/store.ts';
import type { Answer } from '../answer.ts';
import type { Handler, RouteContext } from './context.ts';
import { type MissReason, reasonOf, visibleNeighbours } from './report-at.ts';
import { listBody } from './report-bodies.ts';

type Found = readonly (RenderedReport | undefined)[];

/** Streams that are read at once: the embedded engine takes some 20 µs for each. */
const foundAtOnce = 100;

export const reportBulk: Handler<'reportBulk'> = async (query, context) => {
  const { reports, longWork, userId, client } = context;
  const { feedIds, timestamp } = query;
  const found =
    feedIds.length <= foundAtOnce
      ? reports.renderedAt(feedIds, timestamp)
      : runForClient(longWork, userId, client, async (slice) => {
          const all: (RenderedReport | undefined)[] = [];
          while (all.length < feedIds.length)
            await slice(async () => {
              all.push(...(await reports.renderedAt(feedIds.slice(all.length, all.length + foundAtOnce), timestamp)));
            });
          return all;
        });
  return answer(query, context, await found);
};

const answer = (query: QueryOf<'reportBulk'>, context: RouteContext, found: Found): Answer | Promise<Answer> => {
  const isThere = (report: RenderedReport | undefined): report is RenderedReport =>
    report !== undefined && report.observationsMs >= retentionEdgeMs(context.reportNowMs, context.retentionDays);
  const reports = found.filter(isThere).map(({ json }) => json);
  if (reports.length === query.feedIds.length)
    return { status: 200, body: listBody('reports', reports), cacheControl: 'no-store' };
  const absent = query.feedIds.filter((_, i) => !isThere(found[i]));
  return answerPart(query, context, reports, absent);
};

type Missing = { readonly feedID: FeedId; readonly reason: MissReason };

/** Streams whose neighbors are read at once, within 1 ms on the embedded engine; those of more streams are read in slices (D140). */
const readAtOnce = 8;

const readReasons = (
  context: RouteContext,
  absent: readonly FeedId[],
  timestamp: number,
): Promise<readonly Missing[]> => {
  const readSome = (some: readonly FeedId[]): Promise<readonly Missing[]> =>
    Promise.all(
      some.map(async (feedID) => ({ feedID, reason: reasonOf(await visibleNeighbours(context, feedID, timestamp)) })),
    );
  if (absent.length <= readAtOnce) return readSome(absent);
  return runForClient(context.longWork, context.userId, context.client, async (slice) => {
    const missing: Missing[] = [];
    while (missing.length < absent.length)
      await slice(async (isOver) => {
        do missing.push(...(await readSome(absent.slice(missing.length, missing.length + readAtOnce))));
        while (missing.length < absent.length && !isOver());
      });
    return missing;
  });
};

const answerPart = async (
  { timestamp, missing }: QueryOf<'reportBulk'>,
  context: RouteContext,
  reports: readonly Buffer[],
  absent: readonly FeedId[],
): Promise<Answer> => {
  const rest = missing ? `,"missing":${JSON.stringify(await readReasons(context, absent, timestamp))}` : '';
  return { status: 206, body: listBody('reports', reports, rest), cacheControl: 'no-store' };
};
