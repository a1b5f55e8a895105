// The figures that were measured last, in docs/figures.json: `npm run bench -- NAME --save` writes them, and docs/sizing.md is computed from them (D211).
import { readFileSync, writeFileSync } from 'node:fs';
import { arch, availableParallelism } from 'node:os';
import type { Measurement } from '../measure.ts';

export type SavedFigure = Pick<Measurement, 'name' | 'value' | 'unit'> & { readonly date: string };

export type SavedWorkload = {
  /** Where all of its figures were measured. */
  readonly machine: string;
  readonly cores: number;
  readonly figures: readonly SavedFigure[];
};

export type SavedFigures = Readonly<Record<string, SavedWorkload>>;

export const readFigures = (file: string): SavedFigures => JSON.parse(readFileSync(file, 'utf8')) as SavedFigures; // written below

const significantDigits = 4;

/** Replaces figures of a workload that were measured again, and keeps the others unless they are of another machine. */
export const withFigures = (
  saved: SavedFigures,
  workload: string,
  measured: readonly Measurement[],
  date: string,
  machine: string,
  cores: number,
): SavedFigures => {
  const isSame = (one: SavedFigure, { name, unit }: Measurement): boolean => one.name === name && one.unit === unit;
  const before = saved[workload]?.machine === machine ? (saved[workload]?.figures ?? []) : [];
  const kept = before.filter((one) => !measured.some((other) => isSame(one, other)));
  const added = measured.map(({ name, value, unit }) => ({
    name,
    value: Number(value.toPrecision(significantDigits)),
    unit,
    date,
  }));
  return { ...saved, [workload]: { machine, cores, figures: [...kept, ...added] } };
};

/** Saves what was just measured on this machine. */
export const saveFigures = (file: string, workload: string, measured: readonly Measurement[]): void => {
  const machine = `${arch()}, Node ${process.versions.node.split('.').slice(0, 2).join('.')}`;
  const date = new Date().toISOString().slice(0, 10);
  const figures = withFigures(readFigures(file), workload, measured, date, machine, availableParallelism());
  writeFileSync(file, `${JSON.stringify(figures, undefined, 2)}\n`);
};

/** Looks a figure up; throws for one that was never saved. */
export const figureOf = (saved: SavedFigures, workload: string, name: string, unit?: string): number => {
  const found = saved[workload]?.figures.find((one) => one.name === name && (unit === undefined || one.unit === unit));
  if (found === undefined)
    throw new Error(`docs/figures.json has no "${name}". Run: npm run bench -- ${workload} --save`);
  return found.value;
};
