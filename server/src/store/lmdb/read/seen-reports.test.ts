import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { flipInFile } from '../../../../../tests/damage/flip.ts';
import { partsOf } from '../../../../../tests/damage/pages.ts';
import { openStore } from '../../open.ts';
import type { Store } from '../../store.ts';
import { fine, other, report, run, stream, t0 } from '../../store-samples.fixture.ts';
import { pagesFile } from '../pages-file.ts';

let folder: string;
let writer: Store;
let reader: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-seen-'));
  writer = await openStore(`lmdb:${folder}`, 'write');
  await writer.reports.append(run(stream, t0, 300));
  reader = await openStore(`lmdb:${folder}`, 'read');
});
afterEach(async () => {
  await reader.close();
  await writer.close();
  rmSync(folder, { recursive: true, force: true });
});

const pageOf = async (store: Store, feedId: FeedId, from: number, limit: number) => {
  const { json, body, release, more } = await store.reports.renderedPage(feedId, from, limit);
  const text = String(body ?? `{"reports":[${json.join()}]}`);
  release?.();
  const { reports } = JSON.parse(text) as { reports: { observationsTimestamp: number }[] }; // our own rendering
  return { body, more, seconds: reports.map(({ observationsTimestamp }) => observationsTimestamp - t0) };
};

/** Flips a bit of the first run's record. */
const damageRun = (at: number): void => {
  const file = pagesFile(join(folder, 'reports'));
  const block = partsOf(file).find(({ kind, table }) => kind === 'value' && table === 'blocks');
  flipInFile(file, (block?.from ?? 0) + at, 2);
};
/** Where a run's index has when its second report begins, and how long its first one is. */
const [placeOfTime, placeOfLength] = [6 + 18 + 5, 6 + 17];

describe.each([
  ['the process that writes', () => writer],
  ['another one', () => reader],
])('kept answers of %s', (_, store) => {
  const pair = [stream, other];
  const momentOf = async (feedId: FeedId, second: number) => (await store().reports.renderedAt([feedId], second))[0];

  test('what no append can change is rendered once', async () => {
    await writer.reports.append(run(other, t0, 300));
    const list = await store().reports.renderedAt(pair, t0 + 100);
    const moment = await momentOf(stream, t0 + 50);
    await pageOf(store(), stream, t0 + 100, 50); // in one piece from the second time on
    const { body, seconds } = await pageOf(store(), stream, t0 + 100, 50);
    expect(seconds).toHaveLength(50);
    for (const more of [run(stream, t0 + 300, 1), run(other, t0 + 300, 1), run(stream, t0 + 310, 1)]) {
      await writer.reports.append(more);
      expect(await store().reports.renderedAt(pair, t0 + 100)).toBe(list);
      expect(await momentOf(stream, t0 + 50)).toBe(moment);
      expect((await pageOf(store(), stream, t0 + 100, 50)).body).toBe(body);
    }
  });

  test('what an append changes is rendered again: the end of a stream, and every gap', async () => {
    await writer.reports.append([...run(stream, t0 + 302, 5), ...run(other, t0, 5)]);
    const ask = async () => ({
      list: (await store().reports.renderedAt(pair, t0 + 300)).map((one) => one?.observationsMs),
      moment: (await momentOf(stream, t0 + 301))?.observationsMs,
      page: (await pageOf(store(), stream, t0 + 298, 4)).seconds,
      end: (await pageOf(store(), stream, t0 + 305, 10)).seconds,
      begins: (await pageOf(store(), stream, t0 + 300, 2)).seconds,
    });
    expect(await ask()).toEqual({
      list: [undefined, undefined],
      moment: undefined,
      page: [298, 299, 302, 303],
      end: [305, 306],
      begins: [302, 303],
    });
    await writer.reports.append([...run(stream, t0 + 300, 1), ...run(stream, t0 + 307, 1)]);
    expect(await ask()).toEqual({
      list: [(t0 + 300) * 1_000, undefined],
      moment: undefined,
      page: [298, 299, 300, 302],
      end: [305, 306, 307],
      begins: [300, 302],
    });
    await writer.reports.append([...run(stream, t0 + 301, 1), ...run(other, t0 + 300, 1)]);
    expect(await ask()).toEqual({
      list: [(t0 + 300) * 1_000, (t0 + 300) * 1_000],
      moment: (t0 + 301) * 1_000,
      page: [298, 299, 300, 301],
      end: [305, 306, 307],
      begins: [300, 301],
    });
  });

  test('a gap inside a run is a gap', async () => {
    await writer.reports.append([...run(other, t0, 5), ...run(other, t0 + 6, 5)]);
    const ask = async () => [
      (await pageOf(store(), other, t0 + 2, 4)).seconds,
      (await pageOf(store(), other, t0 + 5, 2)).seconds,
    ];
    expect(await ask()).toEqual([
      [2, 3, 4, 6],
      [6, 7],
    ]);
    await writer.reports.append(run(other, t0 + 5, 1));
    expect(await ask()).toEqual([
      [2, 3, 4, 5],
      [5, 6],
    ]);
  });

  test('a report that begins inside a second gives way to one before it in that second', async () => {
    await writer.reports.append([
      report(fine, (t0 + 10) * 1_000 + 500, (t0 + 10) * 1_000 + 600),
      report(fine, (t0 + 20) * 1_000, (t0 + 20) * 1_000 + 100),
    ]);
    expect((await momentOf(fine, t0 + 10))?.observationsMs).toBe((t0 + 10) * 1_000 + 600);
    await writer.reports.append([report(fine, (t0 + 10) * 1_000 + 200, (t0 + 10) * 1_000 + 300)]);
    expect((await momentOf(fine, t0 + 10))?.observationsMs).toBe((t0 + 10) * 1_000 + 300);
  });

  test('what retention removes is gone', async () => {
    const ask = async () => ({
      list: (await store().reports.renderedAt(pair, t0 + 10))[0]?.observationsMs,
      moment: (await momentOf(stream, t0 + 10))?.observationsMs,
      page: (await pageOf(store(), stream, t0 + 10, 3)).seconds,
    });
    const second = (t0 + 10) * 1_000;
    expect(await ask()).toEqual({ list: second, moment: second, page: [10, 11, 12] });
    expect(await ask()).toEqual({ list: second, moment: second, page: [10, 11, 12] });
    while ((await writer.reports.trim({ beforeMs: (t0 + 200) * 1_000, bytesMax: Number.POSITIVE_INFINITY })).more);
    const { list, moment, page } = await ask();
    expect([list, moment]).toEqual([undefined, undefined]);
    expect(page[0]).toBeGreaterThan(64);
  });

  const askOld = async () => ({
    moment: (await momentOf(stream, t0 + 10))?.observationsMs,
    page: (await pageOf(store(), stream, t0 + 10, 3)).seconds,
  });
  const old = { moment: (t0 + 10) * 1_000, page: [10, 11, 12] };

  test.each([placeOfTime, placeOfLength])(
    'what takes the place of a run that was damaged at byte %i is seen',
    async (at) => {
      expect(await askOld()).toEqual(old);
      damageRun(at);
      await writer.reports.append([report(stream, t0 + 8, t0 + 11), report(stream, t0 + 12, t0 + 14)]);
      expect(await askOld()).toMatchObject({ moment: (t0 + 11) * 1_000, page: [11, 14, expect.any(Number)] });
    },
  );

  test.each([placeOfTime, placeOfLength])(
    'what retention removes is gone, also where it was damaged at byte %i before',
    async (at) => {
      expect(await askOld()).toEqual(old);
      damageRun(at);
      while ((await writer.reports.trim({ beforeMs: (t0 + 200) * 1_000, bytesMax: Number.POSITIVE_INFINITY })).more);
      const { moment, page } = await askOld();
      expect(moment).toBeUndefined();
      expect(page[0]).toBeGreaterThan(64);
    },
  );

  test('a page of milliseconds has no room only where reports are a millisecond apart', async () => {
    const at = (ms: number) => report(fine, t0 * 1_000 + ms, t0 * 1_000 + ms);
    const ask = async (limit: number) => {
      const { json, body, release, lastMs } = await store().reports.renderedPage(fine, t0, limit);
      const text = String(body ?? json.join());
      release?.();
      return { reports: text.split('fullReport').length - 1, lastMs: (lastMs ?? 0) - t0 * 1_000 };
    };
    await writer.reports.append([0, 1_000, 2_000, 3_000].map(at));
    expect(await ask(2)).toEqual({ reports: 2, lastMs: 1_000 });
    await writer.reports.append([at(1)]);
    expect(await ask(2)).toEqual({ reports: 2, lastMs: 1 });
  });
});
