// Roll-ups after reports were lost and sent again: each report counts once (D236).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../../tests/support/signed-reports.ts';
import { openBlock, reportByteRange } from '../../format/report-block.ts';
import { openStore } from '../../open.ts';
import type { NewReport, Store } from '../../store.ts';
import { openEnvironment, openTable, type Table } from '../environment.ts';
import { decodeSetAside } from '../read/set-aside.ts';

const { report } = await createSignedReports();
const day = 1_763_164_800; // a midnight
const feedId = secondStream(1);

/** Priced so that every report changes the low or the high of its minute, and the one sent again neither opens nor closes it. */
const priceAt = (second: number): bigint => BigInt(second % 2 === 0 ? 10_000 + second : 10_000 - second);
const known = new Map<number, NewReport>();
/** Signed once. */
const at = (second: number): NewReport => {
  const price = priceAt(second);
  const made = known.get(second) ?? { ...report(feedId, day + second, day + second, price), price };
  known.set(second, made);
  return made;
};
const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, i) => from + i);
const some = (seconds: readonly number[]): readonly NewReport[] => seconds.map(at);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-lost-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = async <T>(use: (store: Store) => Promise<T>): Promise<T> => {
  const store = await openStore(folder, 'write');
  return use(store).finally(store.close);
};
const append = (reports: readonly NewReport[]) => write((store) => store.reports.append(reports));

const withTable = async <T>(name: string, use: (table: Table) => T): Promise<T> => {
  const opened = openEnvironment(join(folder, 'reports'), false);
  const table = openTable(opened, name);
  const result = opened.root.transactionSync(() => use(table));
  await opened.root.close();
  return result;
};

/** Changes the nth record of a table of the closed store. */
const alter = (name: string, nth: number, change: (value: Buffer) => void): Promise<void> =>
  withTable(name, (table) => {
    const entry = [...table.getRange()][nth] as { key: Buffer; value: Buffer }; // there are enough
    const value = Buffer.from(entry.value);
    change(value);
    table.put(entry.key, value);
  });

const flip = (place: number) => (value: Buffer) => {
  const byte = place < 0 ? value.length + place : place;
  value[byte] = (value[byte] as number) ^ 4; // within bounds
};

/** Overwrites the bytes of one report, wherever it is stored. */
const damageReport = async (second: number): Promise<void> => {
  for (const name of ['blocks', 'tail'])
    await withTable(name, (table) => {
      for (const { key, value } of [...table.getRange()]) {
        const block = openBlock(1, value);
        const i = block.firstAtOrAfter((day + second) * 1_000);
        if (i === block.count || block.window(i).observationsMs !== (day + second) * 1_000) continue;
        const [from, to] = reportByteRange(value, i);
        table.put(key, Buffer.from(value).fill(0xaa, from + 2, to));
      }
    });
};

/** Minutes, hours and days, as a reader of another process gets them. */
const candles = async () => {
  const store = await openStore(folder, 'read');
  const read = async (resolution: number) =>
    (await store.reports.candles(feedId, { from: day, to: day + 86_399, resolution })).candles;
  const all = [await read(60), await read(3_600), await read(86_400)];
  await store.close();
  return all;
};
const counts = async () => (await candles()).map((found) => found.map(({ reports }) => reports));

/** The candles of a store that has these reports and nothing else. */
const candlesOf = (seconds: readonly number[]) =>
  [60, 3_600, 86_400].map((resolution) => {
    const buckets = new Map<number, number[]>();
    for (const second of seconds) {
      const start = day + Math.floor(second / resolution) * resolution;
      buckets.set(start, [...(buckets.get(start) ?? []), second]);
    }
    return [...buckets].map(([start, within]) => {
      const prices = within.map(priceAt);
      const sorted = [...prices].sort((a, b) => Number(a - b));
      const [open, high, low, close] = [prices[0], sorted.at(-1), sorted[0], prices.at(-1)];
      return { start, open, high, low, close, reports: within.length };
    });
  });

test('lost reports: a damaged report of the tail that is sent again counts once in its minute, hour and day', async () => {
  const seconds = [...range(0, 117), 118, 119]; // one second is missing
  await append(some(seconds));
  const before = await candles();
  expect(before).toEqual(candlesOf(seconds));
  await alter('tail', 0, flip(-20)); // in the last report
  const outcomes = await append(some(seconds));
  expect(outcomes.map((outcome, i) => (outcome === 'stored' ? seconds[i] : outcome)).slice(-2)).toEqual([
    'duplicate',
    119,
  ]);
  expect(await counts()).toEqual([[60, 59], [119], [119]]);
  expect(await candles()).toEqual(before);
});

test('lost reports: a damaged report of a block that is sent again counts once', async () => {
  await append(some(range(0, 300)));
  const before = await candles();
  await alter('blocks', 1, flip(-20));
  const outcomes = await append(some(range(0, 300)));
  expect(outcomes.filter((outcome) => outcome === 'stored')).toHaveLength(1);
  expect(await candles()).toEqual(before);
});

test.each(['blocks', 'tail'])(
  'lost reports: those of a run of %s whose index is damaged count once, in whatever order they are sent again',
  async (table) => {
    const all = range(0, 330); // blocks of 92 or so, and the rest
    await append(some(all));
    const before = await candles();
    await alter(table, 0, flip(10));
    // Something new first: another process, which has not seen the loss, gets what was lost.
    await append(some([330]));
    const lost = await write(async ({ reports }) => {
      const { reports: there } = await reports.page(feedId, day, 1_000);
      const seconds = new Set(there.map(({ observationsMs }) => observationsMs / 1_000 - day));
      return all.filter((second) => !seconds.has(second));
    });
    expect(lost.length).toBeGreaterThan(20);
    const middle = lost.length >> 1;
    await append(some(lost.slice(middle, middle + 3)));
    for (const second of [lost[0] as number, lost.at(-1) as number]) await append(some([second])); // there are more
    await append(some(lost));
    expect(await candles()).toEqual(candlesOf(range(0, 331)));
    expect(before).toEqual(candlesOf(all));
  },
);

test('lost reports: a late report that was never stored counts in the time of a lost run', async () => {
  const seconds = range(0, 200).filter((second) => second !== 30);
  await append(some(seconds));
  await alter('blocks', 0, flip(10));
  await append(some([30, ...seconds]));
  expect(await candles()).toEqual(candlesOf(range(0, 200)));
});

test('lost reports: a second loss of the same run does not hide the first', async () => {
  const late = [10, 20];
  await append(some(range(0, 200).filter((second) => !late.includes(second))));
  // Each late report has the writer rewrite the run, under the same key, without what is damaged.
  for (const [i, second] of [50, 60].entries()) {
    await damageReport(second);
    await append(some([late[i] as number])); // there are two
  }
  const lost = await withTable('damaged', (table) =>
    [...table.getRange()].map(({ key, value }) =>
      decodeSetAside(key, value).lost.map(({ observationsMs }) => observationsMs / 1_000 - day),
    ),
  );
  expect(lost).toEqual([[50, 60]]);
  await append(some([50]));
  await append(some([60]));
  expect(await candles()).toEqual(candlesOf(range(0, 200)));
});

test('lost reports: where the first report of a run is damaged, all of them are lost and count once when sent again', async () => {
  await write(async ({ reports }) => {
    await reports.append(some(range(0, 300)));
    await reports.append(some(range(300, 435)));
  });
  await damageReport(300);
  await append(some(range(435, 600))); // the tail is closed into blocks
  const lost = await withTable('damaged', (table) =>
    [...table.getRange()].flatMap(({ key, value }) => decodeSetAside(key, value).lost),
  );
  expect([lost.length, lost.at(-1)?.observationsMs]).toEqual([128, (day + 434) * 1_000]);
  for (const second of [434, 430, 300]) await append(some([second]));
  await append(some(range(300, 435)));
  expect(await candles()).toEqual(candlesOf(range(0, 600)));
});

test('lost reports: what is lost and not sent again stays in the roll-ups until a repair', async () => {
  await append(some(range(0, 100)));
  const before = await candles();
  await alter('tail', 0, flip(10));
  await append(some([3_600]));
  expect((await candles())[0]?.slice(0, 2)).toEqual(before[0]);
});
