// The command `sealpost account entitle`: what an account may read. What entitlements mean is access/entitlements.ts.
import type { Command } from 'commander';
import { changeEntitlements, type EntitlementChange, parseNewEntitlement } from '../../../access/account-arguments.ts';
import { showAccount } from '../../../access/account-changes.ts';
import {
  addExamples,
  addSettings,
  collected,
  collectOption,
  type RawOptions,
  readSettings,
} from '../../command-options.ts';
import { asUsage, usageError } from '../../failure.ts';
import { formatNumberOf } from '../../formats.ts';
import { printJson, type Session } from '../../session.ts';
import { withStore } from '../../store-access.ts';
import { resolveEntitlements } from '../../stream-argument.ts';
import { changeAccount, countReadable, warnOfUnknownFeeds } from './account-record.ts';

const forms = 'public, feed:FEED or filter:QUERY; repeatable';

export const addEntitle = (parent: Command, session: Session): void => {
  const command = parent
    .command('entitle')
    .description(
      'Change what an account may read: every public stream, one stream by feed ID or name, or public streams by a filter.',
    )
    .argument('<USER>', 'user ID or name')
    .option('--add <entitlement>', `entitlement to add: ${forms}`, collectOption)
    .option(
      '--remove <entitlement>',
      'entitlement to remove, as sealpost account show lists it; repeatable',
      collectOption,
    )
    .option('--set <entitlement>', `replace all entitlements; none removes them: ${forms}`, collectOption)
    .option('--json', 'print the account as one line of JSON, without secrets')
    .action((user: string, options: RawOptions) => entitle(session, user, options));
  addSettings(command, ['store']);
  addExamples(command, [
    ['Add a stream', 'sealpost account entitle acme --add feed:BTC/USD-Streams-CexPrice'],
    ['Allow only crypto streams', 'sealpost account entitle acme --set filter:asset_class=Crypto'],
    ['Remove all entitlements', 'sealpost account entitle acme --set none'],
  ]);
};

const entitle = async (session: Session, user: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const resolve = async (raws: readonly string[] | undefined) => raws && resolveEntitlements(values.store, raws);
  const [add, remove, set] = [collected(options.add), collected(options.remove), collected(options.set)];
  const named = { add: await resolve(add), remove: await resolve(remove), set: await resolve(set) };
  const change = asUsage(() => parseChange(named));
  const [account, readable] = await withStore(values.store, async ({ admin }) => {
    const changed = await changeAccount(session, admin, user, 'account.entitle', (current) => ({
      ...current,
      entitlements: changeEntitlements(current.entitlements, change),
    }));
    await warnOfUnknownFeeds(session, admin, [...(change.set ?? []), ...(change.add ?? [])]);
    return [changed, await countReadable(admin, changed)] as const;
  });
  if (options.json) return printJson(session, { ...showAccount(account), readableStreams: readable });
  await session.write(`${account.name} may read ${formatNumberOf(readable, 'stream')} now.\n`);
};

type GivenChange = { readonly [K in 'add' | 'remove' | 'set']: readonly string[] | undefined };

const parseChange = ({ add, remove, set }: GivenChange): EntitlementChange => {
  if (set === undefined && add === undefined && remove === undefined)
    throw usageError('Nothing to change. Use --add, --remove or --set.');
  if (set === undefined) return { add: (add ?? []).map(parseNewEntitlement), remove: (remove ?? []).map(toStored) };
  if (add !== undefined || remove !== undefined) throw usageError('--set cannot be combined with --add or --remove.');
  return { set: set.length === 1 && set[0] === 'none' ? [] : [...new Set(set.map(parseNewEntitlement))] };
};

// Feed ids are stored in lower case. Anything else is taken away as it is spelled, even what could no longer be given.
const toStored = (raw: string): string => (raw.startsWith('feed:') ? raw.toLowerCase() : raw);
