// One account's record, for the commands `account` and `secret`: found by user ID or name, changed, its streams counted.
import type { FeedId, Stream } from '@sealpost/protocol';
import { unknownFeeds } from '@sealpost/server/access/account-arguments';
import { readableStreams } from '@sealpost/server/access/entitlements';
import type { Account, AdminStore } from '@sealpost/server/store/store';
import { changeRecords } from '../../admin-change.ts';
import type { ArgumentRow, Call, OptionRow } from '../../command.ts';
import { CommandError, describeOutputFailure, exitCodes, usageError } from '../../failure.ts';
import { renderPairs } from '../../formats.ts';
import type { Session } from '../../session.ts';

/** Finds an account by user ID, or by name in any case. */
export async function findAccount(admin: AdminStore, raw: string): Promise<Account> {
  const wanted = raw.toLowerCase();
  const accounts = await admin.list('account');
  const found = accounts.filter(({ userId, name }) => userId === wanted || name.toLowerCase() === wanted);
  const [account, ...others] = found;
  if (account === undefined)
    throw usageError(`No account has the user ID or name "${raw}". List accounts with: sealpost account list.`);
  if (others.length === 0) return account;
  throw usageError(
    `Several accounts are named ${raw}: ${found.map(({ userId }) => userId).join(', ')}. Use the user ID.`,
  );
}

/** Warns of entitlements to streams that are not in the catalog: a typo, or a stream that is added later. */
export async function warnOfUnknownFeeds(session: Session, admin: AdminStore, entitlements: readonly string[]) {
  for (const feedId of unknownFeeds(entitlements, await listStreams(admin)))
    session.stderr.write(`warning: feed:${feedId} is not in the catalog. It takes effect once the stream is added.\n`);
}

const listStreams = async (admin: AdminStore): Promise<ReadonlyMap<FeedId, Stream>> =>
  new Map((await admin.list('stream')).map((stream) => [stream.feedId, stream]));

/** How many streams the account may read now. */
export const countReadable = async (admin: AdminStore, { entitlements }: Account): Promise<number> =>
  readableStreams(entitlements, await listStreams(admin)).size;

/** A new secret, and the account that has it now. */
type NewSecret = Pick<Account, 'userId'> & { readonly secretId: string; readonly secret: string };

/**
 * Prints a new secret once, below what was done. If that fails, it is an error that says how to replace the secret, also where the reader has left:
 * nobody else has it, and running the command again would not show it.
 */
export async function printSecret(
  print: Call['print'],
  done: string,
  { userId, secretId, secret }: NewSecret,
  value: Readonly<Record<string, unknown>>,
): Promise<void> {
  const pairs = [
    ['user ID', userId],
    ['secret ID', secretId],
    ['secret', secret],
  ] as const;
  const text = `${done}\n${renderPairs(pairs)}Save the secret now: it is not shown again.\n`;
  try {
    await print({ ...value, secretId, secret }, text);
  } catch (cause) {
    const replace = `sealpost secret revoke ${userId} ${secretId}, then sealpost secret add ${userId}`;
    throw new CommandError(
      exitCodes.unavailable,
      `${done} But its secret ${secretId} could not be printed: ${describeOutputFailure(cause)}. Replace it. Run: ${replace}.`,
      { cause },
    );
  }
}

/** Changes one account, except for its secrets: sealed texts must not get into the audit log. Returns the stored account. */
export async function changeAccount(
  session: Session,
  admin: AdminStore,
  user: string,
  action: string,
  alter: (account: Account) => Account,
): Promise<Account> {
  const known = await findAccount(admin, user);
  const plan = (current: readonly (Account | undefined)[]) => current.map((account) => alter(account ?? known));
  const { userId, name } = known;
  await changeRecords(session, admin, { kind: 'account', keys: [userId], plan, action, detail: { name } });
  return (await admin.get('account', userId)) ?? known;
}

/** The argument that names an account. */
export const userArgument: ArgumentRow = { name: '<USER>', help: 'user ID or name' };

/** The option of commands that show an account. */
export const accountJson: OptionRow = {
  flag: '--json',
  help: 'print the account as one line of JSON, without secrets',
};
