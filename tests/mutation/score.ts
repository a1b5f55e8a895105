// What a report of Stryker says: how many mutants were found by tests, and which were not.
import type { Equivalent } from './equivalent.ts';

/** The parts of Stryker's report that are read: `mutation-testing-report-schema`, version 1 or 2. */
export type MutationReport = {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>>;
};

type Place = { readonly line: number; readonly column: number };

type Mutant = {
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
  /** Tests that ran against it. */
  readonly testsCompleted?: number;
  readonly location: { readonly start: Place; readonly end: Place };
};

/** A mutant that no test found: `from` became `to` in that line. */
export type Survivor = { readonly line: number; readonly from: string; readonly to: string; readonly status: string };

export type Score = {
  readonly mutants: number;
  readonly killed: number;
  readonly timedOut: number;
  readonly survived: number;
  readonly notReached: number;
  /** Survivors that behave as the original does, and are listed with the reason. */
  readonly equivalent: number;
  /** Of the mutants that are not equivalent. */
  readonly killedPercent: number;
  /** Those that are neither found nor listed. */
  readonly survivors: readonly Survivor[];
  /** Listed ones that did not survive: the list is out of date. */
  readonly notFound: readonly Equivalent[];
};

/** Scores one file. Whatever is neither killed nor timed out counts as a survivor, also one that Stryker could not run. */
export const scoreFile = (path: string, report: MutationReport, equivalents: readonly Equivalent[]): Score => {
  const file = report.files[path];
  if (file === undefined || file.mutants.length === 0) throw new Error(`Stryker made no mutant of ${path}.`);
  const { mutants } = file;
  const alive = mutants
    .filter((mutant) => outcomeOf(mutant) === undefined)
    .map((mutant) => toSurvivor(file.source, mutant));
  const listed = equivalents.filter((one) => one.path === path);
  const survivors = alive.filter((one) => !listed.some((other) => isSame(one, other)));
  const equivalent = alive.length - survivors.length;
  const countOf = (outcome: Outcome): number => mutants.filter((mutant) => outcomeOf(mutant) === outcome).length;
  const [killed, timedOut] = [countOf('killed'), countOf('timed out')];
  return {
    mutants: mutants.length,
    killed,
    timedOut,
    survived: survivors.filter(({ status }) => status !== 'NoCoverage').length,
    notReached: survivors.filter(({ status }) => status === 'NoCoverage').length,
    equivalent,
    killedPercent: (100 * (killed + timedOut)) / (mutants.length - equivalent),
    survivors,
    notFound: listed.filter((one) => !alive.some((other) => isSame(other, one))),
  };
};

type Outcome = 'killed' | 'timed out' | undefined;

const outcomeOf = ({ status, testsCompleted }: Mutant): Outcome => {
  // Where a mutant throws while its module is loaded, no test can run, and Stryker finds none that fails.
  if (status === 'Killed' || (status === 'Survived' && testsCompleted === 0)) return 'killed';
  return status === 'Timeout' ? 'timed out' : undefined;
};

const isSame = (survivor: Survivor, { from, to }: Equivalent): boolean => survivor.from === from && survivor.to === to;

const toSurvivor = (source: string, { location, replacement = '', status }: Mutant): Survivor => ({
  line: location.start.line,
  from: textAt(source, location.start, location.end),
  to: replacement,
  status,
});

/** Text between two places, the second excluded; both count from 1. */
const textAt = (source: string, start: Place, end: Place): string => {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const last = lines.length - 1;
  return lines
    .map((line, i) => line.slice(i === 0 ? start.column - 1 : 0, i === last ? end.column - 1 : undefined))
    .join('\n');
};
