// The contract of candles, and of what appending, retention and both at the same time do to them, to counts and to positions, as tests.
import { expect } from 'vitest';
import type { Candle } from './candle-rollup.ts';
import type { AppendOutcome, NewReport, Store } from './store.ts';
import { type Contract, other, report, seconds, stream, t0, trimAll } from './store-samples.fixture.ts';

/** The candles of reports in ascending order, worked out one by one. */
export const expectedCandles = (reports: readonly NewReport[], resolution: number): readonly Candle[] => {
  const buckets = new Map<number, bigint[]>();
  for (const { observationsMs, price = 0n } of reports) {
    const start = Math.floor(observationsMs / 1_000 / resolution) * resolution;
    buckets.set(start, [...(buckets.get(start) ?? []), price]);
  }
  return [...buckets].map(([start, prices]) => {
    const [low, high] = [prices.toSorted(compare)[0], prices.toSorted(compare).at(-1)];
    return { start, open: prices[0], high, low, close: prices.at(-1), reports: prices.length } as Candle; // one price at least
  });
};

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

export const testCandles = (contract: Contract, store: () => Store, reopen: () => Promise<void>): void => {
  contract('minutes roll up the prices of their reports, exactly, whatever order they come in', async () => {
    const minute = Math.floor(t0 / 60) * 60;
    const priced = (second: number, price: bigint) => ({ ...report(stream, second, second, price), price });
    const far = -(2n ** 191n);
    await store().reports.append([priced(minute + 10, 5n), priced(minute + 30, far), priced(minute + 61, 9n)]);
    await store().reports.append([priced(minute + 5, 7n), priced(minute + 20, 2n ** 191n - 1n)]);
    await store().reports.append([priced(minute + 5, 7n), report(stream, minute + 40, minute + 40)]);
    await reopen();
    const first = { start: minute, open: 7n, high: 2n ** 191n - 1n, low: far, close: far, reports: 4 };
    const second = { start: minute + 60, open: 9n, high: 9n, low: 9n, close: 9n, reports: 1 };
    const minutes = (feedId: typeof stream, from: number, to: number) =>
      store().reports.candles(feedId, { from, to, resolution: 60 });
    expect(await minutes(stream, minute, minute + 60)).toEqual([first, second]);
    expect(await minutes(stream, minute + 1, minute + 59)).toEqual([]);
    expect(await minutes(other, minute, minute + 60)).toEqual([]);
  });

  contract('hours and days are what their minutes give, late reports included', async () => {
    const day = Math.floor(t0 / 86_400) * 86_400;
    const begins = [day - 200, day + 3_500, day + 40_000, day + 86_300, day + 90_000];
    const seconds = begins.flatMap((begin) => Array.from({ length: 20 }, (_, i) => begin + i * 17));
    const priced = seconds.map((second, i) => ({
      ...report(stream, second, second),
      price: BigInt(((i * 7_919) % 1_009) - 500),
    }));
    const isLate = (_: unknown, i: number) => i % 3 === 0;
    await store().reports.append(priced.filter((one, i) => !isLate(one, i)));
    await store().reports.append(priced.filter(isLate));
    await reopen();
    for (const resolution of [60, 300, 900, 3_600, 14_400, 86_400])
      for (const [from, to] of [
        [day - 86_400, day + 3 * 86_400 - 1],
        [day + 7_260, day + 86_400 + 4_019], // neither a whole hour nor a whole day
      ] as const) {
        const inRange = priced.filter(
          ({ observationsMs: ms }) => ms >= from * 1_000 && Math.floor(ms / 60_000) * 60 <= to,
        );
        const expected = expectedCandles(inRange, resolution);
        const range = { from, to, resolution };
        expect(await store().reports.candles(stream, range), `${resolution} ${from}`).toEqual(expected);
      }
  });

  contract('minutes, hours and days are removed with the last of their reports', async () => {
    const priced = pricedRun(stream, t0, 300, 1);
    await store().reports.append(priced);
    await trimAll(store(), (t0 + 1_000) * 1_000);
    expect(await store().reports.candles(stream, { from: 0, to: t0 + 1_000, resolution: 60 })).toEqual([]);
    const all = [...pricedRun(stream, t0 + 3 * 86_400, 1, 1), ...priced];
    await store().reports.append(all);
    // Reports that are too old may stay for a while, and then their candles do.
    await trimAll(store(), (t0 + 2 * 86_400) * 1_000);
    await expectCandlesOfStored(store(), all, 'some');
    await trimAll(store(), (t0 + 4 * 86_400) * 1_000);
    await expectCandlesOfStored(store(), all, 'none');
    for (const resolution of [60, 3_600, 86_400])
      expect(await store().reports.candles(stream, { from: 0, to: t0 + 9 * 86_400, resolution })).toEqual([]);
  });

  contract('after retention, candles are those of the reports that are left', async () => {
    const all = [...pricedRun(stream, t0, 400, 1), ...pricedRun(other, t0 - 7_000, 150, 97)];
    for (let i = 0; i < all.length; i += 50) await store().reports.append(all.slice(i, i + 50));
    for (const afterT0 of [-5_000, 63, 130, 131, 260, 6_000, 90_000]) {
      await trimAll(store(), (t0 + afterT0) * 1_000);
      await expectCandlesOfStored(store(), all, `${afterT0}`);
    }
  });

  contract('after retention by bytes, candles are those of the reports that are left', async () => {
    const all = [...pricedRun(stream, t0, 1_000, 1), ...pricedRun(other, t0 - 3_000, 500, 10)];
    await store().reports.append(all);
    const { usedBytes } = await store().reports.stats();
    for (const part of [0.8, 0.5, 0]) {
      await trimAll(store(), 0, Math.floor(usedBytes * part));
      await expectCandlesOfStored(store(), all, `${part}`);
    }
  });

  contract('reports that retention removed count once when they come back', async () => {
    const all = [...pricedRun(stream, t0, 300, 1), ...pricedRun(other, t0 - 3_000, 150, 21)];
    const append = async (): Promise<number> => {
      let stored = 0;
      for (let i = 0; i < all.length; i += 90)
        stored += (await store().reports.append(all.slice(i, i + 90))).filter((one) => one === 'stored').length;
      return stored;
    };
    await append();
    for (const [afterT0, bytesMax] of [
      [100, Number.POSITIVE_INFINITY],
      [270, Number.POSITIVE_INFINITY],
      [9_000, Number.POSITIVE_INFINITY],
      [-9_000, 1],
    ] as const) {
      const removed = await trimAll(store(), (t0 + afterT0) * 1_000, bytesMax);
      expect(removed).toBeGreaterThan(0);
      const before = await store().reports.position();
      expect(await append()).toBe(removed);
      expect(await store().reports.position()).toBe(before + removed);
      await expectCandlesOfStored(store(), all, `${afterT0}`);
      expect(await store().reports.stats()).toMatchObject({ streams: 2, reports: 450, reportBytes: 450 * 736 });
      for (const [feedId, count] of [
        [stream, 300],
        [other, 150],
      ] as const) {
        expect(await store().reports.windows(feedId, 0, t0 + 9_000, 1_000)).toHaveLength(count);
        expect(store().reports.latest(feedId)?.observationsMs).toBe(
          all.findLast((o) => o.feedId === feedId)?.observationsMs,
        );
      }
      const followed = await store().reports.appendedAfter(before, 10_000);
      expect([followed.reports.length, followed.position]).toEqual([removed, before + removed]);
      await reopen();
    }
  });
};

export const testAppending = (contract: Contract, store: () => Store, reopen: () => Promise<void>): void => {
  const latestSecond = (feedId: typeof stream) => {
    const { observationsMs } = store().reports.latest(feedId) ?? {};
    expect(store().reports.newestMs(feedId)).toBe(observationsMs);
    return observationsMs === undefined ? undefined : observationsMs / 1_000;
  };

  contract('a batch that is trimmed while it is appended is stored whole, and counts once', async () => {
    const all = [...pricedRun(other, t0 - 3_000, 150, 21), ...pricedRun(stream, t0, 600, 1)];
    const outcomes: AppendOutcome[] = [];
    for (let i = 0; i < all.length; i += 150) {
      const appended = all.slice(i, i + 150).reduce<NewReport[][]>((parts, one, n) => {
        if (n % 50 === 0) parts.push([]);
        parts.at(-1)?.push(one);
        return parts;
      }, []);
      const [, ...found] = await Promise.all([
        trimAll(store(), (t0 - 2_000 + i * 3) * 1_000),
        ...appended.map((part) => store().reports.append(part)),
      ]);
      outcomes.push(...found.flat());
      await expectCandlesOfStored(store(), all, `${i}`);
    }
    expect(new Set(outcomes)).toEqual(new Set(['stored']));
    expect(await store().reports.position()).toBe(all.length);
    await reopen();
    await expectCandlesOfStored(store(), all, 'reopened');
    expect([latestSecond(other), latestSecond(stream)]).toEqual([t0 + 129, t0 + 599]);
    await trimAll(store(), (t0 + 500) * 1_000);
    expect(seconds((await store().reports.page(stream, t0 + 500, 1_000)).reports)).toHaveLength(100);
    expect([latestSecond(other), latestSecond(stream)]).toEqual([undefined, t0 + 599]);
  });

  contract(
    'a report from before the retention boundary is stored like any late one, and removed by the next trim',
    async () => {
      const all = [
        ...pricedRun(stream, t0 - 5_000, 3, 1),
        ...pricedRun(stream, t0, 300, 1),
        ...pricedRun(other, t0 - 5_000, 2, 1),
      ];
      const [old, young, alone] = [all.slice(0, 3), all.slice(3, 303), all.slice(303)];
      await store().reports.append(young);
      await trimAll(store(), (t0 + 280) * 1_000);
      const before = await store().reports.stats();
      expect(await store().reports.append([...old, ...alone])).toEqual(Array(5).fill('stored'));
      expect(await store().reports.position()).toBe(305);
      expect([latestSecond(stream), latestSecond(other)]).toEqual([t0 + 299, t0 - 4_999]);
      expect(await store().reports.stats()).toMatchObject({ reports: before.reports + 5, streams: 2 });
      await expectCandlesOfStored(store(), all, 'before');
      await reopen();
      expect([latestSecond(stream), latestSecond(other)]).toEqual([t0 + 299, t0 - 4_999]);
      expect(await trimAll(store(), (t0 + 280) * 1_000)).toBe(5);
      await expectCandlesOfStored(store(), all, 'after');
      expect([latestSecond(stream), latestSecond(other)]).toEqual([t0 + 299, undefined]);
      expect(await store().reports.stats()).toMatchObject({ reports: before.reports, streams: 1 });
      expect(await store().reports.position()).toBe(305);
    },
  );

  contract('a report twice in a batch counts once, whether it is new, late or stored', async () => {
    const all = [...pricedRun(stream, t0, 200, 2), ...pricedRun(other, t0, 100, 1)];
    const twice = (reports: readonly NewReport[]) => reports.flatMap((one) => [one, one]);
    const [first, late] = [all.filter((_, i) => i % 3 > 0), all.filter((_, i) => i % 3 === 0)];
    const expected = (count: number) => Array.from({ length: 2 * count }, (_, i) => (i % 2 ? 'duplicate' : 'stored'));
    expect(await store().reports.append(twice(first))).toEqual(expected(first.length));
    expect(await store().reports.append([...twice(late), ...first])).toEqual([
      ...expected(late.length),
      ...Array(first.length).fill('duplicate'),
    ]);
    expect(await store().reports.append(twice(all))).toEqual(Array(2 * all.length).fill('duplicate'));
    // After the newest, before it and between two in one batch, with a conflict and an overlap.
    const [newest, next] = [t0 + 500, t0 + 700];
    const wide = { ...report(stream, newest - 3, newest, 5n), price: 5n };
    const rest: readonly NewReport[] = [
      { ...report(stream, next, next, 9n), price: 9n },
      wide,
      wide,
      report(stream, newest, newest, 7n),
      report(stream, newest - 1, newest + 1),
    ];
    expect(await store().reports.append(rest)).toEqual(['stored', 'stored', 'duplicate', 'conflict', 'overlap']);
    expect(await store().reports.position()).toBe(302);
    await trimAll(store(), (t0 + 150) * 1_000);
    await expectCandlesOfStored(store(), [...all, ...rest.slice(0, 2)], 'trimmed');
    expect(latestSecond(stream)).toBe(t0 + 700);
  });

  contract('the same reports in batches at the same time are stored once, at one position each', async () => {
    const all = [...pricedRun(stream, t0, 200, 1), ...pricedRun(other, t0, 100, 21)];
    const batches = [all, all.toReversed(), all.filter((_, i) => i % 2 > 0), all.slice(100), all.slice(0, 250)];
    const outcomes = await Promise.all(batches.map((batch) => store().reports.append(batch)));
    expect(outcomes.flat().filter((one) => one === 'stored')).toHaveLength(300);
    expect(new Set(outcomes.flat())).toEqual(new Set(['stored', 'duplicate']));
    const { reports, positions } = await store().reports.appendedAfter(0, 1_000);
    expect(new Set(reports.map(({ feedId, observationsMs }) => `${feedId} ${observationsMs}`)).size).toBe(300);
    expect(positions).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
    expect(await store().reports.stats()).toMatchObject({ streams: 2, reports: 300, reportBytes: 300 * 736 });
    await expectCandlesOfStored(store(), all, 'at once');
    await reopen();
    await expectCandlesOfStored(store(), all, 'reopened');
    expect([latestSecond(stream), latestSecond(other)]).toEqual([t0 + 199, t0 + 99 * 21]);
  });
};

/** Reports with prices that go up and down, some seconds apart. */
const pricedRun = (feedId: typeof stream, from: number, count: number, apart: number): readonly NewReport[] =>
  Array.from({ length: count }, (_, i) => {
    const [second, price] = [from + i * apart, BigInt(((i * 7_919) % 1_009) - 500)];
    return { ...report(feedId, second, second, price), price };
  });

/** Candles of any resolution are worked out of what a page has. */
const expectCandlesOfStored = async (store: Store, appended: readonly NewReport[], name: string): Promise<void> => {
  const prices = new Map(appended.map(({ feedId, observationsMs, price }) => [`${feedId}${observationsMs}`, price]));
  let stored = 0;
  for (const feedId of [stream, other]) {
    const { reports } = await store.reports.page(feedId, 0, 10_000);
    stored += reports.length;
    const priced = reports.map((one) => ({ ...one, price: prices.get(`${feedId}${one.observationsMs}`) ?? 0n }));
    for (const resolution of [60, 300, 3_600, 86_400]) {
      const candles = await store.reports.candles(feedId, { from: 0, to: t0 + 10 * 86_400, resolution });
      expect(candles, `${name} ${resolution}`).toEqual(expectedCandles(priced, resolution));
    }
  }
  expect((await store.reports.stats()).reports).toBe(stored);
};
