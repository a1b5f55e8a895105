// A store with a stream of every schema and of milliseconds, and `sealpost export` run on it.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createSchemaReports,
  schemaVersions,
  streamOfSchema,
} from '../../../../tests/support/exports/schema-reports.ts';
import { openRunningIngest, testStream } from '../../../../tests/support/running-ingest.ts';
import { runCommand, type SampleOptions } from '../../sample-session.fixture.ts';

export const { report, signerSets } = await createSchemaReports();
export const midnight = 1_763_164_800; // 2025-11-15
export const now = midnight + 86_400 + 7_200; // a day later, after late reports
export const fast = streamOfSchema(3, 1);
export const wide = streamOfSchema(3);
/** A name that a file, a line of CSV and a spreadsheet must not take literally. */
export const oddName = '=V2,"x"/USD';
export const nameOf = (version: number): string => (version === 2 ? oddName : `V${version}/USD`);

/** Eight reports of each schema, two of them before midnight. */
export const samples = schemaVersions.map((version) =>
  Array.from({ length: 8 }, (_, i) => report(streamOfSchema(version), version, midnight - 2 + i, i)),
);
export const fastSample = Array.from({ length: 3 }, (_, i) => report(fast, 3, (midnight + 5) * 1_000 + 123 * i, i));

/** The exported files of a folder. */
export const filesOf = (path: string): readonly string[] => readdirSync(path).filter((name) => !name.startsWith('_'));

export const openExportSample = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-export-'));
  const streams = schemaVersions.map((version) => testStream(streamOfSchema(version), { name: nameOf(version) }));
  const all = [...streams, testStream(fast, { name: 'FAST/USD' })];
  const running = await openRunningIngest(all, signerSets, () => now * 1_000);
  await running.store.reports.append([...samples.flat(), ...fastSample]);
  let folders = 0;
  return {
    folder,
    running,
    run: (args: readonly string[], options: SampleOptions = {}) =>
      runCommand(['export', ...args, '--store', running.folder], { nowMs: now * 1_000, ...options }),
    newFolder: (): string => join(folder, `out-${++folders}`),
    close: async () => {
      await running.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
