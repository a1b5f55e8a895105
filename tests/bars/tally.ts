// How a test learns its count, and says what it found. In `npm test` counts are the reduced ones and nothing is written down.
import { appendFileSync } from 'node:fs';
import { type BarKey, barCountOf } from './bars.ts';

/**
 * What was found, by name. Numbers add up over the parts of a run, except that of a name that ends in `, at most` the largest is
 * kept, and of one that ends in `, at least` the smallest.
 */
export type Tally = Readonly<Record<string, number>>;

export type TallyLine = { readonly kind: 'found' | 'control'; readonly tally: Tally };

/** How often the test runs now. */
export const countOf = (key: BarKey): number => {
  const text = process.env[countVariable(key)];
  return text === undefined ? barCountOf(key).reduced : Number(text);
};

export const countVariable = (key: string): string => `SEALPOST_BAR_${key.toUpperCase()}`;

/** How many were done in earlier parts of a bar's run, for a test that goes through a list. */
export const firstOf = (): number => Number(process.env[firstVariable] ?? 0);

export const firstVariable = 'SEALPOST_BAR_FIRST';

/** For the random choices of a test: given by a bar's run, so that a failing part can be run again; the same in every `npm test`. */
export const barSeed = (reduced = 1): number => Number(process.env[seedVariable] ?? reduced);

export const seedVariable = 'SEALPOST_BAR_SEED';
export const tallyVariable = 'SEALPOST_BAR_TALLY';

export const progressVariable = 'SEALPOST_BAR_PROGRESS';

/** Says how far a long test is, in a bar's run. */
export const progress = (text: string): void => {
  const file = process.env[progressVariable];
  if (file !== undefined) appendFileSync(file, `${text}\n`);
};

const write = (line: TallyLine): void => {
  const file = process.env[tallyVariable];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`);
};

export const tally = (found: Tally): void => write({ kind: 'found', tally: found });

/** What the control lost or let through. */
export const tallyControl = (found: Tally): void => write({ kind: 'control', tally: found });

export const addTallies = (tallies: readonly Tally[]): Tally => {
  const sum: Record<string, number> = {};
  for (const [name, value] of tallies.flatMap((one) => Object.entries(one))) {
    const before = sum[name];
    if (before === undefined) sum[name] = value;
    else if (name.endsWith(', at most')) sum[name] = Math.max(before, value);
    else if (name.endsWith(', at least')) sum[name] = Math.min(before, value);
    else sum[name] = before + value;
  }
  return sum;
};
