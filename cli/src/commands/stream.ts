// The command `sealpost stream`: the catalog as the operator changes it. Every change is an entry of the audit log.
import { createClient } from '@sealpost/client';
import {
  type CatalogEntry,
  compareStreams,
  formatDate,
  moveStream,
  type NetworkType,
  networkTypes,
  parseCatalog,
  parseFeedId,
  parseStream,
  type Stream,
  timeResolutionOf,
} from '@sealpost/protocol';
import type { AdminStore, Store } from '@sealpost/server/store/store';
import { type ChangeOrder, type ChangeSummary, changeRecords, renderSummary } from '../admin-change.ts';
import {
  type CommandGroup,
  type OptionRow,
  type PlainCommand,
  type SettingsCommand,
  settingOptions,
} from '../command.ts';
import { type RawOptions, readJsonFile, readSettings } from '../command-options.ts';
import { accessOptions, findUser, readServer } from '../credentials.ts';
import { asUsage, CommandError, exitCodes, usageError } from '../failure.ts';
import { formatNumberOf, renderTable } from '../formats.ts';
import { clientOptions, explainRemote } from '../remote-client.ts';
import type { Session } from '../session.ts';
import { withStore } from '../store-access.ts';
import { feedForms, findStream } from '../stream-argument.ts';
import { parseTime, timeForms } from '../time-arguments.ts';

/** Texts of a stream: field, flag, help, and what `add` takes when the flag is absent. */
const textOptions = [
  ['name', '--name <text>', 'unique name, such as BTC/USD-Streams-CexPrice'],
  ['baseAsset', '--base-asset <text>', 'asset that is priced, such as BTC'],
  ['quoteAsset', '--quote-asset <text>', 'asset that it is priced in, such as USD'],
  ['assetClass', '--asset-class <text>', 'such as Crypto or Forex'],
  ['feedType', '--feed-type <text>', 'such as Crypto or Equities'],
  ['attributeType', '--attribute-type <text>', 'such as CexPrice or NAV'],
  ['assetName', '--asset-name <text>', 'full name of the base asset', '(the base asset)'],
  ['marketHours', '--market-hours <text>', 'when reports are expected', '24/7'],
  ['serviceLevel', '--service-level <text>', 'such as standard or premium', 'standard'],
] as const;

const hiddenHelp = 'list it only to accounts that may see hidden streams';
const streamJson: OptionRow = { flag: '--json', help: 'print the stream as one line of JSON' };

const add: SettingsCommand = {
  name: 'add',
  summary: 'Add a stream with status testing. Make it live with: sealpost stream set FEED --status live.',
  arguments: [
    {
      name: '<FEED_ID>',
      help: '0x and 64 hex digits; the first two bytes give schema version and timestamp resolution',
    },
  ],
  options: [
    ...textOptions.map(
      ([, flag, help, fallback]): OptionRow =>
        fallback === undefined ? { flag, help, required: true } : { flag, help: `${help} (default: ${fallback})` },
    ),
    { flag: '--network-type <type>', help: 'network of the stream', required: true, choices: networkTypes },
    { flag: '--hidden', help: hiddenHelp },
    streamJson,
  ],
  settings: ['store', 'network'],
  examples: [
    [
      'A crypto price',
      'sealpost stream add 0x0003… --name BTC/USD-Streams-CexPrice --base-asset BTC --quote-asset USD \\\n      --asset-class Crypto --feed-type Crypto --attribute-type CexPrice --network-type testnet',
    ],
  ],
  run: async ({ session, options, settings, withNewStore, print }, rawFeedId: string) => {
    const feedId = asUsage(() => parseFeedId(rawFeedId, 'FEED_ID'));
    const created = asUsage(() =>
      parseStream({
        assetName: options.baseAsset,
        marketHours: '24/7',
        serviceLevel: 'standard',
        ...options,
        feedId,
        status: 'testing',
        createdAt: formatDate(session.nowMs()),
      }),
    );
    requireNetwork([created], settings.network);
    requireResolution([created]);
    await withNewStore(({ admin }) =>
      changeRecords(session, admin, {
        kind: 'stream',
        keys: [feedId],
        plan: ([current]) => {
          if (current === undefined) return [created];
          const text = `${feedId} is already in the catalog as ${current.name}. Change it with: sealpost stream set.`;
          throw new CommandError(exitCodes.refused, text);
        },
        check: requireFreeNames,
        action: 'stream.add',
        detail: { name: created.name },
      }),
    );
    await print(created, describeStream(created, 'added as testing'));
  },
};

/** Rejects streams of the other network: nobody could read them, and their reports would be rejected. */
export function requireNetwork(streams: readonly Stream[], network: NetworkType): void {
  const foreign = streams.filter(({ networkType }) => networkType !== network);
  const [first] = foreign;
  if (first === undefined) return;
  const belong = foreign.length === 1 ? ' belongs' : ` and ${formatNumberOf(foreign.length - 1, 'other')} belong`;
  throw new CommandError(
    exitCodes.refused,
    `${first.name}${belong} to ${first.networkType}, but this deployment serves ${network}. Nothing was changed. Use one store per network: set --store and --network ${first.networkType}.`,
  );
}

/**
 * Rejects a name of another stream that is not decommissioned, in any case: entitlements are granted by it (D98). A stream keeps a name that it
 * has, so that streams which had one name before can be changed.
 */
const requireFreeNames = (stored: readonly Stream[], next: readonly Stream[]): void => {
  const before = new Map(stored.map((stream) => [stream.feedId, stream]));
  const after = new Map([...before, ...next.map((stream) => [stream.feedId, stream] as const)]);
  const owners = new Map<string, Stream[]>();
  for (const stream of after.values()) {
    const name = stream.name.toLowerCase();
    const others = owners.get(name);
    if (stream.status === 'decommissioned') continue;
    if (others === undefined) owners.set(name, [stream]);
    else others.push(stream);
  }
  for (const { feedId, name, status } of next) {
    if (status === 'decommissioned' || before.get(feedId)?.name.toLowerCase() === name.toLowerCase()) continue;
    const owner = owners.get(name.toLowerCase())?.find((other) => other.feedId !== feedId);
    if (owner === undefined) continue;
    throw new CommandError(
      exitCodes.refused,
      `The name ${owner.name} belongs to ${owner.feedId}. Choose another, or rename that stream: sealpost stream set ${owner.feedId} --name NAME.`,
    );
  }
};

/** Rejects streams whose reports cannot be stored, because their place in time is unknown (D246). */
const requireResolution = (streams: readonly Stream[]): void => {
  const strange = streams.find(({ feedId }) => timeResolutionOf(feedId) === undefined);
  if (strange === undefined) return;
  throw new CommandError(
    exitCodes.refused,
    `The feed ID of ${strange.name}, ${strange.feedId}, begins with ${strange.feedId[2]}, which is no time resolution: no report of it could be stored. Nothing was changed. Check the feed ID: its first digit is 0 for seconds or 1 for milliseconds.`,
  );
};

const describeStream = ({ name, feedId }: Stream, what: string): string => `${name} (${feedId}) ${what}.\n`;

const list: PlainCommand = {
  name: 'list',
  summary:
    'List all streams of the store by name, including hidden ones; with --url or --profile, the catalog of a server.',
  options: [
    { flag: '--json', help: 'print the catalog as one line of JSON, as sealpost stream import reads it' },
    ...accessOptions,
    ...settingOptions(['store']),
  ],
  examples: [
    ['List the catalog', 'sealpost stream list'],
    ['List the catalog of a server', 'sealpost stream list --url https://streams.example.com'],
    ['Save it for another store', 'sealpost stream list --json > catalog.json'],
  ],
  run: async ({ session, options, print }) => {
    const isRemote = [options.url, options.profile, options.profiles].some((option) => option !== undefined);
    const streams = await (isRemote ? remoteStreams : storedStreams)(session, options);
    const columns = ['name', 'feed ID', 'network', 'status', 'hidden', 'decommission'].map((title) => ({ title }));
    const rows = streams.map((stream) => [
      stream.name,
      stream.feedId,
      stream.networkType ?? '', // servers of others may leave out all but feed ID, pair and status
      stream.status ?? '',
      stream.hidden ? 'hidden' : '',
      stream.decommissionedAt ?? (stream.expectedDecommissionAt ? `expected ${stream.expectedDecommissionAt}` : ''),
    ]);
    await print(
      { feeds: streams },
      `${renderTable(columns, rows, session.paint)}${formatNumberOf(streams.length, 'stream')}.\n`,
    );
  },
};

/** The streams of the store. */
const storedStreams = async (session: Session, options: RawOptions): Promise<readonly ListedStream[]> => {
  const { values } = await readSettings(session, options);
  return [...(await withStore(values.store, ({ admin }) => admin.list('stream')))].sort(compareStreams);
};

/** The catalog of a server, as the user sees it, or the public one without a user. */
const remoteStreams = async (session: Session, options: RawOptions): Promise<readonly ListedStream[]> => {
  if (options.store !== undefined) throw usageError('--store cannot be combined with --url.');
  const user = await findUser(session, options);
  const url = user?.server ?? readServer(session, options, user?.url);
  const call = { signal: session.interruption() };
  const client = user === undefined ? createClient(clientOptions(url, session)) : user.openClient(url, session);
  const { feeds } = await explainRemote(url, () => client.discovery(user && { hidden: true }, call));
  return feeds;
};

type ListedStream = Omit<CatalogEntry, 'schemaVersion'> & { readonly hidden?: boolean };

const set: SettingsCommand = {
  name: 'set',
  summary: 'Change fields of a stream, or move it from testing to live.',
  arguments: [{ name: '<FEED>', help: feedForms }],
  options: [
    ...textOptions.map(([, flag, help]): OptionRow => ({ flag, help })),
    {
      flag: '--status <status>',
      help: 'new status; to end a stream use: sealpost stream decommission',
      choices: ['live'],
    },
    { flag: '--hidden <switch>', help: hiddenHelp, choices: ['true', 'false'] },
    { flag: '--expected-decommission-at <time>', help: `none, or ${timeForms}` },
    streamJson,
  ],
  settings: ['store'],
  examples: [
    ['Make a stream live and public', 'sealpost stream set BTC/USD-Streams-CexPrice --status live --hidden false'],
    ['Announce its decommission', 'sealpost stream set FTM/USD-Streams-CexPrice --expected-decommission-at +90d'],
  ],
  run: async ({ session, options, withStore, print }, feed: string) => {
    const fields = parseFields(options, Math.floor(session.nowMs() / 1_000));
    const { status } = options;
    if (status !== undefined && status !== 'live')
      throw usageError(
        `--status has the value "${status}", expected live. To end a stream use: sealpost stream decommission.`,
      );
    if (status === undefined && Object.keys(fields).length === 0)
      throw usageError('Nothing to change. See: sealpost stream set --help.');
    const alter = (stream: Stream): Stream => {
      const moved =
        status === undefined || stream.status === status ? stream : moveStream(stream, status, session.nowMs());
      return asUsage(() => parseStream({ ...moved, ...fields }));
    };
    const changed = await withStore((store) => changeOne(session, store, feed, 'stream.set', alter));
    await print(changed, describeStream(changed, 'updated'));
  },
};

const parseFields = (options: RawOptions, nowSeconds: number): Partial<Stream> => {
  const { hidden, expectedDecommissionAt: expected } = options;
  if (hidden !== undefined && hidden !== 'true' && hidden !== 'false')
    throw usageError(`--hidden has the value "${hidden}", expected true or false.`);
  const texts = textOptions.flatMap(([field]) => (options[field] === undefined ? [] : [[field, options[field]]]));
  const toDate = (raw: string): string | null =>
    raw === 'none' ? null : formatDate(parseTime('--expected-decommission-at', raw, nowSeconds) * 1_000);
  return {
    ...Object.fromEntries(texts),
    ...(hidden === undefined ? {} : { hidden: hidden === 'true' }),
    ...(expected === undefined ? {} : { expectedDecommissionAt: toDate(String(expected)) }),
  };
};

const changeOne = async (
  session: Session,
  { admin }: Store,
  feed: string,
  action: string,
  alter: (stream: Stream) => Stream,
): Promise<Stream> => {
  const known = findStream(await admin.list('stream'), feed);
  const { feedId, name } = known;
  const plan = (current: readonly (Stream | undefined)[]) => current.map((stream) => alter(stream ?? known));
  const order = { kind: 'stream', keys: [feedId], plan, check: requireFreeNames, action, detail: { name } } as const;
  await changeRecords(session, admin, order);
  return (await admin.get('stream', feedId)) ?? known;
};

const decommission: SettingsCommand = {
  name: 'decommission',
  summary:
    'End a live stream permanently: it accepts no new reports, stays listed, and is readable until retention ends.',
  arguments: [{ name: '<FEED>', help: feedForms }],
  options: [streamJson],
  settings: ['store'],
  examples: [['End a stream', 'sealpost stream decommission FTM/USD-Streams-CexPrice']],
  run: async ({ session, withStore, print }, feed: string) => {
    const end = (stream: Stream): Stream => moveStream(stream, 'decommissioned', session.nowMs());
    const ended = await withStore((store) => changeOne(session, store, feed, 'stream.decommission', end));
    await print(ended, describeStream(ended, 'decommissioned'));
  },
};

const importStreams: SettingsCommand = {
  name: 'import',
  summary: 'Add or update the streams of a catalog file, all or none. Other streams are unchanged.',
  arguments: [{ name: '<FILE>', help: 'catalog.json, as sealpost simulate or sealpost stream list --json write it' }],
  options: [{ flag: '--json', help: 'print what was added and changed as one line of JSON' }],
  settings: ['store', 'network'],
  examples: [['Import the streams of a simulated network', 'sealpost stream import ./hour/catalog.json']],
  run: async ({ session, settings, withNewStore, print }, file: string) => {
    const streams = parseCatalog(await readJsonFile(file), file);
    requireNetwork(streams, settings.network); // before a store is made
    requireResolution(streams);
    const summary = await withNewStore(({ admin }) =>
      registerStreams(session, admin, streams, {
        network: settings.network,
        check: requireFreeNames,
        detail: { file },
      }),
    );
    await print(summary, renderSummary(summary));
  },
};

/** Adds or updates streams in a store's catalog, all or none. */
export async function registerStreams(
  session: Pick<Session, 'nowMs' | 'actor'>,
  admin: AdminStore,
  streams: readonly Stream[],
  { network, ...how }: { readonly network: NetworkType } & Pick<ChangeOrder<'stream'>, 'check' | 'detail'>,
): Promise<ChangeSummary> {
  requireNetwork(streams, network);
  requireResolution(streams);
  const plan = (current: readonly (Stream | undefined)[]): readonly Stream[] =>
    streams.map((stream, i) => {
      const before = current[i];
      if (before !== undefined && before.status !== stream.status) moveStream(before, stream.status, session.nowMs());
      return stream; // its dates are the file's; the move above only checks that the transition is allowed
    });
  const keys = streams.map(({ feedId }) => feedId);
  return changeRecords(session, admin, { kind: 'stream', keys, plan, action: 'stream.import', ...how });
}

export const streamCommands: CommandGroup = {
  name: 'stream',
  summary: 'Manage the catalog of streams: add, list, set, decommission, import.',
  commands: [add, list, set, decommission, importStreams],
};
