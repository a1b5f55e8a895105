import type { FeedId } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Credentials, openService, type ReadParts, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const [ended, silent, aged, edge, arriving] = [1, 2, 3, 4, 5].map(secondStream) as [
  FeedId,
  FeedId,
  FeedId,
  FeedId,
  FeedId,
]; // one for each number
const now = 1_763_200_000;
const oldest = now - 30 * 86_400;
let nowMs = now * 1_000;
/** Happens between the read of a report and that of its neighbors. */
let meanwhile: (() => Promise<unknown>) | undefined;
let service: Service;
let reader: Credentials;

const withPause = (parts: ReadParts): ReadParts => {
  const { reports } = parts.store;
  const neighbours: typeof reports.neighbours = async (...asked) => {
    const happens = meanwhile;
    meanwhile = undefined;
    await happens?.();
    return reports.neighbours(...asked);
  };
  return { ...parts, store: { ...parts.store, reports: { ...reports, neighbours } } };
};

beforeAll(async () => {
  const decommissioned = { status: 'decommissioned', decommissionedAt: '2025-06-01T00:00:00.000000Z' } as const;
  const streams = [
    testStream(ended, decommissioned),
    ...[silent, aged, edge, arriving].map((feedId) => testStream(feedId)),
  ];
  service = await openService(streams, signerSets, () => nowMs, undefined, undefined, withPause);
  const old = now - 31 * 86_400;
  await service.append([report(aged, old, old)]);
  await service.append([oldest, oldest + 2].map((second) => report(edge, second, second)));
  reader = await service.addAccount(['public']);
});
afterAll(() => service.close());

test.each([
  ['decommissioned', ended, 'The stream was decommissioned on 2025-06-01 and has no reports.'],
  ['waiting for its first report', silent, 'The stream has no report yet.'],
  ['with reports older than retention', aged, 'The stream has no report in the last 30 days.'],
])('miss: the error for a stream %s says so', async (_, feedId, message) => {
  for (const target of [`/latest?feedID=${feedId}`, `?feedID=${feedId}&timestamp=${now}`])
    expect(await service.call(`/api/v1/reports${target}`, { as: reader })).toMatchObject({
      status: 404,
      json: { code: 'report_not_found', message, reason: 'no_reports', previous: null, next: null },
    });
});

const get = (target: string) => service.call(`/api/v1/reports${target}`, { as: reader });

test.each([0, 1, 500, 999])(
  'miss: retention is in whole seconds on every route, %i ms after one as well as at it',
  async (ms) => {
    nowMs = now * 1_000 + ms;
    expect((await get(`?feedID=${edge}&timestamp=${oldest}`)).status).toBe(200);
    const bulk = await get(`/bulk?feedIDs=${edge},${arriving}&timestamp=${oldest}&missing=true`);
    expect(bulk.json).toMatchObject({ reports: [{ feedID: edge }], missing: [{ reason: 'no_reports' }] });
    const page = await get(`/page?feedID=${edge}&startTimestamp=${oldest}&limit=10`);
    expect(page.json).toMatchObject({
      reports: [{ observationsTimestamp: oldest }, { observationsTimestamp: oldest + 2 }],
    });
    expect((await get(`?feedID=${edge}&timestamp=${oldest + 1}`)).json).toMatchObject({
      reason: 'gap',
      previous: { observationsTimestamp: oldest },
      next: { observationsTimestamp: oldest + 2 },
    });
    expect((await get(`?feedID=${edge}&timestamp=${oldest - 1}`)).json).toMatchObject({
      code: 'timestamp_out_of_bounds',
      oldestTimestamp: oldest,
    });
    nowMs = now * 1_000;
  },
);

test('miss: a report that arrives while the reason is read is sent, or awaited by one who asks for several', async () => {
  const arrives = (second: number) => () => service.append([report(arriving, second, second)]);
  await service.append([report(arriving, now - 20, now - 20)]);
  meanwhile = arrives(now - 10);
  expect(await get(`?feedID=${arriving}&timestamp=${now - 10}`)).toMatchObject({
    status: 200,
    json: { report: { observationsTimestamp: now - 10 } },
  });
  meanwhile = arrives(now - 5);
  expect(await get(`/bulk?feedIDs=${arriving},${silent}&timestamp=${now - 5}&missing=true`)).toMatchObject({
    status: 206,
    json: {
      reports: [],
      missing: [
        { feedID: arriving, reason: 'not_yet' },
        { feedID: silent, reason: 'no_reports' },
      ],
    },
  });
});
