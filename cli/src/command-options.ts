// Reads what the command line gives: settings, JSON files, repeated options, whole numbers.

import { type ResolvedSettings, resolveSettings, settingNames, settingsTable } from '@sealpost/server/config/config';
import { holdsSecret } from '@sealpost/server/config/shown';
import { Option } from 'commander';
import { usageError } from './failure.ts';
import { openToOthers, readFileAndMode } from './private-file.ts';
import type { Session } from './session.ts';

/** The options of a command as commander gives them. */
export type RawOptions = Readonly<Record<string, unknown>>;

/** The values of a repeatable option; undefined if it was not given. */
export const collected = (option: unknown): readonly string[] | undefined =>
  Array.isArray(option) ? option.map(String) : undefined;

/** Resolves all settings from a command's options, the environment and the config file. */
export async function readSettings(session: Session, options: RawOptions): Promise<ResolvedSettings> {
  const flags = settingNames.flatMap((name) => {
    const { flag } = settingsTable[name];
    const text = flag === undefined ? undefined : options[new Option(flag).attributeName()];
    return typeof text === 'string' ? [[name, text]] : [];
  });
  const path = typeof options.config === 'string' ? options.config : session.env.SEALPOST_CONFIG || undefined;
  const file = path === undefined ? undefined : { name: path, content: await readConfigFile(path) };
  return resolveSettings({ flags: Object.fromEntries(flags), env: session.env, file });
}

/** Reads a JSON file that the command line names. */
export const readJsonFile = async (path: string): Promise<unknown> =>
  parseJson((await readFileAndMode(path)).text, path);

/** Reads a config file. One with a secret must not be accessible to other users. */
const readConfigFile = async (path: string): Promise<unknown> => {
  const { text, isOpen } = await readFileAndMode(path);
  const content = parseJson(text, path);
  if (isOpen && holdsSecret(content)) throw openToOthers(path);
  return content;
};

// The parser's message quotes the text, which may contain secrets: only the position is reported.
const parseJson = (text: string, path: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    const position = / at position (\d+)/.exec(String(error))?.[1];
    const before = position === undefined ? undefined : text.slice(0, Number(position)).split('\n');
    const place = before && `: see line ${before.length}, column ${String(before.at(-1)).length + 1}`;
    throw usageError(`${path} is not JSON${place ?? ''}.`);
  }
};

/** Reads the whole number of an option. */
export function parseCount(option: string, raw: string, min: number, max: number): number {
  const count = /^[0-9]{1,9}$/.test(raw) ? Number(raw) : Number.NaN;
  if (count >= min && count <= max) return count;
  throw usageError(`${option} has the value "${raw}", expected a whole number from ${min} to ${max}.`);
}
