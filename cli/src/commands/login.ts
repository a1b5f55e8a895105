// The commands `sealpost login`, `logout` and `profile`: credentials of servers, kept for the commands that read from them (D110).
import { SealpostError } from '@sealpost/client';
import type { CommandGroup, PlainCommand } from '../command.ts';
import type { RawOptions } from '../command-options.ts';
import { createUser, parseServerUrl, profilesOption, serverVariables, urlDefault } from '../credentials.ts';
import { CommandError, exitCodes, usageError } from '../failure.ts';
import { formatNumberOf, renderPairs, renderTable } from '../formats.ts';
import {
  changeProfiles,
  findDemoProfile,
  findProfile,
  listProfiles,
  type Profile,
  profileDefault,
  profilesFileOf,
  readProfiles,
} from '../profiles.ts';
import { askLine } from '../prompt.ts';
import { explainRemote, serverAddress } from '../remote-client.ts';
import type { Session } from '../session.ts';

const fileOf = ({ env }: Session, { profiles }: RawOptions): string =>
  profiles === undefined ? profilesFileOf(env) : String(profiles);

export const loginCommand: PlainCommand = {
  name: 'login',
  summary: 'Check the credentials of a server and save them. The secret is read without echo.',
  arguments: [{ name: '[URL]', help: `server ($${serverVariables.url}, default: ${urlDefault})` }],
  options: [
    { flag: '--user-id <uuid>', help: `user ID ($${serverVariables.userId}; prompted for on a terminal)` },
    { flag: '--profile <name>', help: 'profile to save them as', default: profileDefault },
    { flag: '--json', help: 'print what was saved as one line of JSON, without the secret' },
    profilesOption,
  ],
  examples: [
    ['On a terminal', 'sealpost login https://streams.example.com'],
    ['In a script, with the secret on standard input', 'sealpost login --user-id UUID --profile ci < secret.txt'],
  ],
  run: async ({ session, options, print }, rawUrl: string | undefined) => {
    const { env, stdin, stderr } = session;
    const url = parseServerUrl(
      rawUrl === undefined ? serverVariables.url : 'URL',
      rawUrl ?? (env[serverVariables.url] || urlDefault),
    );
    const file = fileOf(session, options);
    const name = String(options.profile);
    await readProfiles(file); // rejects a file that cannot be used before asking for the secret
    const given = options.userId ?? env[serverVariables.userId];
    if (!given && stdin.isTTY !== true)
      throw usageError('Standard input is not a terminal. Pass the user ID with --user-id UUID.');
    const userId = given ? String(given) : await askLine(stdin, stderr, 'User ID: ');
    const user = (secret: string) => createUser(`profile ${name}`, 'The user ID', userId, secret);
    user(''); // rejects a malformed user ID before asking for the secret
    const secret = await askLine(stdin, stderr, 'Secret (not shown): ', { hidden: true });
    if (secret === '') throw usageError('No secret was given. Type it, or pipe it to standard input.');
    const { feeds } = await explainRemote(url, () =>
      user(secret).openClient(url, session).feeds({ signal: session.interruption() }).catch(explainRejection),
    );
    // Other commands may have changed the file since.
    await changeProfiles(file, (others) => ({ ...others, [name]: { url: serverAddress(url), userId, secret } }));
    const streams = feeds.length;
    await print(
      { profile: name, file, url: serverAddress(url), userId, streams },
      `Signed in to ${serverAddress(url)}: ${formatNumberOf(streams, 'stream')} readable. Saved as profile ${name} in ${file}.\n`,
    );
  },
};

const explainRejection = (error: unknown): never => {
  if (!(error instanceof SealpostError) || error.code !== 'unauthorized') throw error;
  const text = 'Sign-in failed. Check the user ID and secret; the account may be disabled. Nothing was saved.';
  throw new CommandError(exitCodes.refused, text, { cause: error });
};

export const logoutCommand: PlainCommand = {
  name: 'logout',
  summary: 'Remove saved credentials. The account and its secret stay valid.',
  options: [
    { flag: '--profile <name>', help: 'profile to remove', default: profileDefault },
    { flag: '--json', help: 'print what was removed as one line of JSON' },
    profilesOption,
  ],
  examples: [['Remove the default profile', 'sealpost logout']],
  run: async ({ session, options, print }) => {
    const [name, file] = [String(options.profile), fileOf(session, options)];
    const remove = (profiles: Readonly<Record<string, unknown>>) => {
      if (Object.hasOwn(profiles, name))
        return Object.fromEntries(Object.entries(profiles).filter(([one]) => one !== name));
      throw new CommandError(exitCodes.refused, `There is no profile ${name} in ${file}. See: sealpost profile list.`);
    };
    const profiles = await readProfiles(file);
    remove(profiles); // writes nothing, not even the folder, if there is no such profile
    await changeProfiles(file, remove);
    const { secretFile } = Object(profiles[name]);
    const left = typeof secretFile === 'string' ? ` Its secret file ${secretFile} was left in place.` : '';
    await print({ profile: name, file }, `Profile ${name} removed from ${file}.${left}\n`);
  },
};

/** A profile as it is shown: without the secret. */
const showProfile = ({ name, url, userId, file, secretFile }: Profile) => ({
  name,
  url: url ?? null,
  userId,
  file,
  secret: secretFile ?? '(set)',
});

const readAll = async (session: Session, options: RawOptions): Promise<readonly Profile[]> => {
  const saved = await listProfiles(fileOf(session, options));
  const demo = options.profiles === undefined ? await findDemoProfile(session) : undefined;
  return demo === undefined || saved.some(({ name }) => name === demo.name) ? saved : [...saved, demo];
};

const list: PlainCommand = {
  name: 'list',
  summary: 'List saved credentials, without secrets. Commands use the profile named default unless --profile is set.',
  options: [{ flag: '--json', help: 'print the profiles as one line of JSON, without secrets' }, profilesOption],
  examples: [['List saved servers', 'sealpost profile list']],
  run: async ({ session, options, print }) => {
    const profiles = (await readAll(session, options)).map(showProfile);
    const columns = ['name', 'server', 'user ID', 'file'].map((title) => ({ title }));
    const rows = profiles.map(({ name, url, userId, file }) => [name, url ?? '–', userId, file]);
    const none = 'No profiles. Save one with: sealpost login URL.\n';
    await print({ profiles }, rows.length === 0 ? none : renderTable(columns, rows, session.paint));
  },
};

const show: PlainCommand = {
  name: 'show',
  summary: 'Show one profile, without its secret.',
  arguments: [{ name: '[NAME]', help: 'profile', default: profileDefault }],
  options: [{ flag: '--json', help: 'print the profile as one line of JSON, without its secret' }, profilesOption],
  examples: [['Show the default profile', 'sealpost profile show']],
  run: async ({ session, options, print }, name: string) => {
    const found =
      (await findProfile(fileOf(session, options), name)) ??
      (await readAll(session, options)).find((profile) => profile.name === name);
    if (found === undefined)
      throw new CommandError(exitCodes.refused, `There is no profile ${name}. See: sealpost profile list.`);
    const shown = showProfile(found);
    await print(
      shown,
      renderPairs([
        ['profile', shown.name],
        ['server', shown.url ?? '–'],
        ['user ID', shown.userId],
        ['secret', shown.secret],
        ['file', shown.file],
      ]),
    );
  },
};

export const profileCommands: CommandGroup = {
  name: 'profile',
  summary: 'Show saved credentials: list, show.',
  commands: [list, show],
};
