import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeRun, openRun } from '../../server/src/store/format/report-run.ts';
import { openEnvironment, openTable } from '../../server/src/store/lmdb/environment.ts';
import { pagesFile } from '../../server/src/store/lmdb/pages-file.ts';
import { buildPrograms, type Programs } from '../faults/programs.ts';
import { countOf, inFull, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { type DamageResult, damagePrograms, examine, runDamage } from './damage.ts';
import { flipInFile } from './flip.ts';
import { type Part, partsOf } from './pages.ts';
import { createDamageWorld, type DamageWorld } from './world.ts';

let programs: Programs;
let world: DamageWorld;
beforeAll(async () => {
  programs = await buildPrograms(damagePrograms);
  world = await createDamageWorld();
});
afterAll(() => {
  programs.remove();
  world.remove();
});

/** Numbers that are the same in every run: a failure can be looked at again. */
const seeded = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed / 2 ** 32;
};

const flips = countOf(5, 100);

const words = ({ unaffected, contained, refused, died }: Omit<DamageResult, 'faults'>) => ({
  'without effect': unaffected,
  contained,
  'refused with the cause': refused,
  'that ended the process': died,
});

test(`damage: ${flips} flipped bits, each costs what its record held and nothing else, and is named`, async () => {
  const { faults, ...counts } = await runDamage(programs, world, flips, seeded(seedOf(13)));
  tally({ faults: faults.length, ...words(counts) });
  expect(faults).toEqual([]);
  expect(counts.contained).toBeGreaterThan(flips / 4);
}, 3_600_000);

test('damage: a last run whose key lies in the future is missing, and stored again where it belongs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-future-'));
  try {
    cpSync(world.folder, folder, { recursive: true });
    const file = pagesFile(join(folder, 'reports'));
    const last = partsOf(file).findLast(({ table, kind }) => table === 'runs' && kind === 'key') as Part; // there are some
    flipInFile(file, last.from + 5, 4); // a bit of its time that is 0: hundreds of years later
    const [outcome] = await examine(programs, world.file, [folder]);
    expect(outcome).toMatchObject({ wrong: [], missingAfter: [], notIngested: [] });
    expect(outcome?.missing.length).toBeGreaterThan(0);
    expect(outcome?.missing.length).toBeLessThan(64);
    expect(outcome?.named.length).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

inFull('damage: the control, a report that was altered together with its checksums, is found to be wrong', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-forged-'));
  try {
    cpSync(world.folder, folder, { recursive: true });
    const environment = openEnvironment(join(folder, 'reports'), false);
    const runs = openTable(environment, 'runs', true);
    const [{ key, value }] = [...runs.getRange({ limit: 1 })] as [{ key: Buffer; value: Buffer }]; // there are some
    const run = openRun(key, value);
    const reports = Array.from({ length: run.count }, (_, i) => ({ ...run.window(i), fullReport: run.fullReport(i) }));
    (reports[1]?.fullReport as Uint8Array)[200] = 1;
    environment.root.transactionSync(() => runs.put(key, encodeRun(key, reports)));
    await environment.root.close();
    const [outcome] = await examine(programs, world.file, [folder]);
    tallyControl({ 'found to be wrong': outcome?.wrong.length ?? 0 });
    expect(outcome?.wrong.length).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
