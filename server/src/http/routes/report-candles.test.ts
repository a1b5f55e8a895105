import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../../tests/support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const [feedId, fastId, now] = [secondStream(1), millisecondStream(1), 1_763_200_030]; // within a minute and within an hour
const many = Array.from({ length: 40 }, (_, i) => secondStream(2 + i));
const oldest = now - 30 * 86_400;
let service: Service;
let reader: Credentials;
let passedMs = 0;

beforeAll(async () => {
  service = await openService(
    [feedId, fastId, ...many].map((id) => testStream(id)),
    signerSets,
    () => now * 1_000,
    {},
    () => performance.now() + passedMs,
  );
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

describe('candles of several streams', () => {
  const [one, two] = [secondStream(2), secondStream(3)];
  const hour = Math.floor(now / 3_600) * 3_600;
  const target = (ids: readonly string[], from: number, to: number, resolution: number) =>
    `/api/v1/reports/candles/bulk?feedIDs=${ids.join(',')}&from=${from}&to=${to}&resolution=${resolution}`;
  const single = async (id: string, from: number, to: number, resolution: number) =>
    (
      await service.call(`/api/v1/reports/candles?feedID=${id}&from=${from}&to=${to}&resolution=${resolution}`, {
        as: reader,
      })
    ).json.candles;
  const priced = (id: typeof one, second: number) => ({ ...report(id, second, second, 7n), price: 7n });
  const read = async (ids: readonly string[], from: number, to: number, resolution: number) =>
    service.call(target(ids, from, to, resolution), { as: reader });

  test('each stream has what the route for one answers, in the order asked for, and one without reports has none', async () => {
    await service.append([-90_000, -7_300, -3_700, -60, -1].map((offset) => priced(one, now + offset)));
    for (const [from, resolution] of [
      [now - 86_400, 3_600],
      [now - 86_400, 900],
      [oldest, 86_400],
      [now - 90, 1],
    ] as const) {
      const { status, json } = await read([two, one, two], from, now, resolution);
      expect([status, json]).toEqual([
        200,
        {
          streams: [
            { feedID: two, candles: [] },
            { feedID: one, candles: await single(one, from, now, resolution) },
          ],
        },
      ]);
      expect(await single(one, from, now, resolution)).not.toEqual([]);
    }
  });

  test('a new report is in the next answer, and a late one once what is kept is old', async () => {
    const [from, to] = [hour - 4 * 3_600, hour - 3_601]; // three hours before those of the other tests
    const counts = async () => {
      const { json } = await read([two], from, to, 3_600);
      const [{ candles = [] } = {}] = json.streams as { candles: { timestamp: number; reports: number }[] }[];
      return candles.map(({ timestamp, reports }) => [timestamp - from, reports]);
    };
    await service.append([priced(two, from + 100)]);
    expect(await counts()).toEqual([[0, 1]]);
    await service.append([priced(two, from + 200)]);
    expect(await counts()).toEqual([[0, 2]]);
    await service.append([priced(two, from + 3_700)]);
    expect(await counts()).toEqual([
      [0, 2],
      [3_600, 1],
    ]);
    await service.append([priced(two, from + 300), priced(two, from + 3_800)]);
    expect(await counts()).toEqual([
      [0, 2],
      [3_600, 2],
    ]);
    passedMs += 10_000;
    expect(await counts()).toEqual([
      [0, 3],
      [3_600, 2],
    ]);
  });

  test('streams times buckets are bounded, and a stream that may not be read is named', async () => {
    const far = secondStream(99);
    expect(await read([one, far], now - 60, now, 60)).toMatchObject({ status: 401, json: { feedID: far } });
    const hours = (count: number) => read(many, hour - (count - 1) * 3_600, hour, 3_600);
    expect((await hours(500)).status).toBe(200);
    expect(await hours(501)).toMatchObject({ status: 400, json: { code: 'malformed_argument', argument: 'to' } });
    expect((await read([one], hour - 1_440 * 60, hour, 60)).status).toBe(400);
    expect((await read([one], now, now - 1, 60)).status).toBe(400);
  });
});
