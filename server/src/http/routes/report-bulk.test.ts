import { type FeedId, parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createLongWork } from '../../access/long-work.ts';
import type { RouteContext } from './context.ts';
import { reportBulk } from './report-bulk.ts';

const feedIds: readonly FeedId[] = Array.from({ length: 100 }, (_, i) =>
  parseFeedId(`0x0003${(i + 1).toString(16).padStart(60, '0')}`),
);

test('bulk: why many streams have no report is read in slices, between which the event loop is free, and told in their order', async () => {
  let nowMs = 0;
  let [inTurn, most, isOver] = [0, 0, false];
  const turn = (): void => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  turn();
  const reports = {
    renderedAt: async () => feedIds.map(() => undefined),
    neighbours: async (feedId: FeedId) => {
      nowMs += 0.2;
      inTurn += 1;
      most = Math.max(most, inTurn);
      const window = { validFromMs: 1_000_000, observationsMs: 1_000_000 };
      return { previous: feedId === feedIds[7] ? window : undefined, next: window };
    },
  };
  const context = {
    ...{ reports, longWork: createLongWork(() => nowMs), userId: 'one', client: { destroyed: false } },
    ...{ reportNowMs: 2_000_000, retentionDays: 1 },
  } as unknown as RouteContext; // as much of it as the route reads
  const { status, body } = await reportBulk({ feedIds, timestamp: 1_500, missing: true }, context);
  isOver = true;
  const text = Buffer.concat(Array.isArray(body) ? body : [body as Buffer]).toString(); // a list of pieces, or one
  const { reports: found, missing } = JSON.parse(text);
  expect([status, found]).toEqual([206, []]);
  expect(missing).toEqual(feedIds.map((feedID, i) => ({ feedID, reason: i === 7 ? 'gap' : 'before_first' })));
  expect(most).toBeLessThanOrEqual(24); // 2 ms of 0.2 each, in groups of 8
});
