import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../../tests/support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const [feedId, fastId, now] = [secondStream(1), millisecondStream(1), 1_763_200_030]; // within a minute and within an hour
const oldest = now - 30 * 86_400;
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  service = await openService([testStream(feedId), testStream(fastId)], signerSets, () => now * 1_000);
  const offsets = [-7_200, -61, -29, -1, 0, 31, 60, 3_600, 86_400, 2 * 86_400];
  await service.append(offsets.map((offset) => ({ ...report(feedId, oldest + offset, oldest + offset), price: 1n })));
  reader = await service.addAccount(['public']);
});
afterAll(() => service.close());

test.each([
  [1, 3],
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

describe('candles of a second', () => {
  type Row = { readonly timestamp: number; readonly reports: number };
  const start = now - 1_500;
  const read = async (id: string, from: number, to: number) => {
    const target = `/api/v1/reports/candles?feedID=${id}&from=${from}&to=${to}&resolution=1`;
    const { status, json } = await service.call(target, { as: reader });
    return { status, json, candles: json.candles as readonly (Row & Readonly<Record<string, string>>)[] };
  };

  test('they are read from reports, exactly, whole seconds only, and the longest range is 1,440', async () => {
    const offsets = Array.from({ length: 250 }, (_, i) => i * 5);
    await service.append(offsets.map((offset) => report(feedId, start + offset, start + offset, -BigInt(offset))));
    const { candles } = await read(feedId, start + 1, start + 1_440);
    const [price, expected] = ['-5', offsets.slice(1).map((offset) => start + offset)];
    expect(candles.map(({ timestamp }) => timestamp)).toEqual(expected);
    expect(candles[0]).toEqual({
      timestamp: start + 5,
      open: price,
      high: price,
      low: price,
      close: price,
      reports: 1,
    });
    expect((await read(feedId, start, start + 1_440)).status).toBe(400);
  });

  test('a second of a millisecond stream with more reports than one slice reads is one candle', async () => {
    const ms = (second: number, i: number) => (start + second) * 1_000 + i;
    const counts = [150, 1_000, 0, 3];
    await service.append(
      counts.flatMap((count, second) =>
        Array.from({ length: count }, (_, i) => report(fastId, ms(second, i), ms(second, i), BigInt(i + second))),
      ),
    );
    const { candles } = await read(fastId, start, start + 2);
    expect(candles).toEqual([
      { timestamp: start, open: '0', high: '149', low: '0', close: '149', reports: 150 },
      { timestamp: start + 1, open: '1', high: '1000', low: '1', close: '1000', reports: 1_000 },
    ]);
    expect((await read(fastId, start + 2, start + 3)).candles).toMatchObject([{ timestamp: start + 3, reports: 3 }]);
  });
});
