// The contract of appending and reading reports, as tests.
import { toReportJson } from '@sealpost/protocol';
import { expect } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import type { Store, StoredReport } from './store.ts';
import { bytes, type Contract, fine, other, report, run, seconds, stream, t0 } from './store-samples.fixture.ts';

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
    'what holds of many streams is rendered in their order, and what is stored since is in the next answer',
    async () => {
      const feedIds = Array.from({ length: 50 }, (_, i) => secondStream(i + 1));
      await store().reports.append(feedIds.filter((_, i) => i % 3 > 0).map((feedId) => report(feedId, t0, t0)));
      const namesOf = async () =>
        (await store().reports.renderedAt(feedIds, t0)).map(
          (one, i) => one && render(report(feedIds[i] as typeof stream, t0, t0)) === String(one.json), // one each
        );
      expect(await namesOf()).toEqual(feedIds.map((_, i) => i % 3 > 0 || undefined));
      await store().reports.append([report(stream, t0, t0), report(other, t0 + 1, t0 + 1)]);
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

const render = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): string =>
  JSON.stringify(toReportJson(feedId, { validFromMs, observationsMs }, `0x${Buffer.from(fullReport).toString('hex')}`));

const expectSamePage = async (store: Store, feedId: typeof stream, from: number, limit: number): Promise<void> => {
  const { reports, more } = await store.reports.page(feedId, from, limit);
  const page = await store.reports.renderedPage(feedId, from, limit);
  expect(String(page.json)).toBe(reports.map(render).join(','));
  expect([page.more, page.lastMs]).toEqual([more, reports.at(-1)?.observationsMs]);
};

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
