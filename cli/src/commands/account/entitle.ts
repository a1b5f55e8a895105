// The command `sealpost account entitle`: what an account may read. What entitlements mean is access/entitlements.ts.
import {
  changeEntitlements,
  type EntitlementChange,
  parseNewEntitlement,
} from '@sealpost/server/access/account-arguments';
import { showAccount } from '@sealpost/server/access/account-changes';
import type { SettingsCommand } from '../../command.ts';
import { collected } from '../../command-options.ts';
import { asUsage, usageError } from '../../failure.ts';
import { formatNumberOf } from '../../formats.ts';
import { resolveEntitlements } from '../../stream-argument.ts';
import { accountJson, changeAccount, countReadable, userArgument, warnOfUnknownFeeds } from './account-record.ts';

const forms = 'public, feed:FEED or filter:QUERY; repeatable';

export const entitleCommand: SettingsCommand = {
  name: 'entitle',
  summary:
    'Change what an account may read: every public stream, one stream by feed ID or name, or public streams by a filter.',
  arguments: [userArgument],
  options: [
    { flag: '--add <entitlement>', help: `entitlement to add: ${forms}`, repeatable: true },
    {
      flag: '--remove <entitlement>',
      help: 'entitlement to remove, as sealpost account show lists it; repeatable',
      repeatable: true,
    },
    { flag: '--set <entitlement>', help: `replace all entitlements; none removes them: ${forms}`, repeatable: true },
    accountJson,
  ],
  settings: ['store'],
  examples: [
    ['Add a stream', 'sealpost account entitle acme --add feed:BTC/USD-Streams-CexPrice'],
    ['Allow only crypto streams', 'sealpost account entitle acme --set filter:asset_class=Crypto'],
    ['Remove all entitlements', 'sealpost account entitle acme --set none'],
  ],
  run: async ({ session, options, settings, withStore, print }, user: string) => {
    const resolve = async (raws: readonly string[] | undefined) => raws && resolveEntitlements(settings.store, raws);
    const [add, remove, set] = [collected(options.add), collected(options.remove), collected(options.set)];
    const named = { add: await resolve(add), remove: await resolve(remove), set: await resolve(set) };
    const change = asUsage(() => parseChange(named));
    const [account, readable] = await withStore(async ({ admin }) => {
      const changed = await changeAccount(session, admin, user, 'account.entitle', (current) => ({
        ...current,
        entitlements: changeEntitlements(current.entitlements, change),
      }));
      await warnOfUnknownFeeds(session, admin, [...(change.set ?? []), ...(change.add ?? [])]);
      return [changed, await countReadable(admin, changed)] as const;
    });
    await print(
      { ...showAccount(account), readableStreams: readable },
      `${account.name} may read ${formatNumberOf(readable, 'stream')} now.\n`,
    );
  },
};

type GivenChange = { readonly [K in 'add' | 'remove' | 'set']: readonly string[] | undefined };

const parseChange = ({ add, remove, set }: GivenChange): EntitlementChange => {
  if (set === undefined && add === undefined && remove === undefined)
    throw usageError('Nothing to change. Use --add, --remove or --set.');
  if (set === undefined) return { add: (add ?? []).map(parseNewEntitlement), remove: (remove ?? []).map(toStored) };
  if (add !== undefined || remove !== undefined) throw usageError('--set cannot be combined with --add or --remove.');
  return { set: set.length === 1 && set[0] === 'none' ? [] : [...new Set(set.map(parseNewEntitlement))] };
};

// Feed IDs are stored in lower case. Anything else is removed as spelled, even if it is no longer valid.
const toStored = (raw: string): string => (raw.startsWith('feed:') ? raw.toLowerCase() : raw);
