// Owns how a reading command finds its server and its user: --url, variables, or a profile. The secret never leaves this file:
// commands get a function that signs, and no message repeats what may be a secret.
import { open } from 'node:fs/promises';
import { homedir, platform } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Client, type ClientOptions, createClient } from '@sealpost/client';
import { parseUserId, signRequest } from '@sealpost/protocol';
import type { Command } from 'commander';
import { type RawOptions, unreadable } from './command-options.ts';
import { usageError } from './failure.ts';
import { clientOptions } from './remote-client.ts';
import type { Session } from './session.ts';

/** Makes the three headers of a request, good for a few seconds around `timestampMs`. */
export type Signer = (method: string, target: string, timestampMs: number) => Readonly<Record<string, string>>;

/** Opens the client of a server for a user; what it mends by itself is told on stderr, unless `onWarning` takes it. */
export type OpenClient = (
  url: URL,
  session: Pick<Session, 'stderr' | 'nowMs'>,
  changes?: Pick<ClientOptions, 'onWarning' | 'wsUrl'>,
) => Client;

/** A user who can sign; `from` says where it was found, `url` and `wsUrl` are the profile's, where it has them. */
export type User = {
  readonly from: string;
  readonly sign: Signer;
  readonly openClient: OpenClient;
  readonly url?: string;
  readonly wsUrl?: string;
};

const urlDefault = 'http://127.0.0.1:7401';
const [urlVariable, userIdVariable, secretVariable] = ['SEALPOST_URL', 'SEALPOST_USER_ID', 'SEALPOST_SECRET'];

/** Adds the flags that say who reads. There is none for a secret: other users of a machine see command lines. */
export const addUserOptions = (command: Command): Command =>
  command
    .option('--profile <name>', `user of the profile file (default: $${userIdVariable} and $${secretVariable})`)
    .option('--profiles <file>', 'profile file (default: ~/.config/sealpost/profiles.json)');

/** Adds the flags that say from where, and who reads. */
export const addAccessOptions = (command: Command): Command =>
  addUserOptions(command.option('--url <url>', `server (the profile’s, else $${urlVariable}, default: ${urlDefault})`));

const wsUrlVariable = 'SEALPOST_WS_URL';

/** Adds the flag of commands with live connections. */
export const addWsUrlOption = (command: Command): Command =>
  command.option(
    '--ws-url <url>',
    `server for WebSockets, wss:// or https:// (the profile’s wsUrl, else $${wsUrlVariable}, default: the server)`,
  );

/** Finds where the WebSockets of a server are, if elsewhere. Those of a profile and of the variables count only for their own server. */
export const readWsUrl = (
  { env }: Pick<Session, 'env'>,
  options: RawOptions,
  url: URL,
  user: Pick<User, 'url' | 'wsUrl'>,
): string | undefined => {
  const isSame = (raw: string): boolean => URL.canParse(raw) && new URL(raw).origin === url.origin;
  const [place, raw] =
    [
      ['--ws-url', options.wsUrl],
      ['The wsUrl of the profile', isSame(user.url ?? url.href) ? user.wsUrl : undefined],
      [wsUrlVariable, isSame(env[urlVariable] || url.href) ? env[wsUrlVariable] || undefined : undefined],
    ].find(([, value]) => value !== undefined) ?? [];
  return raw === undefined
    ? undefined
    : parseServerUrl(String(place), String(raw).replace(/^ws(?=s?:)/i, 'http')).origin;
};

/** Finds server and user. The flag counts before the profile, the profile before the variables. */
export const readAccess = async (
  session: Session,
  options: RawOptions,
): Promise<{
  readonly url: URL;
  readonly wsUrl: string | undefined;
  readonly sign: Signer;
  readonly openClient: OpenClient;
}> => {
  const user = await readUser(session, options);
  const [place, raw] = [
    ['--url', options.url],
    ['The url of the profile', user.url],
    [urlVariable, session.env[urlVariable] || undefined],
  ].find(([, value]) => value !== undefined) ?? ['', urlDefault];
  const url = parseServerUrl(String(place), String(raw));
  return { url, wsUrl: readWsUrl(session, options, url, user), sign: user.sign, openClient: user.openClient };
};

/** Reads the address of a server: scheme, host and port only, because a path would be part of what is signed. */
export const parseServerUrl = (place: string, raw: string): URL => {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  const isBare = url !== undefined && `${url.origin}/` === url.href;
  if (isBare && ['http:', 'https:'].includes(url.protocol)) return url;
  throw usageError(`${place} is not the address of a server, expected scheme, host and port, such as ${urlDefault}.`);
};

/** Finds the user: that of --profile, else that of the variables. */
export const readUser = async (session: Session, { profile, profiles }: RawOptions): Promise<User> => {
  if (profile !== undefined) {
    const path = profiles ?? join(session.env.HOME || homedir(), '.config', 'sealpost', 'profiles.json');
    return readProfile(String(path), String(profile));
  }
  if (profiles !== undefined) throw usageError('--profiles needs the name of a profile. Give it with --profile NAME.');
  const [userId, secret] = [session.env[userIdVariable], session.env[secretVariable]];
  if (userId && secret) return createUser(`${userIdVariable} and ${secretVariable}`, userIdVariable, userId, secret);
  const missing = [userId ? [] : [userIdVariable], secret ? [] : [secretVariable]].flat().join(' and ');
  throw usageError(
    `No credentials: ${missing} not set. Set ${userIdVariable} and ${secretVariable}, or use --profile.`,
  );
};

const createUser = (
  from: string,
  place: string,
  userId: string,
  secret: string,
  addresses: Pick<User, 'url' | 'wsUrl'> = {},
): User => {
  try {
    parseUserId(userId);
  } catch {
    throw usageError(`${place} is not a user id, expected a UUID.`); // not repeated: it may be the secret, mixed up
  }
  const sign: Signer = (method, target, timestampMs) => signRequest({ method, target, userId, timestampMs }, secret);
  const openClient: OpenClient = (at, session, changes = {}) =>
    createClient({ ...clientOptions(at, session), userId, secret, ...changes });
  return { from, sign, openClient, ...addresses };
};

const profileForm = '{"url", "userId", and "secretFile" or "secret"}, with "wsUrl" where WebSockets are elsewhere';

const readProfile = async (path: string, name: string): Promise<User> => {
  const all = parseObject(await readPrivateFile(path), path);
  const place = `Profile ${name} of ${path}`;
  if (!Object.hasOwn(all, name)) {
    const known = Object.keys(all).join(', ') || 'none';
    throw usageError(`${path} has no profile ${name}. It has: ${known}.`);
  }
  const fields = Object.entries(Object(all[name]));
  const texts = new Map(
    fields.filter((field): field is [string, string] => typeof field[1] === 'string' && !!field[1]),
  );
  const isKnown = (key: string) => ['url', 'wsUrl', 'userId', 'secret', 'secretFile'].includes(key);
  const [userId, inline, file] = [texts.get('userId'), texts.get('secret'), texts.get('secretFile')];
  const isWhole = texts.size === fields.length && fields.every(([key]) => isKnown(key));
  if (!isWhole || userId === undefined || (inline === undefined) === (file === undefined))
    throw usageError(`${place} is incomplete or has something else, expected ${profileForm}, texts all.`);
  const secret = inline ?? (await readPrivateFile(resolve(dirname(path), file ?? ''))).trim();
  if (secret === '') throw usageError(`${place} has an empty secret file.`);
  const [url, wsUrl] = [texts.get('url'), texts.get('wsUrl')];
  const addresses = { ...(url !== undefined && { url }), ...(wsUrl !== undefined && { wsUrl }) };
  return createUser(`profile ${name}`, `The userId of profile ${name}`, userId, secret, addresses);
};

// The parser's own message quotes the text, which holds secrets.
const parseObject = (text: string, path: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    throw usageError(`${path} is not JSON, expected an object of name → ${profileForm}.`);
  }
  throw usageError(`${path} is not an object of name → ${profileForm}.`);
};

const othersMask = 0o077;

/** Reads a file that only its owner may see; modes mean nothing on Windows. */
const readPrivateFile = async (path: string): Promise<string> => {
  const fail = (cause: Error): never => {
    throw unreadable(path, cause);
  };
  const handle = await open(path).catch(fail);
  try {
    const { mode } = await handle.stat();
    if ((mode & othersMask) !== 0 && platform() !== 'win32')
      throw usageError(`${path} holds a secret and is open to others. Run: chmod 600 ${path}`);
    return await handle.readFile('utf8').catch(fail);
  } finally {
    await handle.close();
  }
};
