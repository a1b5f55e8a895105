// Damaged files: copies of a store with their end cut off, read by child programs that may die of it. Flipped bits: tests/damage.
import { cpSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pagesBytesInUse, pagesFile } from '../../server/src/store/lmdb/pages-file.ts';
import { openStore } from '../../server/src/store/open.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { ended, linesOf, type Programs } from './programs.ts';

const firstSecond = 1_763_200_000;
const secondsStored = 200;

export type HealthyStore = { readonly folder: string; readonly remove: () => void };

/** A store of three streams, two hundred seconds each. */
export const createHealthyStore = async (): Promise<HealthyStore> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-healthy-'));
  const { report } = await createSignedReports();
  const store = await openStore(folder, 'write');
  for (const feedId of [1, 2, 3].map(secondStream))
    await store.reports.append(
      Array.from({ length: secondsStored }, (_, i) => report(feedId, firstSecond + i, firstSecond + i, BigInt(i))),
    );
  await store.close();
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
};

/** Cuts the file of a copy and tells how opening it ends, with our checks and without. */
export const runTruncation = async (
  programs: Programs,
  healthy: HealthyStore,
  keep: number,
): Promise<{ readonly answer: string; readonly withoutChecks: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-cut-'));
  try {
    cpSync(healthy.folder, folder, { recursive: true });
    const used = pagesBytesInUse(join(healthy.folder, 'reports')) ?? 0; // the file goes on: space is taken ahead
    truncateSync(pagesFile(join(folder, 'reports')), Math.floor(used * keep));
    const checked = programs.start('reader-program', ['check', folder], { stderr: 'ignore' });
    const lines: string[] = [];
    for await (const line of linesOf(checked)) lines.push(line);
    const checkedEnd = await ended(checked);
    const raw = programs.start('reader-program', ['raw', folder], { stderr: 'ignore' });
    const rawEnd = await ended(raw);
    const answer = checkedEnd.signal ?? lines.find((line) => line.startsWith('refused'))?.split(' ')[2] ?? 'read';
    return { answer, withoutChecks: rawEnd.signal ?? `exit ${rawEnd.code}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
