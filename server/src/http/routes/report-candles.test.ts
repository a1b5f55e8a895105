import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const [feedId, now] = [secondStream(1), 1_763_200_030]; // within a minute and within an hour
const oldest = now - 30 * 86_400;
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  service = await openService([testStream(feedId)], signerSets, () => now * 1_000);
  const offsets = [-7_200, -61, -29, -1, 0, 31, 60, 3_600, 86_400, 2 * 86_400];
  await service.append(offsets.map((offset) => ({ ...report(feedId, oldest + offset, oldest + offset), price: 1n })));
  reader = await service.addAccount(['public']);
});
afterAll(() => service.close());

test.each([
  [60, 1],
  [300, 0],
  [3_600, 1],
])('candles: no bucket of %i s begins before retention', async (resolution, reportsWithin) => {
  const target = `/api/v1/reports/candles?feedID=${feedId}&from=${oldest}&to=${oldest + 1_000}&resolution=${resolution}`;
  const { status, json } = await service.call(target, { as: reader });
  const candles = json.candles as { readonly timestamp: number; readonly reports: number }[];
  expect([status, candles.filter(({ timestamp }) => timestamp < oldest)]).toEqual([200, []]);
  expect(candles.reduce((sum, { reports }) => sum + reports, 0)).toBe(reportsWithin);
});

test('candles: buckets within retention are whole', async () => {
  const target = `/api/v1/reports/candles?feedID=${feedId}&from=${oldest}&to=${now}&resolution=3600`;
  const { json } = await service.call(target, { as: reader });
  const firstHour = Math.ceil(oldest / 3_600) * 3_600;
  expect(json.candles).toMatchObject([
    { timestamp: firstHour, reports: 1 },
    { timestamp: Math.floor((oldest + 86_400) / 3_600) * 3_600, reports: 1 },
    { timestamp: Math.floor((oldest + 2 * 86_400) / 3_600) * 3_600, reports: 1 },
  ]);
});
