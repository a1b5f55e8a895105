import { type FeedId, parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import type { LatestReport } from '../../store/store.ts';
import type { RouteContext } from './context.ts';
import { createLatestManyRoute } from './report-latest.ts';

const [eth, btc] = ['1', '2'].map((digit) => parseFeedId(`0x0003${digit.padStart(60, '0')}`)) as [FeedId, FeedId]; // two
const reportOf = (text: string, observationsMs = 86_400_000): LatestReport => ({
  validFromMs: observationsMs,
  observationsMs,
  tag: text,
  json: `{"report":"${text}"}`,
});

const newest = new Map([
  [eth, reportOf('eth')],
  [btc, reportOf('btc')],
]);
const context = {
  reports: { latest: (feedId: FeedId) => newest.get(feedId) },
  reportNowMs: 2 * 86_400_000,
  retentionDays: 30,
} as unknown as RouteContext; // all that it reads

test('latest of several: a new report of one stream is in the next answer, and one beyond retention is in none', async () => {
  const route = createLatestManyRoute();
  const query = { feedIds: [eth, btc], missing: false };
  const first = await route(query, context);
  expect(String(first.body)).toBe('{"reports":["eth","btc"]}');
  expect((await route(query, context)).body).toBe(first.body);
  newest.set(btc, reportOf('newer'));
  expect(String((await route(query, context)).body)).toBe('{"reports":["eth","newer"]}');
  newest.set(btc, reportOf('btc'));
  const later = await route(query, { ...context, reportNowMs: 40 * 86_400_000 });
  expect([later.status, String(later.body)]).toEqual([206, '{"reports":[]}']);
});

test('latest of several: what is kept is bounded, and an answer is right whether it was kept or not', async () => {
  const route = createLatestManyRoute();
  const large = 'x'.repeat(1_500_000);
  newest.set(eth, reportOf(large)).set(btc, reportOf('btc'));
  const [one, other] = [
    { feedIds: [eth], missing: false },
    { feedIds: [eth, btc], missing: false },
  ];
  const kept = await route(one, context);
  expect((await route(one, context)).body === kept.body).toBe(true);
  expect(String((await route(other, context)).body) === `{"reports":["${large}","btc"]}`).toBe(true);
  const again = await route(one, context);
  expect(again.body === kept.body).toBe(false);
  expect(String(again.body) === String(kept.body)).toBe(true);
});
