// The last result of every row, in docs/reliability.json: written by `npm run bar`, and shown by docs/reliability.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/source-tree.ts';
import type { Bar, Bound } from './bar.ts';
import type { PartResult } from './journal.ts';
import { addTallies, type Tally } from './tally.ts';

export type BarResult = {
  readonly count: number;
  readonly found: Tally;
  readonly control: Tally;
  /** What was not as promised; empty if all was. */
  readonly failures: readonly string[];
  readonly seconds: number;
  readonly date: string;
  readonly machine: string;
  /** The commits that its parts ran on. */
  readonly commits: readonly string[];
  /** Of a run that is not whole: what the row said. */
  readonly test?: string;
};

export type Results = Readonly<Record<string, BarResult>>;

export const resultsFile = join(root, 'docs/reliability.json');

export const readResults = (file = resultsFile): Results => JSON.parse(readFileSync(file, 'utf8')) as Results; // written below

export const saveResult = (key: string, result: BarResult, file = resultsFile): void => {
  const results = { ...readResults(file), [key]: result };
  writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
};

/** Saves how far a run is. What a whole run found stays until another one is whole. */
export const savePart = (key: string, result: BarResult, full: number, file = resultsFile): void => {
  const before = readResults(file)[key];
  if (before === undefined || before.count < full || result.count >= full) saveResult(key, result, file);
};

/** What a run that is not whole has found so far, as a part to go on from; none where it is whole, or was of another test. */
export const partOf = (saved: BarResult | undefined): readonly PartResult[] => {
  if (saved?.test === undefined) return [];
  const { count, found, control, seconds, commits, test } = saved;
  return [{ seed: 0, units: count, found, control, seconds, commit: commits.join(', '), test }];
};

const isOutside = (value: number | undefined, { min, max }: Bound): boolean =>
  value === undefined || (max !== undefined && value > max) || (min !== undefined && value < min);

const textOf = ({ min, max }: Bound): string =>
  [min === undefined ? '' : `at least ${min}`, max === undefined ? '' : `at most ${max}`].filter(Boolean).join(' and ');

/** With as many digits as tell it from a bound. */
const shown = (value: number | undefined): string =>
  value === undefined ? 'not tallied' : String(Number.isInteger(value) ? value : Number(value.toPrecision(4)));

/** Whether what is to come may still reach it. */
const mayGrow = (name: string, { max }: Bound): boolean => max === undefined && !name.endsWith(', at least');

/** Adds the parts up and compares them with what was promised; of a run that is not whole, what is to come cannot mend. */
export const judge = (
  bar: Bar,
  parts: readonly PartResult[],
  about: { readonly date: string; readonly machine: string },
): BarResult => {
  const found = addTallies(parts.map((part) => part.found));
  const control = addTallies(parts.map((part) => part.control));
  const count = parts.reduce((sum, { units }) => sum + units, 0);
  const isWhole = count >= (bar.count?.full ?? 1);
  const missed = Object.entries(bar.bounds ?? {}).flatMap(([name, bound]) =>
    isOutside(found[name], bound) && (isWhole || !mayGrow(name, bound))
      ? [`${name}: ${shown(found[name])}, not ${textOf(bound)}`]
      : [],
  );
  const isControlBlind = bar.control !== undefined && !Object.values(control).some((value) => value > 0);
  return {
    count,
    found,
    control,
    failures: [...missed, ...(isControlBlind ? [`void: ${bar.control} was not found`] : [])],
    seconds: parts.reduce((sum, { seconds }) => sum + seconds, 0),
    commits: [...new Set(parts.flatMap(({ commit }) => commit.split(', ')))],
    ...(!isWhole && { test: bar.test }),
    ...about,
  };
};
