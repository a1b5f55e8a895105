import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openRun, runReports } from '../../format/report-run.ts';
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
      const sizes = [...openReportTables(environment).runs.getRange()].map(
        ({ key, value }) => openRun(key, value).count,
      );
      expect(Math.max(...sizes)).toBeLessThan(2 * runReports);
      expect(sizes.length).toBeLessThanOrEqual((2 * count) / runReports);
      await environment.root.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

test.each([1, 7, 250])(
  'live reports, %i at a time: runs are full but for the last ones, and every report is found',
  async (size) => {
    const folder = mkdtempSync(join(tmpdir(), 'sealpost-runs-'));
    try {
      const store = await openLmdbStore(folder, 'write');
      const reports = run(stream, t0, 500);
      for (let i = 0; i < reports.length; i += size) await store.reports.append(reports.slice(i, i + size));
      expect(bytes((await store.reports.page(stream, t0, 1_000)).reports)).toEqual(bytes(reports));
      await store.close();
      const environment = openEnvironment(join(folder, 'reports'), true);
      const counts = [...openReportTables(environment).runs.getRange()].map(
        ({ key, value }) => openRun(key, value).count,
      );
      const full = counts.findIndex((one) => one !== runReports);
      expect(full * runReports).toBeGreaterThan(500 - runReports);
      expect(counts.slice(full).reduce((sum, one) => sum + one, 0)).toBe(500 - full * runReports);
      await environment.root.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
