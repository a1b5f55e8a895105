// The one table of settings, and where a value comes from: flag, environment, config file or default, in this order. Callers read the file and
// the command line. A test compares the table with docs/configuration.md.
import { limits, networkTypes, skewMaxMs, withoutTrailing } from '@sealpost/protocol';
import { hidePassword } from '../runtime/urls.ts';
import { connectionSettings } from './connections.ts';
import { privateSettings } from './private.ts';
import {
  formatList,
  formatListen,
  logLevels,
  onOrOff,
  parseAddresses,
  parseDatabases,
  parseList,
  parseListen,
  parseRetentionBytes,
  parseStore,
  parseText,
  parseThreads,
  perSecond,
  threadsMax,
  wholeNumber,
} from './values.ts';

/** Where a value came from. */
export type SettingSource = 'flag' | 'environment' | 'file' | 'default';

type SettingRow<T, D extends string | undefined> = {
  readonly env: `SEALPOST_${string}`;
  /** As commander takes it; a secret has none, since everyone on a machine sees the arguments of a process. */
  readonly flag: `--${string} <${string}>` | undefined;
  /** The default as a text, read like any other; undefined means not set. */
  readonly defaultText: D;
  /** Undefined for a text that is no value. */
  readonly parse: (raw: string) => T | undefined;
  readonly expected: string;
  /** Every value, where there are few. */
  readonly choices?: readonly string[];
  readonly help: string;
  /** The value as a text that `parse` takes; `String` when absent. */
  readonly format?: (value: T) => string;
  readonly secret?: true;
  /** An address that may have a password in it: a text that is no value is not shown, since the password could be anywhere in it. */
  readonly mayHoldPassword?: true;
};

const row = <T, D extends string | undefined>(setting: SettingRow<T, D>): SettingRow<T, D> => setting;

/** Every setting by its name, which is also its key in the config file. */
export const settingsTable = {
  store: row({
    env: 'SEALPOST_STORE',
    flag: '--store <url>',
    defaultText: 'lmdb:./data',
    parse: parseStore,
    format: hidePassword,
    expected: 'the address of a store, lmdb:FOLDER or postgres://USER@HOST/DATABASE',
    help: 'where reports and administrative records are stored',
    mayHoldPassword: true,
  }),
  readStore: row({
    env: 'SEALPOST_READ_STORE',
    flag: '--read-store <urls>',
    defaultText: undefined,
    parse: parseDatabases,
    format: (urls) => formatList(urls.map(hidePassword)),
    expected: 'addresses of databases separated by commas, postgres://USER@HOST/DATABASE, each of one server',
    help: 'read replicas of a PostgreSQL store, used for history once they have caught up',
    mayHoldPassword: true,
  }),
  network: row({
    env: 'SEALPOST_NETWORK',
    flag: '--network <type>',
    defaultText: 'testnet',
    parse: (raw) => networkTypes.find((type) => type === raw),
    expected: networkTypes.join(' or '),
    choices: networkTypes,
    help: 'the network that this deployment serves; streams of the other are rejected',
  }),
  key: row({
    env: 'SEALPOST_KEY',
    flag: undefined,
    defaultText: undefined,
    parse: (raw) => (/^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=)$/.test(raw) ? raw : undefined),
    expected: '32 bytes as 64 hex digits or base64',
    help: 'the key-encryption key that seals secrets, instead of a key file',
    secret: true,
  }),
  keyFile: row({
    env: 'SEALPOST_KEY_FILE',
    flag: '--key-file <file>',
    defaultText: './data/sealpost.key',
    parse: parseText,
    expected: 'the path of a file',
    help: 'file with the key-encryption key, by default in the folder of an LMDB store; sealpost init creates it',
  }),
  listen: row({
    env: 'SEALPOST_LISTEN',
    flag: '--listen <address>',
    defaultText: '127.0.0.1:7401',
    parse: parseListen,
    format: formatListen,
    expected: 'HOST:PORT, such as 127.0.0.1:7401 or [::1]:7401; port 0 takes a free one',
    help: 'address of the public API',
  }),
  workers: row({
    env: 'SEALPOST_WORKERS',
    flag: '--workers <count>',
    defaultText: '0',
    parse: wholeNumber(0, threadsMax),
    expected: `a whole number from 0, which means one process for everything, to ${threadsMax}`,
    help: 'processes that serve the public API, in addition to the one that writes',
  }),
  tlsCert: row({
    env: 'SEALPOST_TLS_CERT',
    flag: '--tls-cert <file>',
    defaultText: undefined,
    parse: parseText,
    expected: 'the path of a file',
    help: 'certificate chain, PEM; reloaded on SIGHUP',
  }),
  tlsKey: row({
    env: 'SEALPOST_TLS_KEY',
    flag: '--tls-key <file>',
    defaultText: undefined,
    parse: parseText,
    expected: 'the path of a file',
    help: 'private key of the certificate, PEM; reloaded on SIGHUP',
  }),
  requestsPerSecond: row({
    env: 'SEALPOST_REQUESTS_PER_SECOND',
    flag: '--requests-per-second <count>',
    defaultText: String(limits.requestsPerSecond),
    ...perSecond,
    help: 'requests per second for each account and route, unless the account has its own',
  }),
  anonymousRequestsPerSecond: row({
    env: 'SEALPOST_ANONYMOUS_REQUESTS_PER_SECOND',
    flag: '--anonymous-requests-per-second <count>',
    defaultText: String(limits.anonymousRequestsPerSecond),
    ...perSecond,
    help: 'anonymous requests per second for each address',
  }),
  failuresPerSecond: row({
    env: 'SEALPOST_FAILURES_PER_SECOND',
    flag: '--failures-per-second <count>',
    defaultText: String(limits.failuresPerSecond),
    ...perSecond,
    help: 'failed authentications per second and address before they get 429',
  }),
  feedIdsMax: row({
    env: 'SEALPOST_FEED_IDS_MAX',
    flag: '--feed-ids-max <count>',
    defaultText: String(limits.feedIdsMax),
    parse: wholeNumber(1, 230),
    expected: 'a whole number from 1 to 230, the most that fit into a request head',
    help: 'streams that one request may name',
  }),
  socketsPerAccount: row({
    env: 'SEALPOST_SOCKETS_PER_ACCOUNT',
    flag: '--sockets-per-account <count>',
    defaultText: String(limits.socketsPerAccount),
    parse: wholeNumber(1, 1_000_000),
    expected: 'a whole number from 1 to 1000000',
    help: 'live connections that an account may have open at once',
  }),
  liveBufferBytesMax: row({
    env: 'SEALPOST_LIVE_BUFFER_BYTES_MAX',
    flag: '--live-buffer-bytes-max <bytes>',
    defaultText: '1048576',
    parse: wholeNumber(16_384, 1_073_741_824),
    expected: 'a whole number of bytes from 16384 to 1073741824',
    help: 'a live connection with more unread bytes than this is closed as too slow',
  }),
  ...connectionSettings,
  skewMaxMs: row({
    env: 'SEALPOST_SKEW_MAX_MS',
    flag: '--skew-max-ms <ms>',
    defaultText: String(skewMaxMs),
    parse: wholeNumber(0, 300_000),
    expected: 'a whole number of milliseconds from 0 to 300000',
    help: 'how far a signed timestamp may be from server time, either way',
  }),
  origins: row({
    env: 'SEALPOST_ORIGINS',
    flag: '--origins <ids>',
    defaultText: undefined,
    parse: parseList,
    format: formatList,
    expected: 'ids separated by commas, such as 001,002',
    help: 'origins that clients may connect to for high availability',
  }),
  trustedProxies: row({
    env: 'SEALPOST_TRUSTED_PROXIES',
    flag: '--trusted-proxies <addresses>',
    defaultText: undefined,
    parse: parseAddresses,
    format: formatList,
    expected: 'IP addresses or prefixes separated by commas, such as 10.0.0.5,fd00:1::/64',
    help: 'proxies whose X-Forwarded-For is trusted: addresses or prefixes',
  }),
  explorer: row({
    env: 'SEALPOST_EXPLORER',
    flag: '--explorer <switch>',
    defaultText: 'on',
    ...onOrOff,
    help: 'whether the explorer is served at /',
  }),
  eventLoopLagMaxMs: row({
    env: 'SEALPOST_EVENT_LOOP_LAG_MAX_MS',
    flag: '--event-loop-lag-max-ms <ms>',
    defaultText: '250',
    parse: wholeNumber(10, 60_000),
    expected: 'a whole number of milliseconds from 10 to 60000',
    help: 'when requests keep others waiting for longer, requests are shed with 503, those that read most first',
  }),
  drainMs: row({
    env: 'SEALPOST_DRAIN_MS',
    flag: '--drain-ms <ms>',
    defaultText: '8000',
    parse: wholeNumber(0, 300_000),
    expected: 'a whole number of milliseconds from 0 to 300000',
    help: 'how long open requests may take after the server is asked to stop',
  }),
  logLevel: row({
    env: 'SEALPOST_LOG_LEVEL',
    flag: '--log-level <level>',
    defaultText: 'info',
    parse: (raw) => logLevels.find((level) => level === raw),
    expected: 'debug, info, warn, error or silent',
    choices: logLevels,
    help: 'lowest level that is logged; requests are at info',
  }),
  retentionDays: row({
    env: 'SEALPOST_RETENTION_DAYS',
    flag: '--retention-days <days>',
    defaultText: '30',
    parse: wholeNumber(1, 36_500),
    expected: 'a whole number of days from 1 to 36500',
    help: 'reports observed longer ago are rejected on ingest, hidden from readers, and removed',
  }),
  retentionBytes: row({
    env: 'SEALPOST_RETENTION_BYTES',
    flag: '--retention-bytes <size>',
    defaultText: 'unlimited',
    parse: parseRetentionBytes,
    format: (value) => (value === Number.POSITIVE_INFINITY ? 'unlimited' : String(value)),
    expected: 'unlimited, or a size of 1 MB or more such as 50000000000, 50GB or 50GiB',
    help: 'while reports use more than this, the oldest are deleted, whatever their age',
  }),
  aheadMaxMs: row({
    env: 'SEALPOST_AHEAD_MAX_MS',
    flag: '--ahead-max-ms <ms>',
    defaultText: '5000',
    parse: wholeNumber(0, 86_400_000),
    expected: 'a whole number of milliseconds from 0 to 86400000',
    help: 'how far an observation may be ahead of this machine’s clock',
  }),
  verifierThreads: row({
    env: 'SEALPOST_VERIFIER_THREADS',
    flag: '--verifier-threads <count>',
    defaultText: 'auto',
    parse: parseThreads,
    expected: `auto, which is one per processor, or a whole number from 0, which means none, to ${threadsMax}`,
    help: 'threads that verify signatures; with none, the process that writes does it',
  }),
  linesInFlightMax: row({
    env: 'SEALPOST_LINES_IN_FLIGHT_MAX',
    flag: '--lines-in-flight-max <count>',
    defaultText: '4096',
    parse: wholeNumber(1, 1_000_000),
    expected: 'a whole number from 1 to 1000000',
    help: 'lines in progress between arrival and acknowledgement; more wait',
  }),
  ...privateSettings,
} as const;

export type SettingName = keyof typeof settingsTable;

type ValueOf<N extends SettingName> =
  | Exclude<ReturnType<(typeof settingsTable)[N]['parse']>, undefined>
  | ((typeof settingsTable)[N]['defaultText'] extends undefined ? undefined : never);

/** The value of every setting; undefined only where one has no default. */
export type Settings = { readonly [N in SettingName]: ValueOf<N> };

export type ResolvedSettings = {
  readonly values: Settings;
  readonly sources: Readonly<Record<SettingName, SettingSource>>;
};

/** What was found in each source. */
export type SettingInputs = {
  /** Texts of flags, by setting. */
  readonly flags: Readonly<Partial<Record<SettingName, string>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The parsed config file, with the name to call it by. */
  readonly file: { readonly name: string; readonly content: unknown } | undefined;
};

/** A setting that cannot be used as given; the text names it, its source and what is expected. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
}

/** Names of all settings, in the table's order. */
export const settingNames = Object.keys(settingsTable) as readonly SettingName[]; // the table's own keys

/** The row of a setting, of any type. */
export const rowOf = (name: SettingName) => settingsTable[name] as SettingRow<unknown, string | undefined>; // only `Settings` knows each type

/** Finds and reads the value of every setting. An empty environment variable counts as absent. */
export function resolveSettings({ flags, env, file }: SettingInputs): ResolvedSettings {
  const content = file === undefined ? {} : parseFile(file.name, file.content);
  const resolved = settingNames.map((name) => {
    const { env: variable, flag, defaultText } = rowOf(name);
    const found = [
      { source: 'flag', raw: flags[name], place: String(flag).split(' ')[0] },
      { source: 'environment', raw: env[variable] || undefined, place: variable },
      { source: 'file', raw: content[name], place: file?.name },
    ].find(({ raw }) => raw !== undefined) ?? { source: 'default', raw: defaultText, place: 'the table' };
    return { name, source: found.source, value: readValue(name, found.raw, String(found.place)) };
  });
  const values = Object.fromEntries(resolved.map(({ name, value }) => [name, value])) as Settings; // each by its own row
  const sources = Object.fromEntries(resolved.map(({ name, source }) => [name, source])) as ResolvedSettings['sources']; // as above
  return {
    values: sources.keyFile === 'default' ? { ...values, keyFile: keyFileBeside(values.store) } : values,
    sources,
  };
}

/** Where the key of a store is unless a setting says otherwise: in its own folder, so that no other store's removal takes it away (D153). */
const keyFileBeside = (store: string): string => {
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+]+):)?(.*)$/s.exec(store) ?? [];
  if (scheme !== undefined && scheme !== 'lmdb') return settingsTable.keyFile.defaultText;
  return `${rest === '' ? '.' : withoutTrailing(rest, '/')}/sealpost.key`; // `lmdb:` is the working directory
};

const readValue = (name: SettingName, raw: string | undefined, place: string): unknown => {
  if (raw === undefined) return undefined;
  const { parse, expected, secret, mayHoldPassword } = rowOf(name);
  const value = parse(raw);
  if (value !== undefined) return value;
  const shown = secret || mayHoldPassword ? 'a value that is not shown' : JSON.stringify(raw);
  throw new SettingError(`The setting ${name} is ${shown} in ${place}, expected ${expected}.`);
};

const parseFile = (file: string, content: unknown): Readonly<Partial<Record<SettingName, string>>> => {
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw new SettingError(`${file} must contain a JSON object of setting → value.`);
  const entries = Object.entries(content).map(([name, value]) => {
    if (!settingNames.some((known) => known === name))
      throw new SettingError(`${file} sets ${name}, which is not a setting. Settings are: ${settingNames.join(', ')}.`);
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new SettingError(`The setting ${name} is neither a string nor a number in ${file}.`);
    const { parse, expected } = rowOf(name as SettingName); // just looked for
    if (typeof value === 'number' && (parse === parseText || parse === parseStore))
      throw new SettingError(`The setting ${name} is a number in ${file}, expected a string: ${expected}.`);
    return [name, String(value)];
  });
  return Object.fromEntries(entries);
};
