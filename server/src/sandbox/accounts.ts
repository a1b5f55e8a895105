// Further accounts of a sandbox, and what they may read: each has credentials of its own, derived from the seed and its name.
import { explainMatch, formatDate, matchStreams, type Stream } from '@sealpost/protocol';
import { createSecretBox, parseKey } from '../access/secrets.ts';
import type { Account } from '../store/store.ts';
import { deriveCredentials } from './credentials.ts';
import { SandboxError, unexpected } from './push/errors.ts';

/** By name: `public` for every stream that is not hidden, and streams by pair, name or feed ID. */
export type SandboxAccounts = Readonly<Record<string, readonly string[]>>;

export type SandboxAccount = {
  readonly name: string;
  readonly userId: string;
  readonly secret: string;
  readonly entitlements: readonly string[];
};

const accountsMax = 100;

/** Reads accounts. Throws a SandboxError that names the account. */
export const readAccounts = (
  accounts: unknown,
  streams: readonly Stream[],
  seed: string,
): readonly SandboxAccount[] => {
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
};

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
export const accountRecord = (
  { name, userId, secret, entitlements }: SandboxAccount,
  key: string,
  nowMs: number,
): Account => {
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
};
