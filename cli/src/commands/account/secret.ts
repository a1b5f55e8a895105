// The command `sealpost secret`: the secrets of accounts, and the key that seals them. The audit log gets ids, never a text,
// sealed or not: what an old key sealed must not outlive the key there.
import { setTimeout } from 'node:timers/promises';
import {
  addSecret,
  createSecretId,
  needsRewrap,
  requireSameKey,
  revokeSecret,
  rewrapAccount,
} from '@sealpost/server/access/account-changes';
import { addOpeningKey, createKeyFile, openKeyFile, openSecretBox } from '@sealpost/server/access/key';
import { createSecret, type SecretBox } from '@sealpost/server/access/secrets';
import { followLinks } from '@sealpost/server/runtime/file-replacement';
import type { KeyHolder, KeyHolders } from '@sealpost/server/store/nodes';
import type { Account, AdminStore } from '@sealpost/server/store/store';
import type { CommandGroup, SettingsCommand } from '../../command.ts';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { formatNumberOf } from '../../formats.ts';
import type { Session } from '../../session.ts';
import { findAccount, printSecret, userArgument } from './account-record.ts';

const add: SettingsCommand = {
  name: 'add',
  summary: 'Add a second active secret to an account and print it, once. The first one works until revoked.',
  arguments: [userArgument],
  options: [{ flag: '--json', help: 'print the secret as one line of JSON' }],
  settings: ['store', 'keyFile'],
  examples: [['Rotate a secret without downtime: add, hand over, revoke', 'sealpost secret add acme']],
  run: async ({ session, settings, withStore, print }, user: string) => {
    const box = openSecretBox(settings);
    const [secret, secretId] = [createSecret(), createSecretId()];
    const { userId, name } = await withStore(async ({ admin }) => {
      requireSameKey(await admin.list('account'), box);
      return changeSecrets(session, admin, user, secretId, 'secret.add', (account) => {
        requireSameKey([account], box); // a rewrap may have come between
        return addSecret(account, secretId, box.seal(account.userId, secret), session.nowMs());
      });
    });
    await printSecret(print, `Secret of ${name} added.`, { userId, secretId, secret }, { userId, name });
  },
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

const revoke: SettingsCommand = {
  name: 'revoke',
  summary: 'Revoke a secret permanently. Running servers reject it within a second.',
  arguments: [userArgument, { name: '<SECRET_ID>', help: 'as sealpost account show lists it' }],
  options: [{ flag: '--json', help: 'print the secret ID as one line of JSON' }],
  settings: ['store'],
  examples: [['Revoke the old secret once the new one is in use', 'sealpost secret revoke acme 1f0c9a2e']],
  run: async ({ session, withStore, print }, user: string, secretId: string) => {
    const alter = (account: Account) => revokeSecret(account, secretId, session.nowMs());
    const { userId, name } = await withStore(({ admin }) =>
      changeSecrets(session, admin, user, secretId, 'secret.revoke', alter),
    );
    await print({ userId, name, secretId }, `Secret ${secretId} of ${name} revoked.\n`);
  },
};

const rewrap: SettingsCommand = {
  name: 'rewrap',
  summary: 'Rewrap every secret with another key, all or none, once every running node has that key.',
  options: [
    { flag: '--new-key-file <file>', help: 'file with the new key; created if missing', required: true },
    { flag: '--force', help: 'rewrap even if a running node lacks the key: its users get 401 until it has it' },
    { flag: '--json', help: 'print what was rewrapped as one line of JSON' },
  ],
  settings: ['store', 'keyFile'],
  examples: [['Switch to a new key', 'sealpost secret rewrap --new-key-file ./data/sealpost-2.key']],
  run: async ({ session, options, settings, withStore, print }) => {
    const path = String(options.newKeyFile);
    const from = openSecretBox(settings);
    const [to, accounts, goesOn, nodes] = await withStore(async ({ admin, keyHolders }) => {
      if (createKeyFile(path, settings.key === undefined ? settings.keyFile : undefined))
        session.stderr.write(`${path} created.\n`);
      const box = openKeyFile(path);
      if (from.keyId === box.keyId) throw usageError('The new key is already in use. Use a different key file.');
      // Before the first secret needs it: a server that reads its key from this file looks there again.
      const given = settings.key === undefined && (await addOpeningKey(settings.keyFile, path));
      const lacking = await findLacking(keyHolders, box.keyId);
      if (lacking.length > 0 && options.force !== true) throw lackingError(lacking, path);
      const running = await keyHolders.list();
      return [box, await rewrapAll(session, admin, from, box), given && lacking.length === 0, running.length] as const;
    });
    const next = goesOn
      ? `${describeNodes(nodes)} Next: keep a copy of the old key for old backups, then mv ${path} ${followLinks(settings.keyFile)}.`
      : `Restart the server with --key-file ${path}${settings.key === undefined ? '' : ', and without SEALPOST_KEY'}.`;
    await print(
      { from: from.keyId, to: to.keyId, accounts, restart: !goesOn },
      `Secrets of ${formatNumberOf(accounts, 'account')} rewrapped with key ${to.keyId}. ${next}\n`,
    );
  },
};

const describeNodes = (count: number): string =>
  count === 0 ? 'No node is running.' : `${formatNumberOf(count, 'running node')} can open them.`;

/** Nodes read their key files once a second, and announce their keys a second later. */
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

// One transaction for all accounts. The next attempt finds accounts created with the old key in the meantime.
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

export const secretCommands: CommandGroup = {
  name: 'secret',
  summary: 'Manage secrets of accounts: add, revoke, rewrap.',
  commands: [add, revoke, rewrap],
};
