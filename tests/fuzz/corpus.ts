// Inputs that are kept, one file per target and one line per input: those that reached something new, and every input that ever failed.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/source-tree.ts';
import { nameOf } from './target.ts';

/** `note` says where an input comes from. Text is readable; other bytes are hex. */
type Line = { readonly note: string } & ({ readonly text: string } | { readonly hex: string });

export type Kept = { readonly note: string; readonly input: Buffer };

export const corpusFolder = join(root, 'tests/fuzz/corpus');

export const corpusFile = (name: string, folder = corpusFolder): string => join(folder, `${name}.ndjson`);

export const readCorpus = (name: string, folder?: string): readonly Kept[] => {
  const file = corpusFile(name, folder);
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const kept = JSON.parse(line) as Line; // written below
      return { note: kept.note, input: 'hex' in kept ? Buffer.from(kept.hex, 'hex') : Buffer.from(kept.text) };
    });
};

const isText = (input: Buffer): boolean => !input.includes(0) && Buffer.from(input.toString()).equals(input);

/** Appends an input unless it is there. */
export const keepInput = (name: string, note: string, input: Buffer, folder?: string): void => {
  if (readCorpus(name, folder).some((one) => nameOf(one.input) === nameOf(input))) return;
  const line: Line = isText(input) ? { note, text: input.toString() } : { note, hex: input.toString('hex') };
  appendFileSync(corpusFile(name, folder), `${JSON.stringify(line)}\n`);
};
