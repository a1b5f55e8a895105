// Finding the ingest token: the setting itself, or the file that a setting names.
import { type ResolvedSettings, type SettingSource, settingsTable } from '../../../config/config.ts';
import { usageError } from '../../failure.ts';
import { readPrivateFile } from '../../private-file.ts';

const precedence: readonly SettingSource[] = ['flag', 'environment', 'file', 'default'];

/** The token; undefined when none is set. Of token and token file, the one from the earlier source counts. */
export const readIngestToken = async ({ values, sources }: ResolvedSettings): Promise<string | undefined> => {
  const { ingestToken: token, ingestTokenFile: path } = values;
  const rank = (source: SettingSource) => precedence.indexOf(source);
  const fileComesFirst = token === undefined || rank(sources.ingestTokenFile) < rank(sources.ingestToken);
  if (path === undefined || !fileComesFirst) return token;
  const text = await readPrivateFile(path);
  const { parse, expected } = settingsTable.ingestToken;
  const read = parse(text.trim());
  if (read === undefined) throw usageError(`${path} does not contain an ingest token, expected ${expected}.`);
  return read;
};
