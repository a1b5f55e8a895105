// Profile files: servers and users by name, for the commands that read from a server (D110). A file is written with mode 0600, and one
// that other users can read is rejected. No message repeats what may be a secret.
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { replaceFile } from '@sealpost/server/runtime/file-replacement';
import { makeFolder } from '@sealpost/server/runtime/files';
import { usageError } from './failure.ts';
import { readPrivateFile } from './private-file.ts';
import type { Session } from './session.ts';

/** The profile that `sealpost login` writes, and that commands use, when none is named. */
export const profileDefault = 'default';

/** A user of a server, as the file has it; the secret is in it or in a separate file. */
export type Profile = {
  readonly name: string;
  readonly file: string;
  readonly url?: string;
  readonly wsUrl?: string;
  readonly userId: string;
  readonly secret?: string;
  readonly secretFile?: string;
};

const profileForm = '{"url", "userId", "secretFile" or "secret", and optionally "wsUrl"}';

/** The profile file of this user: in the XDG config folder, which must be absolute to count. */
export const profilesFileOf = ({ XDG_CONFIG_HOME: xdg, HOME: home }: NodeJS.ProcessEnv): string =>
  join(xdg && isAbsolute(xdg) ? xdg : join(home || homedir(), '.config'), 'sealpost', 'profiles.json');

/** The files of a demo in its folder, `./data` by default. */
export const demoFiles = { folder: 'data', world: 'demo.json', profiles: 'profiles.json', profile: 'demo' } as const;

/** The profile of a demo in ./data; undefined where there is none. */
export async function findDemoProfile({ cwd }: Pick<Session, 'cwd'>): Promise<Profile | undefined> {
  const folder = join(cwd, demoFiles.folder);
  const marker = await readPrivateFile(join(folder, demoFiles.world)).catch(() => undefined);
  return marker === undefined ? undefined : findProfile(join(folder, demoFiles.profiles), demoFiles.profile);
}

/** One profile of a file; undefined where the file or the profile is not there. */
export async function findProfile(file: string, name: string): Promise<Profile | undefined> {
  const all = await readProfiles(file);
  return Object.hasOwn(all, name) ? parseProfile(file, name, all[name]) : undefined;
}

/** Every profile of a file, not parsed; none if there is no file. */
export async function readProfiles(file: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readPrivateFile(file).catch((error: Error) => {
    if (Object(error.cause).code === 'ENOENT') return '{}';
    throw error;
  });
  return parseObject(text, file);
}

/** Every profile of a file that can be used, by name. */
export const listProfiles = async (file: string): Promise<readonly Profile[]> =>
  Object.entries(await readProfiles(file)).map(([name, fields]) => parseProfile(file, name, fields));

const parseProfile = (file: string, name: string, value: unknown): Profile => {
  const fields = Object.entries(Object(value));
  const texts = new Map(
    fields.filter((field): field is [string, string] => typeof field[1] === 'string' && !!field[1]),
  );
  const isKnown = (key: string) => ['url', 'wsUrl', 'userId', 'secret', 'secretFile'].includes(key);
  const isWhole = texts.size === fields.length && fields.every(([key]) => isKnown(key));
  const userId = texts.get('userId');
  if (!isWhole || userId === undefined || texts.has('secret') === texts.has('secretFile'))
    throw usageError(
      `Profile ${name} in ${file} is incomplete or has unknown fields, expected ${profileForm}, all strings.`,
    );
  return { ...Object.fromEntries(texts), name, file, userId };
};

/** The secret of a profile. */
export async function readSecret({ name, file, secret, secretFile }: Profile): Promise<string> {
  const read = secret ?? (await readPrivateFile(resolve(dirname(file), secretFile ?? ''))).trim();
  if (read === '') throw usageError(`The secret file of profile ${name} in ${file} is empty.`);
  return read;
}

/**
 * Changes the profiles of a file, whole or not at all. `change` gets them as they are now, and no other command changes them meanwhile. The file
 * and the folder are made for their owner only, and a link to the file stays a link.
 */
export async function changeProfiles(
  file: string,
  change: (profiles: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>,
): Promise<void> {
  makeFolder(dirname(file), 0o700);
  await replaceFile(file, async () => `${JSON.stringify(change(await readProfiles(file)), null, 2)}\n`);
}

// The parser's message quotes the text, which contains secrets.
const parseObject = (text: string, path: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    throw usageError(`${path} is not JSON, expected an object of name → ${profileForm}.`);
  }
  throw usageError(`${path} is not an object of name → ${profileForm}.`);
};
