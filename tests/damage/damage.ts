// The suite "Damage": one bit flipped in a copy of a store, in every table and every kind of page of both environments, and a node opened on it.
// A bit of a record may cost what that record holds, and nothing else; a bit of LMDB's own pages may cost the process, and is named then.
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pagesFile } from '../../server/src/store/lmdb/pages-file.ts';
import { observationsOfKey, streamOfKey } from '../../server/src/store/lmdb/report-tables.ts';
import { ended, linesOf, type Programs } from '../faults/programs.ts';
import { flipInFile } from './flip.ts';
import { type Outcome, repairedPrefix } from './outcome.ts';
import { type Part, partsOf } from './pages.ts';
import type { DamageWorld, World } from './world.ts';

/** What `buildPrograms` must bundle for this suite. */
export const damagePrograms = ['tests/damage/node-program.ts'];

type Flip = { readonly environment: 'reports' | 'admin'; readonly part: Part; readonly bit: number };

export type DamageResult = {
  readonly flips: number;
  /** Nothing could be noticed. */
  readonly unaffected: number;
  /** Something was named, and nothing else was affected. */
  readonly contained: number;
  /** The store was refused by name, which only flips in LMDB's own pages may cause. */
  readonly refused: number;
  /** The process died or hung, and the next start named it; likewise. */
  readonly died: number;
  /** Whatever must not be, with the flip that caused it. */
  readonly faults: readonly string[];
};

/** Is a part a record's, with a checksum of ours, or LMDB's own? */
const isRecord = ({ kind, table }: Part): boolean => (kind === 'key' || kind === 'value') && table !== 'main';

const describe = ({ environment, part, bit }: Flip): string =>
  `${environment} ${part.table} ${part.kind} ${part.key?.toString('hex').slice(0, 40) ?? ''} bit ${bit} at ${part.from}`;

/** Flips that take every table and kind of part in turn. */
const chooseFlips = (folder: string, count: number, random: () => number): readonly Flip[] => {
  const groups = new Map<string, { readonly environment: Flip['environment']; readonly part: Part }[]>();
  for (const environment of ['reports', 'admin'] as const) {
    for (const part of partsOf(pagesFile(join(folder, environment)))) {
      const name = `${isRecord(part)} ${environment} ${part.table} ${part.kind}`;
      groups.set(name, [...(groups.get(name) ?? []), { environment, part }]);
    }
  }
  // Records first: with few flips each table has its turn.
  const names = [...groups.keys()].sort().reverse();
  return Array.from({ length: count }, (_, i) => {
    const group = groups.get(names[i % names.length] as string) ?? []; // one of its keys
    const { environment, part } = group[Math.floor(random() * group.length)] as Omit<Flip, 'bit'>; // never empty
    return { environment, part, bit: Math.floor(random() * (part.to - part.from) * 8) };
  });
};

/** Longer than any copy takes on a machine with thirty times the work that it has cores for: there, a minute was not enough. */
const copyMaxMs = 600_000;

/** Opens nodes on copies, one after the other; undefined for one that took its process with it. */
export const examine = async (
  programs: Programs,
  worldFile: string,
  folders: readonly string[],
): Promise<readonly (Outcome | undefined)[]> => {
  const outcomes: (Outcome | undefined)[] = [];
  while (outcomes.length < folders.length) {
    const child = programs.start('node-program', [worldFile, ...folders.slice(outcomes.length)], { stderr: 'ignore' });
    let timer = setTimeout(() => child.kill('SIGKILL'), copyMaxMs);
    for await (const line of linesOf(child)) {
      if (!line.startsWith('end ')) continue;
      clearTimeout(timer);
      timer = setTimeout(() => child.kill('SIGKILL'), copyMaxMs);
      outcomes.push(JSON.parse(line.slice('end '.length)));
    }
    clearTimeout(timer);
    await ended(child);
    if (outcomes.length < folders.length) outcomes.push(undefined);
  }
  return outcomes;
};

/** What a flip of a record may cost: reports that may be missing at first and in the end, accounts, and ingest. */
const allowance = (world: World, { environment, part }: Flip) => {
  const nothing = { missing: () => false, missingAfter: () => false, account: false, ingest: () => false };
  const name = part.key?.toString('latin1') ?? '';
  if (environment === 'admin' && part.table === 'records') {
    if (name.startsWith('account/')) return { ...nothing, account: true };
    if (name.startsWith('signerSet/'))
      return { ...nothing, missingAfter: (key: string) => isLater(world, key), ingest: () => true };
    const feedId = name.slice('stream/'.length);
    const isOfIt = (key: string) => key.startsWith(feedId);
    return { ...nothing, missing: isOfIt, missingAfter: isOfIt, ingest: isOfIt };
  }
  if (environment === 'reports' && part.table === 'runs' && part.key !== undefined) {
    const all = () => true;
    // LMDB finds keys by bisection: a damaged one may hide others.
    if (part.kind === 'key') return { ...nothing, missing: all, missingAfter: all, ingest: all };
    const feedId = world.feedIds[streamOfKey(part.key) - 1] ?? '';
    const last = observationsOfKey(part.key) / 1_000;
    const missing = (key: string): boolean => {
      const [of, second] = key.split(' ');
      return of === feedId && Number(second) <= last && Number(second) > last - runSeconds;
    };
    return { ...nothing, missing };
  }
  return nothing;
};

/** Is there the file that makes the next start say that this one ended unexpectedly? */
const hasMark = (copy: string): boolean => existsSync(join(copy, 'reports', 'running'));

/** No run is longer: 63 reports of 20 s. */
const runSeconds = 63 * 20;

const isLater = ({ later }: World, key: string): boolean =>
  later.some((line) => key.endsWith(` ${JSON.parse(line).observationsTimestamp}`));

/** What became of a copy that must not become of it. */
const faultsOf = (world: World, flip: Flip, outcome: Outcome): readonly string[] => {
  const allowed = allowance(world, flip);
  const faults: string[] = [];
  const expect = (holds: boolean, what: string): void => void (holds || faults.push(what));
  expect(
    outcome.missing.every(allowed.missing),
    `missing ${outcome.missing.filter((key) => !allowed.missing(key)).length}`,
  );
  expect(
    outcome.missingAfter.every(allowed.missingAfter),
    `missing after they were sent again ${outcome.missingAfter.length}`,
  );
  expect(outcome.notIngested.every(allowed.ingest), `not ingested ${outcome.notIngested.slice(0, 3).join(', ')}`);
  const locked = outcome.statuses.filter((status) => status === 401).length;
  expect(locked <= (allowed.account ? 1 : 0), `statuses ${outcome.statuses.join(' ')}`);
  expect(
    outcome.probes.every((status) => status === 200),
    `probes ${outcome.probes.join(' ')}`,
  );
  expect(outcome.named.length > 0, 'not named');
  const { repaired } = outcome;
  expect(repaired !== undefined, 'not repaired');
  const lost = repaired?.missing.filter((key) => !allowed.missing(key)) ?? [];
  expect(lost.length === 0, `missing after a repair ${lost.slice(0, 3).join(', ')}`);
  expect(repaired?.named !== 0, 'not named by a repair');
  expect(repaired?.faults.length === 0, `found after a repair ${repaired?.faults.slice(0, 3).join(', ')}`);
  return faults;
};

/** Flips bits and opens nodes on them; `progress` is told how many are done. */
export const runDamage = async (
  programs: Programs,
  { world, file, folder }: DamageWorld,
  count: number,
  random: () => number,
  progress: (done: number) => void = () => {},
): Promise<DamageResult> => {
  const parent = mkdtempSync(join(tmpdir(), 'sealpost-damaged-'));
  const result = { flips: count, unaffected: 0, contained: 0, refused: 0, died: 0, faults: [] as string[] };
  const flips = chooseFlips(folder, count, random);
  const judge = async (flip: Flip, copy: string, outcome: Outcome | undefined): Promise<void> => {
    const fault = (what: string): void => void result.faults.push(`${describe(flip)}: ${what}`);
    if (outcome === undefined) {
      if (isRecord(flip.part)) fault('the process died');
      const [next] = await examine(programs, file, [copy]);
      const named = next === undefined ? hasMark(copy) : next.refused !== undefined || next.named.length > 0;
      if (!named) fault('the process died, and the next start says nothing of it');
      result.died += 1;
    } else if (outcome.refused !== undefined) {
      if (isRecord(flip.part)) fault(`refused: ${outcome.refused}`);
      result.refused += 1;
    } else {
      if (outcome.wrong.length > 0) fault(`wrong bytes: ${outcome.wrong.slice(0, 3).join(', ')}`);
      if (isRecord(flip.part)) for (const what of faultsOf(world, flip, outcome)) fault(what);
      if (outcome.named.length > 0) result.contained += 1;
      else result.unaffected += 1;
    }
  };
  try {
    for (let done = 0; done < count; done += 5) {
      // LMDB's own pages are nothing that a repair of records can mend: those copies get none.
      const group = flips.slice(done, done + 5).map((flip, i) => ({
        flip,
        copy: join(parent, `${isRecord(flip.part) ? repairedPrefix : ''}copy-${done + i}`),
      }));
      for (const { flip, copy } of group) {
        cpSync(folder, copy, { recursive: true });
        flipInFile(pagesFile(join(copy, flip.environment)), flip.part.from + (flip.bit >> 3), flip.bit & 7);
      }
      // A bit of LMDB's own pages may end its process late, when the next copy is open: each of these has one to itself.
      const records = group.filter(({ flip }) => isRecord(flip.part));
      const others = group.filter(({ flip }) => !isRecord(flip.part));
      for (const some of [records, ...others.map((one) => [one])]) {
        const copies = some.map(({ copy }) => copy);
        const outcomes = await examine(programs, file, copies);
        for (const [i, { flip, copy }] of some.entries()) await judge(flip, copy, outcomes[i]);
      }
      for (const { copy } of group) rmSync(copy, { recursive: true, force: true });
      progress(done);
    }
    return result;
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
};
