import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSignedReports } from '../../../../../tests/support/signed-reports.ts';
import { createDamageLog } from '../../damage.ts';
import { blockReports, fittedReports, openBlock } from '../../format/report-block.ts';
import { bytes, run, stream, t0 } from '../../store-samples.fixture.ts';
import { createDirectory } from '../directory.ts';
import { openLmdbStore } from '../engine.ts';
import { openEnvironment } from '../environment.ts';
import { openReportTables } from '../report-tables.ts';
import { openLostRanges } from './lost-ranges.ts';
import { putInPlace, tailRuns } from './run-writer.ts';

const count = 600;
const live = run(stream, t0 + count, 3);
const late = run(stream, t0, count);
const shuffled = late.toSorted((a, b) => ((a.observationsMs * 7_919) % 10_007) - ((b.observationsMs * 7_919) % 10_007));

test.each([
  ['ascending, ten at a time', late, 10],
  ['descending, one at a time', late.toReversed(), 1],
  ['in any order, fifty at a time', shuffled, 50],
] as const)(
  'late reports: %s, they fill the gap before live ones, in runs that are neither long nor many',
  async (_, reports, size) => {
    const folder = mkdtempSync(join(tmpdir(), 'sealpost-late-'));
    try {
      const store = await openLmdbStore(folder, 'write');
      for (const one of live) await store.reports.append([one]);
      for (let i = 0; i < reports.length; i += size)
        expect(new Set(await store.reports.append(reports.slice(i, i + size)))).toEqual(new Set(['stored']));
      expect(bytes((await store.reports.page(stream, t0, 1_000)).reports)).toEqual(bytes([...late, ...live]));
      expect(await store.reports.append([late[5], live[1], late[count - 1]].flatMap((one) => one ?? []))).toEqual(
        Array(3).fill('duplicate'),
      );
      await store.close();
      const environment = openEnvironment(join(folder, 'reports'), true);
      const sizesIn = (table: 'blocks' | 'tail') =>
        [...openReportTables(environment)[table].getRange()].map(({ value }) => openBlock(1, value).count);
      const [blocks, tail] = [sizesIn('blocks'), sizesIn('tail')];
      expect(tail.reduce((sum, one) => sum + one, 0)).toBeLessThan(2 * fittedReports.max);
      expect(Math.max(...blocks)).toBeLessThan(2 * blockReports);
      expect(blocks.length).toBeLessThanOrEqual((2 * count) / blockReports);
      await environment.root.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

test.each([1, 7, 250])(
  'live reports, %i at a time: blocks fill their pages, and every report is found',
  async (size) => {
    const folder = mkdtempSync(join(tmpdir(), 'sealpost-blocks-'));
    try {
      const store = await openLmdbStore(folder, 'write');
      const reports = await signedRun(500);
      for (let i = 0; i < reports.length; i += size) await store.reports.append(reports.slice(i, i + size));
      expect(bytes((await store.reports.page(stream, t0, 1_000)).reports)).toEqual(bytes(reports));
      await store.close();
      const environment = openEnvironment(join(folder, 'reports'), true);
      const { blocks, tail } = openReportTables(environment);
      const records = [...blocks.getRange()].map(({ value }) => value);
      const counts = records.map((value) => openBlock(1, value).count);
      expect(counts.every((one) => one >= fittedReports.min && one <= fittedReports.max)).toBe(true);
      // A page has a header of 16 bytes; one more report, of 240 bytes at most, would not fit.
      for (const { length } of records)
        expect(Math.ceil((length + 16) / 8_192) * 8_192 - 16 - length).toBeLessThan(240);
      const inTail = [...tail.getRange()].reduce((sum, { value }) => sum + openBlock(1, value).count, 0);
      expect(inTail).toBeLessThan(2 * Math.max(...counts));
      await environment.root.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

test('a stream with many blocks: its tail is closed and put in order without a look at them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-tail-'));
  try {
    const store = await openLmdbStore(folder, 'write');
    await store.reports.append(run(stream, t0, 2_000));
    await store.reports.append(run(stream, t0 + 2_000, 5));
    await store.close();
    const environment = openEnvironment(join(folder, 'reports'), true);
    const tables = openReportTables(environment);
    const inTail = [...tables.tail.getRange()].reduce((sum, { value }) => sum + openBlock(1, value).count, 0);
    let looked = 0;
    const getKeys = function* (range: object) {
      for (const key of tables.blocks.getKeys(range)) {
        looked += 1;
        yield key;
      }
    };
    const blocks = new Proxy(tables.blocks, {
      get: (table, name) => (name === 'getKeys' ? getKeys : Reflect.get(table, name)),
    });
    const damage = createDamageLog();
    const counters = { reports: 2_005, reportBytes: 0 };
    const directory = createDirectory(tables, damage);
    const lostRanges = openLostRanges(tables);
    const transaction = { tables: { ...tables, blocks }, damage, directory, counters, lostRanges };
    expect(tailRuns(transaction, 1).reduce((sum, { block }) => sum + block.count, 0)).toBe(inTail);
    expect(looked).toBe(0);
    putInPlace(transaction, 1);
    expect(looked).toBeLessThan(5); // the last one, and those beside it
    await environment.root.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Really signed reports of consecutive seconds: signatures fill pages as bytes of a fixture do not. */
const signedRun = async (length: number) => {
  const { report } = await createSignedReports();
  return Array.from({ length }, (_, i) => report(stream, t0 + i, t0 + i, BigInt(i) * 10n ** 15n));
};
