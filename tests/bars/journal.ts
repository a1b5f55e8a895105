// What the parts of a run found, appended as they end, so that a run that was stopped goes on after its last part.
import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Tally } from './tally.ts';

export type PartResult = {
  readonly seed: number;
  readonly units: number;
  readonly found: Tally;
  readonly control: Tally;
  readonly seconds: number;
  readonly commit: string;
  /** What the row said then: parts of what was another test do not count. */
  readonly test: string;
};

export type Journal = {
  readonly parts: () => readonly PartResult[];
  readonly add: (part: PartResult) => void;
  readonly clear: () => void;
};

export const openJournal = (file: string): Journal => ({
  parts: () => readText(file).split('\n').flatMap(parsePart),
  add: (part) => {
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, `\n${JSON.stringify(part)}\n`); // after whatever a kill left of the line before
  },
  clear: () => rmSync(file, { force: true }),
});

const readText = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (Object(error).code === 'ENOENT') return '';
    throw error;
  }
};

/** A line that a kill cut off belongs to a part that is run again. */
const parsePart = (line: string): readonly PartResult[] => {
  try {
    return [JSON.parse(line) as PartResult]; // written above
  } catch {
    return [];
  }
};
