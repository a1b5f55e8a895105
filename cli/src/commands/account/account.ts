// The command `sealpost account`: who may read. A secret is printed once, by the command that makes it, and never logged.
import { randomUUID } from 'node:crypto';
import { formatDate } from '@sealpost/protocol';
import {
  changeEntitlements,
  changeRateLimits,
  limitedRoutes,
  parseAccountId,
  parseAccountName,
  parseNewEntitlement,
  parseRateLimits,
} from '@sealpost/server/access/account-arguments';
import {
  activeSecrets,
  addSecret,
  createSecretId,
  requireSameKey,
  type ShownAccount,
  showAccount,
  switchAccount,
} from '@sealpost/server/access/account-changes';
import { openSecretBox } from '@sealpost/server/access/key';
import { createSecret } from '@sealpost/server/access/secrets';
import { usageDay } from '@sealpost/server/access/usage';
import type { Account, SecretUse } from '@sealpost/server/store/store';
import { changeRecords } from '../../admin-change.ts';
import type { CommandGroup, SettingsCommand } from '../../command.ts';
import { collected, parseCount, type RawOptions } from '../../command-options.ts';
import { asUsage, CommandError, exitCodes } from '../../failure.ts';
import { formatCount, formatNumberOf, renderPairs, renderTable } from '../../formats.ts';
import { resolveEntitlements } from '../../stream-argument.ts';
import {
  accountJson,
  changeAccount,
  countReadable,
  findAccount,
  printSecret,
  userArgument,
  warnOfUnknownFeeds,
} from './account-record.ts';
import { entitleCommand } from './entitle.ts';

const create: SettingsCommand = {
  name: 'create',
  summary: 'Create an account and print its first secret, once.',
  options: [
    { flag: '--name <text>', help: 'unique name', required: true },
    {
      flag: '--entitle <entitlement>',
      help: 'public, feed:FEED or filter:QUERY; repeatable (default: no access)',
      repeatable: true,
    },
    {
      flag: '--limit <route=n>',
      help: `requests per second for a route, 0 for no limit; repeatable. Routes: ${limitedRoutes.join(', ')}`,
      repeatable: true,
    },
    { flag: '--user-id <uuid>', help: 'use this user ID instead of a new one' },
    { flag: '--json', help: 'print account and secret as one line of JSON' },
  ],
  settings: ['store', 'keyFile'],
  examples: [
    ['Every public stream', 'sealpost account create --name acme --entitle public'],
    [
      'Crypto streams, one hidden stream, 50 pages per second',
      'sealpost account create --name desk --entitle filter:asset_class=Crypto --entitle feed:SUI/USD --limit reportPage=50',
    ],
  ],
  run: async ({ session, options, settings, withNewStore, print }) => {
    const box = openSecretBox(settings);
    const [secret, secretId, nowMs] = [createSecret(), createSecretId(), session.nowMs()];
    const entitle = await resolveEntitlements(settings.store, collected(options.entitle) ?? []);
    const bare = asUsage(() => parseAccount({ ...options, entitle }, nowMs));
    const account = addSecret(bare, secretId, box.seal(bare.userId, secret), nowMs);
    const { userId, name, entitlements, rateLimits } = account;
    await withNewStore(async ({ admin }) => {
      await changeRecords(session, admin, {
        kind: 'account',
        keys: [userId],
        plan: ([current]) => {
          if (current === undefined) return [account];
          throw new CommandError(exitCodes.refused, `User ID ${userId} belongs to ${current.name}. Choose another.`);
        },
        check: (accounts) => {
          requireSameKey(accounts, box);
          requireFreeName(accounts, name);
        },
        action: 'account.create',
        detail: { name, entitlements, rateLimits, secretId },
      });
      await warnOfUnknownFeeds(session, admin, entitlements);
    });
    await printSecret(print, `Account ${name} created.`, { userId, secretId, secret }, showAccount(account));
  },
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

const list: SettingsCommand = {
  name: 'list',
  summary: 'List all accounts by name, including disabled ones.',
  options: [{ flag: '--json', help: 'print the accounts as one line of JSON, without secrets' }],
  settings: ['store'],
  examples: [['List all accounts', 'sealpost account list']],
  run: async ({ session, withStore, print }) => {
    const stored = await withStore(({ admin }) => admin.list('account'));
    const accounts = [...stored].sort((a, b) => (a.name < b.name ? -1 : 1));
    const columns = ['name', 'user ID', 'state', 'secrets', 'entitlements'].map((title) => ({ title }));
    const rows = accounts.map((account) => [
      account.name,
      account.userId,
      account.disabledAt === null ? 'enabled' : 'disabled',
      `${activeSecrets(account).length}`,
      summarizeList(account.entitlements),
    ]);
    await print(
      { accounts: accounts.map(showAccount) },
      `${renderTable(columns, rows, session.paint)}${formatNumberOf(accounts.length, 'account')}.\n`,
    );
  },
};

const summarizeList = ([first = 'none', ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${first} and ${others.length} more`;

const show: SettingsCommand = {
  name: 'show',
  summary:
    'Show an account: secrets (ID, dates, last use), entitlements, rate limits, and how many streams it may read.',
  arguments: [userArgument],
  options: [accountJson],
  settings: ['store'],
  examples: [['Show one account', 'sealpost account show acme']],
  run: async ({ withStore, print }, user: string) => {
    const [account, readable, uses] = await withStore(async ({ admin, usage }) => {
      const found = await findAccount(admin, user);
      return [found, await countReadable(admin, found), await usage.lastUses(found.userId)] as const;
    });
    const shown = withLastUses(showAccount(account), uses);
    await print({ ...shown, readableStreams: readable }, renderPairs(toPairs(shown, readable)));
  },
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

const limit: SettingsCommand = {
  name: 'limit',
  summary: 'Set an account’s rate limits, in requests per second for a route. Other routes are unchanged.',
  arguments: [userArgument],
  options: [
    {
      flag: '--limit <route=n>',
      help: `0 for no limit, ROUTE=default for the server’s default; repeatable. Routes: ${limitedRoutes.join(', ')}`,
      required: true,
      repeatable: true,
    },
    accountJson,
  ],
  settings: ['store'],
  examples: [
    ['Allow 50 pages per second', 'sealpost account limit acme --limit reportPage=50'],
    ['Restore the server’s default', 'sealpost account limit acme --limit reportPage=default'],
  ],
  run: async ({ session, options, withStore, print }, user: string) => {
    const raws = collected(options.limit) ?? [];
    asUsage(() => changeRateLimits({}, raws)); // reports a typo before the store is opened
    const alter = (account: Account) => ({ ...account, rateLimits: changeRateLimits(account.rateLimits, raws) });
    const changed = await withStore(({ admin }) => changeAccount(session, admin, user, 'account.limit', alter));
    const limits = limitPairs(changed.rateLimits).map(([what, limit]) => `${what}: ${limit}`);
    await print(
      showAccount(changed),
      `${changed.name}: ${limits.length === 0 ? 'the server’s default limits' : limits.join(', ')}.\n`,
    );
  },
};

const limitPairs = (rateLimits: Account['rateLimits']): readonly (readonly [string, string])[] =>
  Object.entries(rateLimits).map(([route, perSecond]) => [
    `limit ${route}`,
    perSecond === 0 ? 'none' : `${perSecond} per second`,
  ]);

const createSwitch = (verb: 'disable' | 'enable', summary: string): SettingsCommand => ({
  name: verb,
  summary,
  arguments: [userArgument],
  options: [accountJson],
  settings: ['store'],
  examples: [['Running servers apply it within a second', `sealpost account ${verb} acme`]],
  run: async ({ session, withStore, print }, user: string) => {
    const alter = (account: Account) => switchAccount(account, verb === 'enable', session.nowMs());
    const changed = await withStore(({ admin }) => changeAccount(session, admin, user, `account.${verb}`, alter));
    await print(showAccount(changed), `${changed.name} is ${verb}d.\n`);
  },
});

const usageDaysMax = 366;

const usage: SettingsCommand = {
  name: 'usage',
  summary: 'Count an account’s requests by day (UTC) and route.',
  arguments: [userArgument],
  options: [
    { flag: '--days <count>', help: `number of days up to today, at most ${usageDaysMax}`, default: '7' },
    { flag: '--json', help: 'print the counts as one line of JSON' },
  ],
  settings: ['store'],
  examples: [['Last 30 days', 'sealpost account usage acme --days 30']],
  run: async ({ session, options, withStore, print }, user: string) => {
    const days = parseCount('--days', String(options.days), 1, usageDaysMax);
    const [name, usage] = await withStore(async (store) => {
      const { userId, name } = await findAccount(store.admin, user);
      return [name, await store.usage.list(userId, usageDay(session.nowMs(), days - 1))] as const;
    });
    const columns = [{ title: 'day' }, { title: 'route' }, { title: 'requests', align: 'right' }] as const;
    const rows = usage.map(({ day, route, requests }) => [day, route, formatCount(requests)]);
    const text = rows.length === 0 ? `${name}: no usage recorded yet.\n` : renderTable(columns, rows, session.paint);
    await print({ usage }, text);
  },
};

export const accountCommands: CommandGroup = {
  name: 'account',
  summary: 'Manage accounts: create, list, show, entitle, limit, disable, enable, usage.',
  commands: [
    create,
    list,
    show,
    entitleCommand,
    limit,
    createSwitch('disable', 'Reject an account’s requests from now on. Its secrets are kept.'),
    createSwitch('enable', 'Accept a disabled account’s requests again, with its existing secrets.'),
    usage,
  ],
};
