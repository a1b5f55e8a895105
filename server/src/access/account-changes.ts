// Changes of an account: add, revoke and rewrap secrets, disable and enable access. Pure functions; callers store the result and write the
// audit log. An invalid change throws an ApiError that says what to do.
import { randomBytes } from 'node:crypto';
import { ApiError, formatDate } from '@sealpost/protocol';
import type { Account } from '../store/store.ts';
import { type SecretBox, SecretBoxError } from './secrets.ts';

/** Two, so that a caller can move from the old secret to the new one without a pause. */
const activeSecretsMax = 2;

/** Secrets that an account keeps, revoked ones included; older revoked ones are in the audit log only. */
const secretsMax = 20;

type Secret = Account['secrets'][number];

/** An account as it is shown: everything but sealed texts. */
export type ShownAccount = Omit<Account, 'secrets'> & { readonly secrets: readonly Omit<Secret, 'sealed'>[] };

/** An account as shown to users and programs. Lists each field, so that a new one is not shown by accident. */
export const showAccount = (account: Account): ShownAccount => ({
  userId: account.userId,
  name: account.name,
  createdAt: account.createdAt,
  disabledAt: account.disabledAt,
  secrets: account.secrets.map(({ id, createdAt, revokedAt }) => ({ id, createdAt, revokedAt })),
  entitlements: account.entitlements,
  rateLimits: account.rateLimits,
});

/** Secrets that are not revoked, oldest first. */
export const activeSecrets = ({ secrets }: Pick<Account, 'secrets'>): readonly Secret[] =>
  secrets.filter(({ revokedAt }) => revokedAt === null);

/** A name for a secret: says nothing about it. */
export const createSecretId = (): string => randomBytes(4).toString('hex');

/** The account with one more active secret. Refused when it has two. */
export function addSecret(account: Account, id: string, sealed: string, nowMs: number): Account {
  const active = activeSecrets(account);
  if (active.length >= activeSecretsMax) {
    const ids = active.map((secret) => secret.id).join(' and ');
    const text = `${account.name} has ${activeSecretsMax} active secrets, ${ids}. First revoke one with: sealpost secret revoke ${account.userId} SECRET_ID.`;
    throw new ApiError('malformed_argument', text, { argument: 'USER' });
  }
  const added = { id, sealed, createdAt: formatDate(nowMs), revokedAt: null };
  return { ...account, secrets: [...forgetOldest(account.secrets), added] };
}

// Makes room for one. Of `secretsMax` secrets at most two are active, so there is always a revoked one to forget.
const forgetOldest = (secrets: readonly Secret[]): readonly Secret[] => {
  const oldest = secrets.length < secretsMax ? undefined : secrets.find(({ revokedAt }) => revokedAt !== null);
  return secrets.filter((secret) => secret !== oldest);
};

/** The account with a secret revoked and its sealed text gone, so that not even the key can recover it. */
export function revokeSecret(account: Account, id: string, nowMs: number): Account {
  const found = account.secrets.find((secret) => secret.id === id);
  if (found?.revokedAt === null) {
    const revoked = { ...found, sealed: '', revokedAt: formatDate(nowMs) };
    return { ...account, secrets: account.secrets.map((secret) => (secret === found ? revoked : secret)) };
  }
  const what = found === undefined ? 'is not a secret of' : `was revoked at ${found.revokedAt}; it was a secret of`;
  const text = `${id} ${what} ${account.name}. List its secrets with: sealpost account show ${account.userId}.`;
  throw new ApiError('malformed_argument', text, { argument: 'SECRET_ID' });
}

/** The account switched off, or on again. One that is off stays off since when it was. */
export const switchAccount = (account: Account, on: boolean, nowMs: number): Account => ({
  ...account,
  disabledAt: on ? null : (account.disabledAt ?? formatDate(nowMs)),
});

const isSealedBy = ({ keyId }: SecretBox, { sealed }: Secret): boolean => sealed.startsWith(`${keyId}.`);

/** Does the account have an active secret that another key sealed? */
export const needsRewrap = (account: Account, box: SecretBox): boolean =>
  activeSecrets(account).some((secret) => !isSealedBy(box, secret));

/** The account with every active secret under another key. Throws `SecretBoxError` when one opens with neither. */
export const rewrapAccount = (account: Account, from: SecretBox, to: SecretBox): Account => ({
  ...account,
  secrets: account.secrets.map((secret) =>
    secret.revokedAt !== null || isSealedBy(to, secret)
      ? secret
      : { ...secret, sealed: to.seal(account.userId, from.open(account.userId, secret.sealed)) },
  ),
});

/** Refuses a key other than the one that the accounts are sealed with: a server has one key, and would lock the others out. */
export function requireSameKey(accounts: readonly Account[], box: SecretBox): void {
  const other = accounts.find((account) => needsRewrap(account, box));
  if (other === undefined) return;
  throw new SecretBoxError(
    `The secrets of ${other.name} are sealed with another key than this one (${box.keyId}). Use the server’s key.`,
  );
}

/**
 * Refuses a key that opens none of the active secrets: a server would start, and answer no account. One that opens some does: the others lose
 * access, with an alarm, and nobody else does.
 */
export function requireOpeningKey(accounts: readonly Account[], box: SecretBox): void {
  let failure: unknown;
  for (const account of accounts.filter(({ disabledAt }) => disabledAt === null))
    for (const { sealed } of activeSecrets(account)) {
      try {
        box.open(account.userId, sealed);
        return;
      } catch (error) {
        failure ??= error;
      }
    }
  if (failure !== undefined) throw failure;
}
