// Writes a time range to files: catalog, signers and reports. They have temporary names until all three are complete.
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { toSignerSetsJson } from '@sealpost/protocol';
import { generateHistory, type HistoryOptions } from './history.ts';
import { createSimulation, type DeliveredReport } from './simulation.ts';

/** The file names by content. */
export const historyFileNames = {
  catalog: 'catalog.json',
  signers: 'signers.json',
  reports: 'reports.ndjson',
} as const;

type FileName = (typeof historyFileNames)[keyof typeof historyFileNames];

/** What a run has written. */
export type HistoryFiles = {
  /** In the catalog. */
  readonly streams: number;
  readonly streamsWithReports: number;
  readonly reports: number;
  readonly signaturesPerReport: number;
};

/** Writes the three files into a directory, created if missing; calls `onBatch` after each batch. */
export async function writeHistory(
  options: HistoryOptions,
  out: string,
  signal: AbortSignal,
  onBatch: (batch: readonly DeliveredReport[]) => void,
): Promise<HistoryFiles> {
  const partialPath = (name: FileName) => join(out, `${name}.partial-${process.pid}`);
  const names = Object.values(historyFileNames);
  const { network, streams } = await createSimulation(options);
  const signerSets = new Map([[network.signerSet.configDigest, network.signerSet]]);
  let reports = 0;
  const reported = new Set<string>();
  const lines = async function* () {
    for await (const batch of generateHistory(options)) {
      yield batch.map(({ report }) => `${JSON.stringify(report)}\n`).join('');
      reports += batch.length;
      for (const { report } of batch) reported.add(report.feedID);
      onBatch(batch);
    }
  };
  await mkdir(out, { recursive: true });
  try {
    await writeFile(partialPath(historyFileNames.catalog), toJsonText({ feeds: streams.map(({ stream }) => stream) }));
    await writeFile(partialPath(historyFileNames.signers), toJsonText(toSignerSetsJson(signerSets)));
    await pipeline(lines, createWriteStream(partialPath(historyFileNames.reports)), { signal });
    for (const name of names) await rename(partialPath(name), join(out, name));
  } catch (cause) {
    await Promise.all(names.map((name) => rm(partialPath(name), { force: true })));
    throw cause;
  }
  const signaturesPerReport = network.signerSet.f + 1;
  return { streams: streams.length, streamsWithReports: reported.size, reports, signaturesPerReport };
}

const toJsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
