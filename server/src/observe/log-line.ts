// A line of the log before it is written: level and fields.
import type { LogLevel } from '../config/values.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** A line to be; `complaint` is the word that it is counted by when there are too many. */
export type Line = {
  readonly level: Exclude<LogLevel, 'silent'>;
  readonly fields: Fields;
  readonly complaint?: string;
};

export const roundMs = (ms: number): number => Math.round(ms * 1_000) / 1_000;

const messageCharactersMax = 500;

export const cut = (text: string, max = messageCharactersMax): string =>
  text.length > max ? `${text.slice(0, max)}…` : text;
