import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blockReports, openBlock } from '../../format/report-block.ts';
import { bytes, run, stream, t0 } from '../../store-samples.fixture.ts';
import { openLmdbStore } from '../engine.ts';
import { openEnvironment } from '../environment.ts';
import { openReportTables } from '../report-tables.ts';

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
      expect(tail.reduce((sum, one) => sum + one, 0)).toBeLessThan(2 * blockReports);
      expect(Math.max(...blocks)).toBeLessThan(2 * blockReports);
      expect(blocks.length).toBeLessThanOrEqual((2 * count) / blockReports);
      await environment.root.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
