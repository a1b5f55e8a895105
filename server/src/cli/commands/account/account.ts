// The command `sealpost account`: who may read. A secret is printed once, by the command that makes it, and never logged.
import { randomUUID } from 'node:crypto';
import { formatDate } from '@sealpost/protocol';
import type { Command } from 'commander';
import {
  changeEntitlements,
  changeRateLimits,
  limitedRoutes,
  parseAccountId,
  parseAccountName,
  parseNewEntitlement,
  parseRateLimits,
} from '../../../access/account-arguments.ts';
import {
  activeSecrets,
  addSecret,
  createSecretId,
  requireSameKey,
  type ShownAccount,
  showAccount,
  switchAccount,
} from '../../../access/account-changes.ts';
import { openSecretBox } from '../../../access/key.ts';
import { createSecret } from '../../../access/secrets.ts';
import { usageDay } from '../../../access/usage.ts';
import type { Account, SecretUse } from '../../../store/store.ts';
import { changeRecords } from '../../admin-change.ts';
import {
  addExamples,
  addSettings,
  collected,
  collectOption,
  parseCount,
  type RawOptions,
  readSettings,
} from '../../command-options.ts';
import { asUsage, CommandError, exitCodes } from '../../failure.ts';
import { formatCount, formatNumberOf, renderPairs, renderTable } from '../../formats.ts';
import { printJson, type Session } from '../../session.ts';
import { withNewStore, withStore } from '../../store-access.ts';
import { resolveEntitlements } from '../../stream-argument.ts';
import {
  changeAccount,
  countReadable,
  findAccount,
  onceNotice,
  warnOfUnknownFeeds,
  withKeyFailures,
} from './account-record.ts';
import { addEntitle } from './entitle.ts';

export const addAccountCommand = (program: Command, session: Session): void => {
  const account = program
    .command('account')
    .description('Manage accounts: create, list, show, entitle, limit, disable, enable, usage.');
  addCreate(account, session);
  addList(account, session);
  addShow(account, session);
  addEntitle(account, session);
  addLimit(account, session);
  addSwitch(account, session, 'disable', 'Reject an account’s requests from now on. Its secrets are kept.');
  addSwitch(account, session, 'enable', 'Accept a disabled account’s requests again, with its existing secrets.');
  addUsage(account, session);
};

const addCreate = (parent: Command, session: Session): void => {
  const command = parent
    .command('create')
    .description('Create an account and print its first secret, once.')
    .requiredOption('--name <text>', 'unique name')
    .option(
      '--entitle <entitlement>',
      'public, feed:FEED or filter:QUERY; repeatable (default: no access)',
      collectOption,
    )
    .option(
      '--limit <route=n>',
      `requests per second for a route, 0 for no limit; repeatable. Routes: ${limitedRoutes.join(', ')}`,
      collectOption,
    )
    .option('--user-id <uuid>', 'use this user ID instead of a new one')
    .option('--json', 'print account and secret as one line of JSON')
    .action((options: RawOptions) => withKeyFailures(() => createAccount(session, options)));
  addSettings(command, ['store', 'keyFile']);
  addExamples(command, [
    ['Every public stream', 'sealpost account create --name acme --entitle public'],
    [
      'Crypto streams, one hidden stream, 50 pages per second',
      'sealpost account create --name desk --entitle filter:asset_class=Crypto --entitle feed:SUI/USD --limit reportPage=50',
    ],
  ]);
};

const createAccount = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const box = openSecretBox(values);
  const [secret, secretId, nowMs] = [createSecret(), createSecretId(), session.nowMs()];
  const entitle = await resolveEntitlements(values.store, collected(options.entitle) ?? []);
  const bare = asUsage(() => parseAccount({ ...options, entitle }, nowMs));
  const account = addSecret(bare, secretId, box.seal(bare.userId, secret), nowMs);
  const { userId, name, entitlements, rateLimits } = account;
  await withNewStore(values.store, async ({ admin }) => {
    const accounts = await admin.list('account');
    requireSameKey(accounts, box);
    requireFreeName(accounts, name);
    await changeRecords(session, admin, {
      kind: 'account',
      keys: [userId],
      plan: ([current]) => {
        if (current === undefined) return [account];
        throw new CommandError(exitCodes.refused, `User ID ${userId} belongs to ${current.name}. Choose another.`);
      },
      action: 'account.create',
      detail: { name, entitlements, rateLimits, secretId },
    });
    await warnOfUnknownFeeds(session, admin, entitlements);
  });
  if (options.json) return printJson(session, { ...showAccount(account), secretId, secret });
  const pairs = [
    ['user ID', userId],
    ['secret ID', secretId],
    ['secret', secret],
  ] as const;
  await session.write(`Account ${name} created.\n${renderPairs(pairs)}${onceNotice}`);
};

const parseAccount = ({ name, entitle, limit, userId }: RawOptions, nowMs: number): Account => ({
  userId: userId === undefined ? randomUUID() : parseAccountId(String(userId)),
  name: parseAccountName(String(name)),
  createdAt: formatDate(nowMs),
  disabledAt: null,
  secrets: [],
  entitlements: changeEntitlements([], { add: (collected(entitle) ?? []).map(parseNewEntitlement) }),
  rateLimits: parseRateLimits(collected(limit) ?? []),
});

const requireFreeName = (accounts: readonly Account[], wanted: string): void => {
  const taken = accounts.find(({ name }) => name.toLowerCase() === wanted.toLowerCase());
  if (taken === undefined) return;
  throw new CommandError(exitCodes.refused, `The name ${taken.name} is taken by ${taken.userId}. Choose another.`);
};

const addList = (parent: Command, session: Session): void => {
  const command = parent
    .command('list')
    .description('List all accounts by name, including disabled ones.')
    .option('--json', 'print the accounts as one line of JSON, without secrets')
    .action((options: RawOptions) => listAccounts(session, options));
  addSettings(command, ['store']);
  addExamples(command, [['List all accounts', 'sealpost account list']]);
};

const listAccounts = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const stored = await withStore(values.store, ({ admin }) => admin.list('account'));
  const accounts = [...stored].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (options.json) return printJson(session, { accounts: accounts.map(showAccount) });
  const columns = ['name', 'user ID', 'state', 'secrets', 'entitlements'].map((title) => ({ title }));
  const rows = accounts.map((account) => [
    account.name,
    account.userId,
    account.disabledAt === null ? 'enabled' : 'disabled',
    `${activeSecrets(account).length}`,
    summarizeList(account.entitlements),
  ]);
  await session.write(`${renderTable(columns, rows, session.paint)}${formatNumberOf(accounts.length, 'account')}.\n`);
};

const summarizeList = ([first = 'none', ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${first} and ${others.length} more`;

const addShow = (parent: Command, session: Session): void => {
  const command = parent
    .command('show')
    .description(
      'Show an account: secrets (ID, dates, last use), entitlements, rate limits, and how many streams it may read.',
    )
    .argument('<USER>', 'user ID or name')
    .option('--json', 'print the account as one line of JSON, without secrets')
    .action((user: string, options: RawOptions) => showOne(session, user, options));
  addSettings(command, ['store']);
  addExamples(command, [['Show one account', 'sealpost account show acme']]);
};

const showOne = async (session: Session, user: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const [account, readable, uses] = await withStore(values.store, async ({ admin, usage }) => {
    const found = await findAccount(admin, user);
    return [found, await countReadable(admin, found), await usage.lastUses(found.userId)] as const;
  });
  const shown = withLastUses(showAccount(account), uses);
  if (options.json) return printJson(session, { ...shown, readableStreams: readable });
  await session.write(renderPairs(toPairs(shown, readable)));
};

type UsedAccount = Omit<ShownAccount, 'secrets'> & {
  /** The minute in which each secret was last used; null when no use is recorded. */
  readonly secrets: readonly (ShownAccount['secrets'][number] & { readonly lastUsedAt: string | null })[];
};

const withLastUses = (account: ShownAccount, uses: readonly SecretUse[]): UsedAccount => ({
  ...account,
  secrets: account.secrets.map((secret) => {
    const use = uses.find(({ secretId }) => secretId === secret.id);
    return { ...secret, lastUsedAt: use === undefined ? null : formatDate(use.usedAtMs) };
  }),
});

const secretText = ({ createdAt, revokedAt, lastUsedAt }: UsedAccount['secrets'][number]): string => {
  const state = revokedAt === null ? 'active' : `revoked ${revokedAt}`;
  const use = lastUsedAt === null ? 'no use recorded' : `last used ${lastUsedAt.slice(0, 16)}Z`;
  return `created ${createdAt}, ${state}, ${use}`;
};

const toPairs = (account: UsedAccount, readable: number): readonly (readonly [string, string])[] => [
  ['name', account.name],
  ['user ID', account.userId],
  ['created', account.createdAt],
  ['state', account.disabledAt === null ? 'enabled' : `disabled since ${account.disabledAt}`],
  ...account.secrets.map((secret) => [`secret ${secret.id}`, secretText(secret)] as const),
  ...account.entitlements.map((entitlement) => ['entitlement', entitlement] as const),
  ...limitPairs(account.rateLimits),
  ['may read now', formatNumberOf(readable, 'stream')],
];

const addLimit = (parent: Command, session: Session): void => {
  const command = parent
    .command('limit')
    .description('Set an account’s rate limits, in requests per second for a route. Other routes are unchanged.')
    .argument('<USER>', 'user ID or name')
    .requiredOption(
      '--limit <route=n>',
      `0 for no limit, ROUTE=default for the server’s default; repeatable. Routes: ${limitedRoutes.join(', ')}`,
      collectOption,
    )
    .option('--json', 'print the account as one line of JSON, without secrets')
    .action((user: string, options: RawOptions) => limitOne(session, user, options));
  addSettings(command, ['store']);
  addExamples(command, [
    ['Allow 50 pages per second', 'sealpost account limit acme --limit reportPage=50'],
    ['Restore the server’s default', 'sealpost account limit acme --limit reportPage=default'],
  ]);
};

const limitOne = async (session: Session, user: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const raws = collected(options.limit) ?? [];
  asUsage(() => changeRateLimits({}, raws)); // a typing error is told before the store is opened
  const alter = (account: Account) => ({ ...account, rateLimits: changeRateLimits(account.rateLimits, raws) });
  const changed = await withStore(values.store, ({ admin }) =>
    changeAccount(session, admin, user, 'account.limit', alter),
  );
  if (options.json) return printJson(session, showAccount(changed));
  const limits = limitPairs(changed.rateLimits).map(([what, limit]) => `${what}: ${limit}`);
  await session.write(`${changed.name}: ${limits.length === 0 ? 'the server’s default limits' : limits.join(', ')}.\n`);
};

const limitPairs = (rateLimits: Account['rateLimits']): readonly (readonly [string, string])[] =>
  Object.entries(rateLimits).map(([route, perSecond]) => [
    `limit ${route}`,
    perSecond === 0 ? 'none' : `${perSecond} per second`,
  ]);

const addSwitch = (parent: Command, session: Session, verb: 'disable' | 'enable', description: string): void => {
  const command = parent
    .command(verb)
    .description(description)
    .argument('<USER>', 'user ID or name')
    .option('--json', 'print the account as one line of JSON, without secrets')
    .action((user: string, options: RawOptions) => switchOne(session, user, verb, options));
  addSettings(command, ['store']);
  addExamples(command, [['Running servers apply it within a second', `sealpost account ${verb} acme`]]);
};

const switchOne = async (
  session: Session,
  user: string,
  verb: 'disable' | 'enable',
  options: RawOptions,
): Promise<void> => {
  const { values } = await readSettings(session, options);
  const alter = (account: Account) => switchAccount(account, verb === 'enable', session.nowMs());
  const changed = await withStore(values.store, ({ admin }) =>
    changeAccount(session, admin, user, `account.${verb}`, alter),
  );
  await (options.json ? printJson(session, showAccount(changed)) : session.write(`${changed.name} is ${verb}d.\n`));
};

const usageDaysMax = 366;

const addUsage = (parent: Command, session: Session): void => {
  const command = parent
    .command('usage')
    .description('Count an account’s requests by day (UTC) and route.')
    .argument('<USER>', 'user ID or name')
    .option('--days <count>', `number of days up to today, at most ${usageDaysMax}`, '7')
    .option('--json', 'print the counts as one line of JSON')
    .action((user: string, options: RawOptions) => showUsage(session, user, options));
  addSettings(command, ['store']);
  addExamples(command, [['Last 30 days', 'sealpost account usage acme --days 30']]);
};

const showUsage = async (session: Session, user: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const days = parseCount('--days', String(options.days), 1, usageDaysMax);
  const [name, usage] = await withStore(values.store, async (store) => {
    const { userId, name } = await findAccount(store.admin, user);
    return [name, await store.usage.list(userId, usageDay(session.nowMs(), days - 1))] as const;
  });
  if (options.json) return printJson(session, { usage });
  if (usage.length === 0) return session.write(`${name}: no usage recorded yet.\n`);
  const columns = [{ title: 'day' }, { title: 'route' }, { title: 'requests', align: 'right' }] as const;
  const rows = usage.map(({ day, route, requests }) => [day, route, formatCount(requests)]);
  await session.write(renderTable(columns, rows, session.paint));
};
