// The contract of appending and reading reports, as tests.
import { toReportJson } from '@sealpost/protocol';
import { expect } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import type { InSlices } from '../runtime/reading.ts';
import { type Candle, type CandleRange, type CandleSlice, mergeCandles } from './candle-rollup.ts';
import type { NewReport, Store, StoredReport } from './store.ts';
import {
  bytes,
  type Contract,
  fine,
  other,
  report,
  run,
  seconds,
  stream,
  t0,
  trimAll,
} from './store-samples.fixture.ts';

export const testReports = (contract: Contract, store: () => Store, reopen: () => Promise<void>): void => {
  contract('an empty store has no reports', async () => {
    expect(store().reports.latest(stream)).toBeUndefined();
    expect(await store().reports.at([stream], t0)).toEqual([undefined]);
    expect(await store().reports.page(stream, 0, 10)).toEqual({ reports: [], more: false });
    expect(await store().reports.neighbours(stream, t0)).toEqual({ previous: undefined, next: undefined });
    expect(await store().reports.position()).toBe(0);
    expect(await store().reports.stats()).toMatchObject({ streams: 0, reports: 0, reportBytes: 0 });
  });

  contract('what was appended comes back byte for byte, also after closing', async () => {
    const batch = run(stream, t0, 300);
    expect(new Set(await store().reports.append(batch))).toEqual(new Set(['stored']));
    for (const _ of ['as written', 'reopened']) {
      const { reports } = await store().reports.page(stream, t0, 1_000);
      expect(bytes(reports)).toEqual(bytes(batch));
      expect(reports.map(({ feedId, validFromMs }) => [feedId, validFromMs])).toEqual(
        batch.map(({ feedId, validFromMs }) => [feedId, validFromMs]),
      );
      await reopen();
    }
    expect(await store().reports.stats()).toMatchObject({ streams: 1, reports: 300, reportBytes: 300 * 736 });
  });

  contract('latest is the newest report, rendered for the wire, and late reports do not move it', async () => {
    const [first, second, third] = run(stream, t0, 3) as [StoredReport, StoredReport, StoredReport];
    await store().reports.append([first, third]);
    const rendered = `{"report":{"feedID":"${stream}","validFromTimestamp":${t0 + 2},"observationsTimestamp":${t0 + 2},"fullReport":"0x${Buffer.from(third.fullReport).toString('hex')}"}}`;
    expect(store().reports.latest(stream)?.json.toString()).toBe(rendered);
    expect(await store().reports.append([second])).toEqual(['stored']);
    expect(store().reports.latest(stream)).toMatchObject({
      validFromMs: (t0 + 2) * 1_000,
      observationsMs: (t0 + 2) * 1_000,
    });
    await reopen();
    expect(store().reports.latest(stream)?.json.toString()).toBe(rendered);
  });

  contract('what is rendered is what is stored, also after a late report, a trim, and in a second reader', async () => {
    const batch = run(stream, t0, 200);
    const late = batch.splice(70, 1);
    await store().reports.append(batch);
    await expectRendered(store());
    await store().reports.append(late);
    await expectRendered(store());
    await store().reports.append([...run(other, t0, 3), ...run(stream, t0 + 200, 5)]);
    await expectRendered(store());
    await store().reports.trim({ beforeMs: (t0 + 130) * 1_000, bytesMax: Number.MAX_SAFE_INTEGER });
    await expectRendered(store());
    await reopen();
    await expectRendered(store());
  });

  contract(
    'what holds of many streams is the same in slices, and what is stored between two of them is in the next answer',
    async () => {
      const feedIds = Array.from({ length: 50 }, (_, i) => secondStream(i + 1));
      const some = feedIds.filter((_, i) => i % 3 > 0);
      await store().reports.append(some.map((feedId) => report(feedId, t0, t0)));
      let [slices, onSlice] = [0, async (): Promise<void> => {}];
      const inSlices: InSlices = (work) =>
        work(async (read) => {
          slices += 1;
          await onSlice();
          return read(() => true);
        });
      const namesOf = async () =>
        (await store().reports.renderedAt(feedIds, t0, inSlices)).map(
          (one, i) => one && render(report(feedIds[i] as typeof stream, t0, t0)) === String(one.json),
        ); // one each
      expect(await namesOf()).toEqual(feedIds.map((_, i) => i % 3 > 0 || undefined));
      const first = report(stream, t0, t0);
      const storedInSlice = slices > 0;
      onSlice = async () => {
        if (slices === 60) await store().reports.append([first]); // its stream was read already
      };
      await store().reports.append([report(other, t0 + 1, t0 + 1)]);
      await namesOf();
      if (!storedInSlice) await store().reports.append([first]); // an engine that needs no slices
      expect(await namesOf()).toEqual(feedIds.map((_, i) => i === 0 || i % 3 > 0 || undefined));
    },
  );

  contract('a rendered page of a millisecond stream ends where the page does', async () => {
    const batch = Array.from({ length: 150 }, (_, i) => report(fine, t0 * 1_000 + i * 400, t0 * 1_000 + i * 400));
    await store().reports.append(batch);
    for (const limit of [1, 2, 3, 7, 64, 100]) await expectSamePage(store(), fine, t0, limit);
  });

  contract('a page is the same whatever of it was asked for before', async () => {
    await store().reports.append(run(stream, t0, 200));
    for (const [from, limit] of [
      [40, 3],
      [20, 2],
      [50, 60],
      [21, 1],
      [10, 35],
      [0, 150],
      [0, 200],
    ] as const)
      await expectSamePage(store(), stream, t0 + from, limit);
  });

  contract(
    'the same report again is a duplicate, other bytes under its key are a conflict, and neither changes anything',
    async () => {
      const batch = run(stream, t0, 200);
      await store().reports.append(batch);
      for (const index of [0, 63, 64, 150, 199]) {
        const known = batch[index] as StoredReport;
        const altered = report(stream, t0 + index, t0 + index, 7n);
        expect(await store().reports.append([known, altered])).toEqual(['duplicate', 'conflict']);
        expect(bytes(await store().reports.at([stream], t0 + index))).toEqual(bytes([known]));
      }
      expect(await store().reports.position()).toBe(200);
      expect((await store().reports.stats()).reports).toBe(200);
    },
  );

  contract('the same body signed by another quorum is a duplicate, and the first bytes are kept', async () => {
    const batch = run(stream, t0, 130);
    const again = (i: number) => report(stream, t0 + i, t0 + i, undefined, 1);
    const [first, twin, other] = [
      report(stream, t0 + 130, t0 + 130),
      again(130),
      report(stream, t0 + 130, t0 + 130, 7n),
    ];
    expect(bytes([twin])).not.toEqual(bytes([first]));
    await store().reports.append(batch);
    expect(await store().reports.append([again(0), again(100), again(129)])).toEqual(Array(3).fill('duplicate'));
    expect(await store().reports.append([first, twin, other])).toEqual(['stored', 'duplicate', 'conflict']);
    expect(await store().reports.append([twin, other])).toEqual(['duplicate', 'conflict']);
    expect(bytes((await store().reports.page(stream, t0, 1_000)).reports)).toEqual(bytes([...batch, first]));
    expect(await store().reports.position()).toBe(131);
  });

  contract('duplicates and conflicts within one batch are judged in order', async () => {
    const one = report(stream, t0, t0);
    expect(await store().reports.append([one, one, report(stream, t0, t0, 7n)])).toEqual([
      'stored',
      'duplicate',
      'conflict',
    ]);
  });

  contract('a window that cuts into a neighbour’s is an overlap, on either side and around', async () => {
    await store().reports.append([report(stream, t0, t0 + 9), report(stream, t0 + 20, t0 + 29)]);
    const windows = [
      [t0 - 5, t0],
      [t0 + 5, t0 + 12],
      [t0 + 9, t0 + 10],
      [t0 + 15, t0 + 20],
      [t0 + 12, t0 + 40],
      [t0 - 5, t0 + 40],
      [t0 + 22, t0 + 25],
    ];
    for (const [from, to] of windows as [number, number][]) {
      expect(await store().reports.append([report(stream, from, to)]), `${from - t0} to ${to - t0}`).toEqual([
        'overlap',
      ]);
    }
    expect(
      await store().reports.append([
        report(stream, t0 + 10, t0 + 19),
        report(stream, t0 - 9, t0 - 1),
        report(stream, t0 + 30, t0 + 30),
      ]),
    ).toEqual(['stored', 'stored', 'stored']);
  });

  contract('late reports fill gaps wherever they fall, in order', async () => {
    const all = run(stream, t0, 400);
    const late = all.filter((_, i) => i % 7 === 3);
    await store().reports.append(all.filter((_, i) => i % 7 !== 3));
    for (const one of late) expect(await store().reports.append([one])).toEqual(['stored']);
    expect(seconds((await store().reports.page(stream, t0, 1_000)).reports)).toEqual(seconds(all));
    await reopen();
    expect(bytes((await store().reports.page(stream, t0, 1_000)).reports)).toEqual(bytes(all));
  });

  contract(
    'at finds the report whose range holds the second, never the nearest, for many streams in the order asked',
    async () => {
      const wide = report(stream, t0, t0 + 9);
      const after = report(stream, t0 + 20, t0 + 29);
      const elsewhere = report(other, t0 + 5, t0 + 5);
      await store().reports.append([wide, after, elsewhere]);
      const at = async (second: number) => bytes(await store().reports.at([other, stream, secondStream(99)], second));
      expect(await at(t0 - 1)).toEqual([undefined, undefined, undefined]);
      expect(await at(t0)).toEqual([undefined, ...bytes([wide]), undefined]);
      expect(await at(t0 + 5)).toEqual([...bytes([elsewhere, wide]), undefined]);
      expect(await at(t0 + 9)).toEqual([undefined, ...bytes([wide]), undefined]);
      expect(await at(t0 + 10)).toEqual([undefined, undefined, undefined]);
      expect(await at(t0 + 29)).toEqual([undefined, ...bytes([after]), undefined]);
      expect(await at(t0 + 30)).toEqual([undefined, undefined, undefined]);
    },
  );

  contract('neighbours are the windows on both sides of a second', async () => {
    const all = [...run(stream, t0, 130), ...run(stream, t0 + 200, 130)];
    await store().reports.append(all);
    const window = (second: number) => ({ validFromMs: second * 1_000, observationsMs: second * 1_000 });
    const expected: [number, number | undefined, number | undefined][] = [
      [t0 - 5, undefined, t0],
      [t0, undefined, t0],
      [t0 + 64, t0 + 63, t0 + 64],
      [t0 + 150, t0 + 129, t0 + 200],
      [t0 + 200, t0 + 129, t0 + 200],
      [t0 + 500, t0 + 329, undefined],
    ];
    for (const [second, previous, next] of expected) {
      expect(await store().reports.neighbours(stream, second)).toEqual({
        previous: previous && window(previous),
        next: next && window(next),
      });
    }
  });
};

export const testPages = (contract: Contract, store: () => Store): void => {
  contract(
    'a page begins at the first report observed at or after its start and tells whether there is more',
    async () => {
      const all = run(stream, t0, 200);
      await store().reports.append([...all, ...run(other, t0, 10)]);
      const page = async (from: number, limit: number) => {
        const { reports, more } = await store().reports.page(stream, from, limit);
        return [seconds(reports)[0], reports.length, more];
      };
      expect(await page(t0, 10)).toEqual([t0, 10, true]);
      expect(await page(0, 200)).toEqual([t0, 200, false]);
      expect(await page(t0 + 63, 2)).toEqual([t0 + 63, 2, true]);
      expect(await page(t0 + 199, 1)).toEqual([t0 + 199, 1, false]);
      expect(await page(t0 + 200, 1)).toEqual([undefined, 0, false]);
    },
  );

  contract('paging at the last second + 1 visits every report once', async () => {
    const all = run(stream, t0, 333).filter((_, i) => i % 10 !== 0);
    await store().reports.append(all);
    const visited: StoredReport[] = [];
    for (let from = t0, more = true; more; ) {
      const page = await store().reports.page(stream, from, 17);
      visited.push(...page.reports);
      more = page.more;
      from = (seconds(page.reports).at(-1) ?? from) + 1;
    }
    expect(bytes(visited)).toEqual(bytes(all));
  });

  contract('a page of a millisecond stream ends on a whole second, unless one second alone exceeds it', async () => {
    const ms = t0 * 1_000;
    const all = Array.from({ length: 40 }, (_, i) => report(fine, ms + i * 250, ms + i * 250 + 249));
    await store().reports.append(all);
    const page = await store().reports.page(fine, t0, 10);
    expect([page.reports.length, page.more]).toEqual([8, true]);
    expect((await store().reports.page(fine, t0, 3)).reports).toHaveLength(3);
    expect((await store().reports.page(fine, t0 + 2, 100)).reports).toHaveLength(32);
  });

  contract('a second holds the earliest observed of several reports of a millisecond stream', async () => {
    const ms = t0 * 1_000;
    const first = report(fine, ms - 100, ms + 200);
    await store().reports.append([first, report(fine, ms + 201, ms + 700), report(fine, ms + 701, ms + 1_300)]);
    expect(bytes(await store().reports.at([fine], t0))).toEqual(bytes([first]));
    expect((await store().reports.at([fine], t0 + 1))[0]).toMatchObject({ validFromMs: ms + 701 });
  });

  contract('windows of a range come without their reports, both ends included, up to a limit', async () => {
    await store().reports.append(run(stream, t0, 200));
    const windows = await store().reports.windows(stream, t0 + 10, t0 + 150, 1_000);
    expect(windows.map(({ observationsMs }) => observationsMs / 1_000)).toEqual(
      Array.from({ length: 141 }, (_, i) => t0 + 10 + i),
    );
    expect(await store().reports.windows(stream, t0, t0 + 150, 5)).toHaveLength(5);
  });
};

/** All candles of a range, slice by slice. */
const readCandles = async (
  { reports }: Store,
  feedId: typeof stream,
  range: CandleRange,
  isOver: () => boolean = () => false,
): Promise<readonly Candle[]> => {
  const candles: Candle[] = [];
  for (let from: number | undefined = range.from; from !== undefined; ) {
    const slice: CandleSlice = await reports.candles(feedId, { ...range, from }, isOver);
    for (const one of slice.candles) {
      const last = candles.at(-1);
      if (last?.start === one.start) candles.splice(-1, 1, mergeCandles(last, one));
      else candles.push(one);
    }
    expect(slice.next ?? from + 1).toBeGreaterThan(from);
    from = slice.next;
  }
  return candles;
};

/** The candles of reports in ascending order, worked out one by one. */
const expectedCandles = (reports: readonly NewReport[], resolution: number): readonly Candle[] => {
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
      readCandles(store(), feedId, { from, to, resolution: 60 });
    expect(await minutes(stream, minute, minute + 60)).toEqual([first, second]);
    expect(await minutes(stream, minute + 1, minute + 59)).toEqual([]);
    expect(await minutes(other, minute, minute + 60)).toEqual([]);
  });

  contract('hours and days are what their minutes give, late reports included, and in slices of any size', async () => {
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
        expect(await readCandles(store(), stream, range), `${resolution} ${from}`).toEqual(expected);
        expect(await readCandles(store(), stream, range, () => true)).toEqual(expected);
      }
  });

  contract('minutes, hours and days are removed with the last of their reports', async () => {
    const priced = pricedRun(stream, t0, 300, 1);
    await store().reports.append(priced);
    await trimAll(store(), (t0 + 1_000) * 1_000);
    expect(await readCandles(store(), stream, { from: 0, to: t0 + 1_000, resolution: 60 })).toEqual([]);
    const all = [...pricedRun(stream, t0 + 3 * 86_400, 1, 1), ...priced];
    await store().reports.append(all);
    // Reports that are too old may stay for a while, and then their candles do.
    await trimAll(store(), (t0 + 2 * 86_400) * 1_000);
    await expectCandlesOfStored(store(), all, 'some');
    await trimAll(store(), (t0 + 4 * 86_400) * 1_000);
    await expectCandlesOfStored(store(), all, 'none');
    for (const resolution of [60, 3_600, 86_400])
      expect(await readCandles(store(), stream, { from: 0, to: t0 + 9 * 86_400, resolution })).toEqual([]);
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
    const all = [...pricedRun(stream, t0, 2_000, 1), ...pricedRun(other, t0 - 3_000, 1_000, 5)];
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
      for (let i = 0; i < all.length; i += 40)
        stored += (await store().reports.append(all.slice(i, i + 40))).filter((one) => one === 'stored').length;
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
      const candles = await readCandles(store, feedId, { from: 0, to: t0 + 10 * 86_400, resolution });
      expect(candles, `${name} ${resolution}`).toEqual(expectedCandles(priced, resolution));
    }
  }
  expect((await store.reports.stats()).reports).toBe(stored);
};

const render = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): string =>
  JSON.stringify(toReportJson(feedId, { validFromMs, observationsMs }, `0x${Buffer.from(fullReport).toString('hex')}`));

const expectSamePage = async (store: Store, feedId: typeof stream, from: number, limit: number): Promise<void> => {
  const { reports, more } = await store.reports.page(feedId, from, limit);
  const page = await store.reports.renderedPage(feedId, from, limit);
  expect(page.json.map(String).join(',')).toBe(reports.map(render).join(','));
  expect([page.more, page.lastMs]).toEqual([more, reports.at(-1)?.observationsMs]);
};

/** The same array each time: a store may give the same list for it, but not once something was written. */
const bothStreams = [stream, other];

/** Asks for pages and moments twice: what was rendered before must not be what is answered after a change. */
const expectRendered = async (store: Store): Promise<void> => {
  for (const [from, limit] of [
    [t0, 10],
    [t0 + 60, 100],
    [t0 + 150, 100],
    [t0 + 999, 5],
  ] as const)
    await expectSamePage(store, stream, from, limit);
  for (const second of [t0, t0 + 69, t0 + 70, t0 + 71, t0 + 140, t0 + 202, t0 + 999]) {
    const stored = await store.reports.at([stream, other], second);
    const rendered = await store.reports.renderedAt(bothStreams, second);
    expect(rendered.map((one) => one && [one.observationsMs, String(one.json)])).toEqual(
      stored.map((one) => one && [one.observationsMs, render(one)]),
    );
  }
};
