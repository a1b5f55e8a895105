// Parses and formats the values of settings.
import { availableParallelism } from 'node:os';
import { isAddressOrPrefix } from '../runtime/ip-address.ts';
import { urlHost } from '../runtime/urls.ts';

export const wholeNumber =
  (min: number, max: number) =>
  (raw: string): number | undefined => {
    const value = /^[0-9]{1,15}$/.test(raw) ? Number(raw) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };

export const parseText = (raw: string): string | undefined => raw.trim() || undefined;

/** Spaces around the folder go too: the default key file, which is in it, would otherwise be another one when it is given as shown. */
export const parseStore = (raw: string): string | undefined => parseText(raw)?.replace(/^lmdb:\s+/, 'lmdb:');

export const threadsMax = 64; // also of workers: rate-limit.ts counts with no more
export const parseThreads = (raw: string): number | undefined =>
  raw === 'auto' ? Math.min(availableParallelism(), threadsMax) : wholeNumber(0, threadsMax)(raw);

const byteUnits: Readonly<Record<string, number>> = {
  '': 1,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};
const retentionBytesMin = 1e6;

// 0 is rejected: it could mean "remove every report" or "no limit".
export function parseRetentionBytes(raw: string): number | undefined {
  if (raw === 'unlimited') return Number.POSITIVE_INFINITY;
  const [, count, unit = ''] = /^([0-9]{1,15}) ?([KMGTi]*B)?$/.exec(raw) ?? [];
  const bytes = Number(count) * (byteUnits[unit] ?? Number.NaN);
  return bytes >= retentionBytesMin && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** An address to listen on. */
export type ListenAddress = { readonly host: string; readonly port: number };

export function parseListen(raw: string): ListenAddress | undefined {
  const [, bracketed, plain, digits = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+)):([0-9]{1,5})$/.exec(raw) ?? [];
  const host = bracketed ?? plain;
  const port = wholeNumber(0, 65_535)(digits);
  return host === undefined || port === undefined ? undefined : { host, port };
}

export const formatListen = ({ host, port }: ListenAddress): string => `${urlHost(host)}:${port}`;

const listOf =
  (isItem: (item: string) => boolean) =>
  (raw: string): readonly string[] | undefined => {
    const items = raw.split(',').map((item) => item.trim());
    return items.every(isItem) ? items : undefined;
  };

export const parseList = listOf((item) => /^[\w.:-]+$/.test(item));

/** Names as `Host` has them; a port would never match. */
export const parseHostNames = listOf((item) => /^[\w.-]+$/.test(item));

export const parseAddresses = listOf(isAddressOrPrefix);

/** Addresses of databases separated by commas; the commas inside of one are its own. */
export function parseDatabases(raw: string): readonly string[] | undefined {
  const urls = raw.split(/,(?=\s*postgres(?:ql)?:)/).map((url) => url.trim());
  return urls.every((url) => /^postgres(?:ql)?:\/\/\S+$/.test(url)) ? urls : undefined;
}
export const formatList = (items: readonly string[]): string => items.join(',');

/** The levels of a log, from all messages to none. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export const perSecond = {
  parse: wholeNumber(0, 1_000_000),
  expected: 'a whole number from 0, which means no limit, to 1000000',
};

export const onOrOff = {
  parse: (raw: string): boolean | undefined => (raw === 'on' ? true : raw === 'off' ? false : undefined),
  format: (value: boolean): string => (value ? 'on' : 'off'),
  expected: 'on or off',
  choices: ['on', 'off'],
};
