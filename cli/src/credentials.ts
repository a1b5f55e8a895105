// Finds the server and the user of a reading command: --url, variables, or a profile (D110). Commands get a function that signs instead of
// the secret, and no message repeats what may be a secret.
import { type Client, type ClientOptions, createClient } from '@sealpost/client';
import { parseUserId, signRequest } from '@sealpost/protocol';
import type { OptionRow } from './command.ts';
import type { RawOptions } from './command-options.ts';
import { usageError } from './failure.ts';
import { withoutControls } from './formats.ts';
import {
  demoFiles,
  findDemoProfile,
  findProfile,
  type Profile,
  profileDefault,
  profilesFileOf,
  readProfiles,
  readSecret,
} from './profiles.ts';
import { clientOptions, serverAddress } from './remote-client.ts';
import type { Session } from './session.ts';

/** Makes the three headers of a request, good for a few seconds around `timestampMs`. The body is empty unless given. */
export type Signer = (
  method: string,
  target: string,
  timestampMs: number,
  body?: string,
) => Readonly<Record<string, string>>;

/** Opens the client of a server for a user; it reports what it corrects on stderr, unless `onWarning` is given. */
export type OpenClient = (
  url: URL,
  session: Pick<Session, 'stderr' | 'nowMs'>,
  changes?: Pick<ClientOptions, 'onWarning' | 'wsUrl' | 'fetch'>,
) => Client;

/** A user who can sign; `from` says where it was found, `url` and `wsUrl` are the profile's, if it has them. */
export type User = {
  readonly from: string;
  readonly sign: Signer;
  /** Signs in the name of another user, with this one's secret. */
  readonly signAs: (userId: string) => Signer;
  /** The text without the secret, should a server repeat it. */
  readonly redact: (text: string) => string;
  readonly openClient: OpenClient;
  readonly url?: string;
  readonly wsUrl?: string;
  /** The server that was asked for by name, where a profile applies without being named. */
  readonly server?: URL;
};

/** Where a server is looked for when nothing names one. */
export const urlDefault = 'http://127.0.0.1:7401';

/** Variables that name a server and a user. */
export const serverVariables = {
  url: 'SEALPOST_URL',
  wsUrl: 'SEALPOST_WS_URL',
  userId: 'SEALPOST_USER_ID',
  secret: 'SEALPOST_SECRET',
} as const;

/** The flag of the profile file. */
export const profilesOption: OptionRow = {
  flag: '--profiles <file>',
  help: 'profile file (default: ~/.config/sealpost/profiles.json)',
};

/** The flags of the credentials. There is none for a secret: other users of a machine can see command lines. */
export const userOptions: readonly OptionRow[] = [
  {
    flag: '--profile <name>',
    help: `saved credentials (default: $${serverVariables.userId} and $${serverVariables.secret}, else the profile default)`,
  },
  profilesOption,
];

/** The flags of server and credentials. */
export const accessOptions: readonly OptionRow[] = [
  {
    flag: '--url <url>',
    help: `server (default: the profile’s, else $${serverVariables.url}, else ${urlDefault})`,
  },
  ...userOptions,
];

/** The flag of commands with live connections. */
export const wsUrlOption: OptionRow = {
  flag: '--ws-url <url>',
  help: `WebSocket server, wss:// or https:// (default: the profile’s wsUrl, else $${serverVariables.wsUrl}, else the server)`,
};

/** Finds where the WebSockets of a server are, if elsewhere. Those of a profile and of the variables count only for their own server. */
export function readWsUrl(
  { env }: Pick<Session, 'env'>,
  options: RawOptions,
  url: URL,
  user: Pick<User, 'url' | 'wsUrl'>,
): string | undefined {
  const isSame = (raw: string): boolean => serverOf(parseServerUrl('The address', raw)) === serverOf(url);
  const [place, raw] =
    [
      ['--ws-url', options.wsUrl],
      ['The wsUrl of the profile', isSame(user.url ?? url.href) ? user.wsUrl : undefined],
      [
        serverVariables.wsUrl,
        isSame(env[serverVariables.url] || url.href) ? env[serverVariables.wsUrl] || undefined : undefined,
      ],
    ].find(([, value]) => value !== undefined) ?? [];
  return raw === undefined
    ? undefined
    : serverAddress(parseServerUrl(String(place), String(raw).replace(/^ws(?=s?:)/i, 'http')));
}

/** Finds server and user. The flag counts before a profile that was named, that before the variable, and this before other profiles. */
export async function readAccess(
  session: Session,
  options: RawOptions,
): Promise<{
  readonly url: URL;
  readonly wsUrl: string | undefined;
  readonly sign: Signer;
  readonly openClient: OpenClient;
}> {
  const user = await readUser(session, options);
  const url = user.server ?? readServer(session, options, user.url);
  return { url, wsUrl: readWsUrl(session, options, url, user), sign: user.sign, openClient: user.openClient };
}

/** Finds the server: --url, the profile's, the variable's, or the default. */
export function readServer({ env }: Session, { url }: RawOptions, profileUrl?: string): URL {
  const [place, raw] = [
    ['--url', url],
    ['The url of the profile', profileUrl],
    [serverVariables.url, env[serverVariables.url] || undefined],
  ].find(([, value]) => value !== undefined) ?? ['', urlDefault];
  return parseServerUrl(String(place), String(raw));
}

const isLoopback = (host: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);

/** Reads the address of a server: scheme, host, port, and the path of a proxy (D252). Without a path, a scheme may be missing. */
export function parseServerUrl(place: string, raw: string): URL {
  // A port, a dot or `localhost` distinguishes a host from any other word.
  const isHostPort = /^(localhost|\[[0-9a-f:]+\]|[^:/?#@.]+\.[^:/?#@]+|[^:/?#@]+(?=:\d))(:\d+)?\/?$/i.test(raw);
  const scheme = isLoopback(raw.replace(/(:\d+)?\/?$/, '').toLowerCase()) ? 'http' : 'https';
  const whole = isHostPort ? `${scheme}://${raw}` : raw;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  // No user, query or fragment, and no path of the API.
  const isBare = url !== undefined && url.origin + url.pathname === url.href && !/\/api\/v\d/.test(url.pathname);
  if (isBare && ['http:', 'https:'].includes(url.protocol)) return url;
  throw usageError(
    `${place} is not a server URL, expected scheme, host, port and perhaps a path, such as ${urlDefault}.`,
  );
}

/**
 * Finds the user: that of --profile, of the variables, of the profile default, or of a demo in ./data. The last two are used for the server
 * that they were saved for; `server` is the one that is asked, where a command has it as an argument.
 */
export async function readUser(session: Session, options: RawOptions, server?: URL): Promise<User> {
  const found = await findUser(session, options, server);
  if (found !== undefined) return found;
  const { userId, secret } = serverVariables;
  throw usageError(`No credentials. Save them with: sealpost login URL. Or set ${userId} and ${secret}.`);
}

/** As `readUser`; undefined where no credentials are configured. */
export async function findUser(session: Session, options: RawOptions, server?: URL): Promise<User | undefined> {
  const { profile, profiles } = options;
  if (profile !== undefined || profiles !== undefined)
    return readNamed(session, String(profile ?? profileDefault), profiles);
  const [userId, secret] = [session.env[serverVariables.userId], session.env[serverVariables.secret]];
  if (userId && secret)
    return createUser(
      `${serverVariables.userId} and ${serverVariables.secret}`,
      serverVariables.userId,
      userId,
      secret,
    );
  if (userId || secret) {
    const [set, missing] = userId
      ? [serverVariables.userId, serverVariables.secret]
      : [serverVariables.secret, serverVariables.userId];
    throw usageError(`${set} is set, but ${missing} is not. Set both.`);
  }
  return findImplicit(session, options, server);
}

const readNamed = async (session: Session, name: string, profiles: unknown): Promise<User> => {
  const file = profiles === undefined ? profilesFileOf(session.env) : String(profiles);
  const demo = profiles === undefined && name === demoFiles.profile ? await findDemoProfile(session) : undefined;
  const found = (await findProfile(file, name)) ?? demo;
  if (found !== undefined) return openProfile(found);
  const known = Object.keys(await readProfiles(file)).join(', ') || 'none';
  throw usageError(`${file} has no profile ${name}. It has: ${known}. Save one with: sealpost login URL.`);
};

const openProfile = async (profile: Profile): Promise<User> => {
  const { name, userId, url, wsUrl } = profile;
  const user = createUser(`profile ${name}`, `The userId of profile ${name}`, userId, await readSecret(profile));
  return { ...user, ...(url !== undefined && { url }), ...(wsUrl !== undefined && { wsUrl }) };
};

/** The profile that applies without being named, and the server: credentials never go to another one than they were saved for. */
const findImplicit = async (session: Session, options: RawOptions, server?: URL): Promise<User | undefined> => {
  const isNamed = server !== undefined || options.url !== undefined || !!session.env[serverVariables.url];
  const asked = isNamed ? (server ?? readServer(session, options)) : undefined;
  const fits = ({ url }: Profile): boolean =>
    asked === undefined ||
    (url !== undefined && serverOf(parseServerUrl('The url of the profile', url)) === serverOf(asked));
  const saved = await findProfile(profilesFileOf(session.env), profileDefault);
  const demo = saved === undefined ? await findDemoProfile(session) : undefined;
  const found = saved ?? demo;
  if (found === undefined || !fits(found)) return undefined;
  if (found === demo)
    session.stderr.write(withoutControls(`Using profile demo from ./${demoFiles.folder}, ${found.url}.\n`));
  const from = found === demo ? { from: `profile demo from ./${demoFiles.folder}` } : {};
  return { ...(await openProfile(found)), ...from, ...(asked && { server: asked }) };
};

/** What tells servers apart: the address, with every name of this machine alike. */
const serverOf = (url: URL): string => {
  const { protocol, hostname, port, origin } = url;
  const path = serverAddress(url).slice(origin.length);
  return `${protocol}//${isLoopback(hostname) ? 'localhost' : hostname}:${port}${path}`;
};

/** A user who can sign; `place` names a malformed user ID in the error. */
export function createUser(from: string, place: string, userId: string, secret: string): User {
  try {
    parseUserId(userId);
  } catch {
    throw usageError(`${place} is not a UUID.`); // not repeated: it may be the secret, mixed up
  }
  const signAs: User['signAs'] = (name) => (method, target, timestampMs, body) =>
    signRequest({ method, target, userId: name, timestampMs, ...(body !== undefined && { body }) }, secret);
  const redact = (text: string): string => text.replaceAll(secret, '(secret)');
  const openClient: OpenClient = (at, session, changes = {}) =>
    createClient({ ...clientOptions(at, session), userId, secret, ...changes });
  return { from, sign: signAs(userId), signAs, redact, openClient };
}
