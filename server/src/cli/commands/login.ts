// The commands `sealpost login`, `logout` and `profile`: credentials of servers, kept for the commands that read from them (D110).
import { SealpostError } from '@sealpost/client';
import type { Command } from 'commander';
import { addExamples, type RawOptions } from '../command-options.ts';
import { createUser, parseServerUrl, serverVariables, urlDefault } from '../credentials.ts';
import { CommandError, exitCodes, usageError } from '../failure.ts';
import { formatNumberOf, renderPairs, renderTable } from '../formats.ts';
import {
  findDemoProfile,
  findProfile,
  listProfiles,
  type Profile,
  profileDefault,
  profilesFileOf,
  readProfiles,
  writeProfiles,
} from '../profiles.ts';
import { askLine } from '../prompt.ts';
import { explainRemote } from '../remote-client.ts';
import { printJson, type Session } from '../session.ts';

const addProfilesOption = (command: Command): Command =>
  command.option('--profiles <file>', 'profile file (default: ~/.config/sealpost/profiles.json)');

const fileOf = ({ env }: Session, { profiles }: RawOptions): string =>
  profiles === undefined ? profilesFileOf(env) : String(profiles);

export const addLoginCommands = (program: Command, session: Session): void => {
  addLogin(program, session);
  addLogout(program, session);
  const profile = program.command('profile').description('Show saved credentials: list, show.');
  addList(profile, session);
  addShow(profile, session);
};

const addLogin = (program: Command, session: Session): void => {
  const command = program
    .command('login')
    .description('Check the credentials of a server and save them. The secret is read without echo.')
    .argument('[URL]', `server ($${serverVariables.url}, default: ${urlDefault})`)
    .option('--user-id <uuid>', `user ID ($${serverVariables.userId}; prompted for on a terminal)`)
    .option('--profile <name>', 'profile to save them as', profileDefault)
    .option('--json', 'print what was saved as one line of JSON, without the secret')
    .action((url: string | undefined, options: RawOptions) => logIn(session, url, options));
  addProfilesOption(command);
  addExamples(command, [
    ['On a terminal', 'sealpost login https://streams.example.com'],
    ['In a script, with the secret on standard input', 'sealpost login --user-id UUID --profile ci < secret.txt'],
  ]);
};

const logIn = async (session: Session, rawUrl: string | undefined, options: RawOptions): Promise<void> => {
  const { env, stdin, stderr } = session;
  const url = parseServerUrl(
    rawUrl === undefined ? serverVariables.url : 'URL',
    rawUrl ?? (env[serverVariables.url] || urlDefault),
  );
  const file = fileOf(session, options);
  const [name, others] = [String(options.profile), await readProfiles(file)];
  const given = options.userId ?? env[serverVariables.userId];
  if (!given && stdin.isTTY !== true)
    throw usageError('Standard input is not a terminal. Pass the user ID with --user-id UUID.');
  const userId = given ? String(given) : await askLine(stdin, stderr, 'User ID: ');
  const user = (secret: string) => createUser(`profile ${name}`, 'The user ID', userId, secret);
  user(''); // a malformed user ID is told before the secret is asked for
  const secret = await askLine(stdin, stderr, 'Secret (not shown): ', { hidden: true });
  if (secret === '') throw usageError('No secret was given. Type it, or pipe it to standard input.');
  const { feeds } = await explainRemote(url, () =>
    user(secret).openClient(url, session).feeds({ signal: session.interruption() }).catch(explainRejection),
  );
  await writeProfiles(file, { ...others, [name]: { url: url.origin, userId, secret } });
  const streams = feeds.length;
  if (options.json) return printJson(session, { profile: name, file, url: url.origin, userId, streams });
  await session.write(
    `Signed in to ${url.origin}: ${formatNumberOf(streams, 'stream')} readable. Saved as profile ${name} in ${file}.\n`,
  );
};

const explainRejection = (error: unknown): never => {
  if (!(error instanceof SealpostError) || error.code !== 'unauthorized') throw error;
  const text = 'Sign-in failed. Check the user ID and secret; the account may be disabled. Nothing was saved.';
  throw new CommandError(exitCodes.refused, text, { cause: error });
};

const addLogout = (program: Command, session: Session): void => {
  const command = program
    .command('logout')
    .description('Remove saved credentials. The account and its secret stay valid.')
    .option('--profile <name>', 'profile to remove', profileDefault)
    .option('--json', 'print what was removed as one line of JSON')
    .action((options: RawOptions) => logOut(session, options));
  addProfilesOption(command);
  addExamples(command, [['Remove the default profile', 'sealpost logout']]);
};

const logOut = async (session: Session, options: RawOptions): Promise<void> => {
  const [name, file] = [String(options.profile), fileOf(session, options)];
  const profiles = await readProfiles(file);
  if (!Object.hasOwn(profiles, name))
    throw new CommandError(exitCodes.refused, `There is no profile ${name} in ${file}. See: sealpost profile list.`);
  const { [name]: removed, ...others } = profiles;
  await writeProfiles(file, others);
  if (options.json) return printJson(session, { profile: name, file });
  const { secretFile } = Object(removed);
  const left = typeof secretFile === 'string' ? ` Its secret file ${secretFile} was left in place.` : '';
  await session.write(`Profile ${name} removed from ${file}.${left}\n`);
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

const addList = (parent: Command, session: Session): void => {
  const command = parent
    .command('list')
    .description(
      'List saved credentials, without secrets. Commands use the profile named default unless --profile is set.',
    )
    .option('--json', 'print the profiles as one line of JSON, without secrets')
    .action((options: RawOptions) => listAll(session, options));
  addProfilesOption(command);
  addExamples(command, [['List saved servers', 'sealpost profile list']]);
};

const listAll = async (session: Session, options: RawOptions): Promise<void> => {
  const profiles = (await readAll(session, options)).map(showProfile);
  if (options.json) return printJson(session, { profiles });
  if (profiles.length === 0) return session.write('No profiles. Save one with: sealpost login URL.\n');
  const columns = ['name', 'server', 'user ID', 'file'].map((title) => ({ title }));
  const rows = profiles.map(({ name, url, userId, file }) => [name, url ?? '–', userId, file]);
  await session.write(renderTable(columns, rows, session.paint));
};

const addShow = (parent: Command, session: Session): void => {
  const command = parent
    .command('show')
    .description('Show one profile, without its secret.')
    .argument('[NAME]', 'profile', profileDefault)
    .option('--json', 'print the profile as one line of JSON, without its secret')
    .action((name: string, options: RawOptions) => showOne(session, name, options));
  addProfilesOption(command);
  addExamples(command, [['Show the default profile', 'sealpost profile show']]);
};

const showOne = async (session: Session, name: string, options: RawOptions): Promise<void> => {
  const found =
    (await findProfile(fileOf(session, options), name)) ??
    (await readAll(session, options)).find((profile) => profile.name === name);
  if (found === undefined)
    throw new CommandError(exitCodes.refused, `There is no profile ${name}. See: sealpost profile list.`);
  const shown = showProfile(found);
  if (options.json) return printJson(session, shown);
  await session.write(
    renderPairs([
      ['profile', shown.name],
      ['server', shown.url ?? '–'],
      ['user ID', shown.userId],
      ['secret', shown.secret],
      ['file', shown.file],
    ]),
  );
};
