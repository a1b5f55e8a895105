// Further accounts of a sandbox, and what they may read: each has credentials of its own, derived from the seed and its name.

import { createHash } from 'node:crypto';
import { explainMatch, formatDate, matchStreams, type Stream } from '@sealpost/protocol';
import { createSecretBox, parseKey } from '@sealpost/server/access/secrets';
import type { Account } from '@sealpost/server/store/store';
import { SandboxError, unexpected } from './push/errors.ts';

export type SandboxCredentials = {
  readonly userId: string;
  readonly secret: string;
  readonly ingestToken: string;
  /** The key-encryption key, in hex. */
  readonly key: string;
};

const digestOf = (seed: string, what: string): Buffer =>
  createHash('sha256').update(`sealpost sandbox ${what} ${seed}`).digest();

/** Not secret to anyone who knows the seed: a sandbox has only simulated reports, and listens on this machine. */
export function deriveCredentials(seed: string): SandboxCredentials {
  const bytes = digestOf(seed, 'user');
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40; // a version 4 UUID
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const userId = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
  return {
    userId,
    secret: digestOf(seed, 'secret').toString('base64url'),
    ingestToken: digestOf(seed, 'ingest token').toString('base64url'),
    key: digestOf(seed, 'key').toString('hex'),
  };
}

/** By name: `public` for every stream that is not hidden, and streams by pair, name or feed ID. */
export type SandboxAccounts = Readonly<Record<string, readonly string[]>>;

export type PlannedAccount = {
  readonly name: string;
  readonly userId: string;
  readonly secret: string;
  readonly entitlements: readonly string[];
};

const accountsMax = 100;

/** Reads accounts. Throws a SandboxError that names the account. */
export function readAccounts(accounts: unknown, streams: readonly Stream[], seed: string): readonly PlannedAccount[] {
  const isObject = typeof accounts === 'object' && accounts !== null && !Array.isArray(accounts);
  if (!isObject || Object.keys(accounts).length > accountsMax)
    throw unexpected(
      'accounts',
      accounts,
      "at most 100 names with what they may read, for example { alice: ['public'] }",
    );
  return Object.entries(accounts).map(([name, grants]) => {
    const argument = `accounts.${name}`;
    if (!/^[\w-]{1,40}$/.test(name))
      throw new SandboxError(
        'accounts',
        `accounts has the name "${name.slice(0, 40)}", expected letters, digits, _ and -.`,
      );
    if (!Array.isArray(grants) || grants.length > streams.length + 1)
      throw unexpected(argument, grants, "a list such as ['public', 'ETH/USD']");
    const { userId, secret } = deriveCredentials(`${seed} account ${name}`);
    return {
      name,
      userId,
      secret,
      entitlements: grants.map((grant: unknown) => entitlementOf(argument, grant, streams)),
    };
  });
}

const entitlementOf = (argument: string, grant: unknown, streams: readonly Stream[]): string => {
  if (typeof grant !== 'string') throw unexpected(argument, grant, "'public', or streams such as 'ETH/USD'");
  if (grant === 'public') return grant;
  const match = matchStreams(grant, streams);
  if (match.found === 'one') return `feed:${match.stream.feedId}`;
  const known =
    match.found === 'none' ? ` Or write public. Streams: ${streams.map(({ name }) => name).join(', ')}.` : '';
  throw new SandboxError(argument, `${argument}: ${explainMatch(grant, match)}${known}`);
};

/** The record of an account. */
export function accountRecord(
  { name, userId, secret, entitlements }: PlannedAccount,
  key: string,
  nowMs: number,
): Account {
  const createdAt = formatDate(nowMs);
  const sealed = createSecretBox(parseKey(key)).seal(userId, secret);
  return {
    userId,
    name,
    createdAt,
    disabledAt: null,
    secrets: [{ id: name, sealed, createdAt, revokedAt: null }],
    entitlements,
    rateLimits: {},
  };
}
