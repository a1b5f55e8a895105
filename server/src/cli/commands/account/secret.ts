// The command `sealpost secret`: the secrets of accounts, and the key that seals them. The audit log gets ids, never a text,
// sealed or not: what an old key sealed must not outlive the key there.
import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import {
  addSecret,
  createSecretId,
  needsRewrap,
  requireSameKey,
  revokeSecret,
  rewrapAccount,
} from '../../../access/account-changes.ts';
import { addOpeningKey, createKeyFile, openKeyFile, openSecretBox } from '../../../access/key.ts';
import { createSecret, type SecretBox } from '../../../access/secrets.ts';
import type { KeyHolder, KeyHolders } from '../../../store/nodes.ts';
import type { Account, AdminStore } from '../../../store/store.ts';
import { addExamples, addSettings, type RawOptions, readSettings } from '../../command-options.ts';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { formatNumberOf, renderPairs } from '../../formats.ts';
import { printJson, type Session } from '../../session.ts';
import { withStore } from '../../store-access.ts';
import { findAccount, onceNotice, withKeyFailures } from './account-record.ts';

export const addSecretCommand = (program: Command, session: Session): void => {
  const secret = program.command('secret').description('Manage secrets of accounts: add, revoke, rewrap.');
  addAdd(secret, session);
  addRevoke(secret, session);
  addRewrap(secret, session);
};

const addAdd = (parent: Command, session: Session): void => {
  const command = parent
    .command('add')
    .description('Add a second active secret to an account and print it, once. The first one works until revoked.')
    .argument('<USER>', 'user ID or name')
    .option('--json', 'print the secret as one line of JSON')
    .action((user: string, options: RawOptions) => withKeyFailures(() => addOne(session, user, options)));
  addSettings(command, ['store', 'keyFile']);
  addExamples(command, [['Rotate a secret without downtime: add, hand over, revoke', 'sealpost secret add acme']]);
};

const addOne = async (session: Session, user: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const box = openSecretBox(values);
  const [secret, secretId] = [createSecret(), createSecretId()];
  const { userId, name } = await withStore(values.store, async ({ admin }) => {
    requireSameKey(await admin.list('account'), box);
    return changeSecrets(session, admin, user, secretId, 'secret.add', (account) => {
      requireSameKey([account], box); // a rewrap may have come between
      return addSecret(account, secretId, box.seal(account.userId, secret), session.nowMs());
    });
  });
  if (options.json) return printJson(session, { userId, name, secretId, secret });
  const pairs = [
    ['user ID', userId],
    ['secret ID', secretId],
    ['secret', secret],
  ] as const;
  await session.write(`Secret of ${name} added.\n${renderPairs(pairs)}${onceNotice}`);
};

const changeSecrets = async (
  session: Session,
  admin: AdminStore,
  user: string,
  secretId: string,
  action: string,
  alter: (account: Account) => Account,
): Promise<Account> => {
  const known = await findAccount(admin, user);
  const { userId, name } = known;
  const act = { atMs: session.nowMs(), actor: session.actor(), action, detail: { userId, name, secretId } };
  await admin.update('account', [userId], ([current]) => [alter(current ?? known)], act);
  return known;
};

const addRevoke = (parent: Command, session: Session): void => {
  const command = parent
    .command('revoke')
    .description('Revoke a secret permanently. Running servers reject it within a second.')
    .argument('<USER>', 'user ID or name')
    .argument('<SECRET_ID>', 'as sealpost account show lists it')
    .option('--json', 'print the secret ID as one line of JSON')
    .action((user: string, secretId: string, options: RawOptions) => revokeOne(session, user, secretId, options));
  addSettings(command, ['store']);
  addExamples(command, [['Revoke the old secret once the new one is in use', 'sealpost secret revoke acme 1f0c9a2e']]);
};

const revokeOne = async (session: Session, user: string, secretId: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const alter = (account: Account) => revokeSecret(account, secretId, session.nowMs());
  const { userId, name } = await withStore(values.store, ({ admin }) =>
    changeSecrets(session, admin, user, secretId, 'secret.revoke', alter),
  );
  if (options.json) return printJson(session, { userId, name, secretId });
  await session.write(`Secret ${secretId} of ${name} revoked.\n`);
};

const addRewrap = (parent: Command, session: Session): void => {
  const command = parent
    .command('rewrap')
    .description('Rewrap every secret with another key, all or none, once every running node has that key.')
    .requiredOption('--new-key-file <file>', 'file with the new key; created if missing')
    .option('--force', 'rewrap even if a running node lacks the key: its users get 401 until it has it')
    .option('--json', 'print what was rewrapped as one line of JSON')
    .action((options: RawOptions) => withKeyFailures(() => rewrap(session, options)));
  addSettings(command, ['store', 'keyFile']);
  addExamples(command, [['Switch to a new key', 'sealpost secret rewrap --new-key-file ./data/sealpost-2.key']]);
};

const rewrap = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const path = String(options.newKeyFile);
  const from = openSecretBox(values);
  const [to, accounts, goesOn, nodes] = await withStore(values.store, async ({ admin, keyHolders }) => {
    if (createKeyFile(path, values.key === undefined ? values.keyFile : undefined))
      session.stderr.write(`${path} created.\n`);
    const box = openKeyFile(path);
    if (from.keyId === box.keyId) throw usageError('The new key is already in use. Use a different key file.');
    // Before the first secret needs it: a server that reads its key from this file looks there again.
    const given = values.key === undefined && addOpeningKey(values.keyFile, path);
    const lacking = await findLacking(keyHolders, box.keyId);
    if (lacking.length > 0 && options.force !== true) throw lackingError(lacking, path);
    const running = await keyHolders.list();
    return [box, await rewrapAll(session, admin, from, box), given && lacking.length === 0, running.length] as const;
  });
  if (options.json) return printJson(session, { from: from.keyId, to: to.keyId, accounts, restart: !goesOn });
  const next = goesOn
    ? `${describeNodes(nodes)} Next: keep a copy of the old key for old backups, then mv ${path} ${values.keyFile}.`
    : `Restart the server with --key-file ${path}${values.key === undefined ? '' : ', and without SEALPOST_KEY'}.`;
  await session.write(`Secrets of ${formatNumberOf(accounts, 'account')} rewrapped with key ${to.keyId}. ${next}\n`);
};

const describeNodes = (count: number): string =>
  count === 0 ? 'No node is running.' : `${formatNumberOf(count, 'running node')} can open them.`;

/** Nodes look at their key files once a second, and say so in the next. */
const announcedWithinMs = 5_000;
const lookAgainMs = 250;

/** The running nodes that do not have a key, after they had the time to find it in their key files. */
const findLacking = async (holders: KeyHolders, keyId: string): Promise<readonly KeyHolder[]> => {
  for (let waitedMs = 0; ; waitedMs += lookAgainMs) {
    const lacking = (await holders.list()).filter(({ keyIds }) => !keyIds.includes(keyId));
    if (lacking.length === 0 || waitedMs >= announcedWithinMs) return lacking;
    await setTimeout(lookAgainMs);
  }
};

const lackingError = (lacking: readonly KeyHolder[], path: string): CommandError => {
  const named = lacking.slice(0, 5).map(({ node }) => node);
  const others = lacking.length > named.length ? `; and ${lacking.length - named.length} more` : '';
  const text = `Nothing was rewrapped: the new key is missing on ${formatNumberOf(lacking.length, 'running node')} (${named.join('; ')}${others}). Append the line in ${path} to each node’s key file, or stop the node, then run the command again. Restart nodes that use SEALPOST_KEY with a key file that has both keys. --force rewraps anyway.`;
  return new CommandError(exitCodes.refused, text);
};

const attemptsMax = 3;

// All accounts are one transaction. An account that was created meanwhile with the old key is found by looking again.
const rewrapAll = async (session: Session, admin: AdminStore, from: SecretBox, to: SecretBox): Promise<number> => {
  let rewrapped = 0;
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const keys = (await admin.list('account'))
      .filter((account) => needsRewrap(account, to))
      .map(({ userId }) => userId);
    if (keys.length === 0) return rewrapped;
    const plan = (current: readonly (Account | undefined)[]) =>
      current.flatMap((account) => (account === undefined ? [] : [rewrapAccount(account, from, to)])); // none is ever removed
    const detail = { from: from.keyId, to: to.keyId, accounts: keys.length };
    const act = { atMs: session.nowMs(), actor: session.actor(), action: 'secret.rewrap', detail };
    await admin.update('account', keys, plan, act);
    rewrapped += keys.length;
  }
  throw new CommandError(
    exitCodes.unavailable,
    'Other processes keep adding secrets with the old key. Run the command again.',
  );
};
