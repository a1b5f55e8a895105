// How often a test does what it counts: a few times in `npm test`, and as often as docs/reliability.md says with FULL=1, which also prints what was found.
import { expect, test } from 'vitest';

export const isFull = process.env.FULL === '1';

/** A test that `npm test` leaves out: what it guards is guarded by a shorter one too. */
export const inFull = test.runIf(isFull);

/** A full count ends within ten minutes. */
export const countOf = (reduced: number, full: number): number => (isFull ? full : reduced);

let printedSeed: number | undefined;

/** For the random choices of a test: the same in every `npm test`, another one with FULL=1, or the one that SEED gives, to run a failure again. */
export const seedOf = (reduced = 1): number => {
  if (process.env.SEED !== undefined) return Number(process.env.SEED);
  if (!isFull) return reduced;
  if (printedSeed === undefined) {
    printedSeed = Math.floor(Math.random() * 2 ** 31);
    process.stdout.write(`SEED=${printedSeed}\n`);
  }
  return printedSeed;
};

export type Tally = Readonly<Record<string, number>>;

/** Prints what was found with FULL=1, when nothing else runs: only then it compares figures with what is promised of them at most. */
export const tally = <T extends Tally>(found: T, atMost: { readonly [Name in keyof T]?: number } = {}): void => {
  if (!isFull) return;
  process.stdout.write(`${JSON.stringify(found)}\n`);
  for (const [name, most] of Object.entries(atMost)) expect(found[name], name).toBeLessThanOrEqual(most as number); // of the type above
};

/** Prints what the control lost or let through. */
export const tallyControl = (found: Tally): void => {
  if (isFull) process.stdout.write(`control: ${JSON.stringify(found)}\n`);
};
