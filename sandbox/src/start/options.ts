// The options of a sandbox: names, defaults, and the streams that they choose from the simulator's catalog.
import { createHash } from 'node:crypto';
import {
  explainMatch,
  type FeedId,
  matchStreams,
  oraclesMax,
  parseFeedId,
  type Stream,
  schemaVersionOf,
  timeResolutionOf,
} from '@sealpost/protocol';
import { createCatalog, createSpecStream, defaultSpecs, networkProfiles, type StreamSpec } from '@sealpost/simulator';
import {
  durationMs,
  type Moment,
  parseMoment,
  parseScenario,
  type SandboxAccounts,
  SandboxError,
  type Scenario,
  ScenarioError,
  unexpected,
} from './embedded.ts';

/**
 * A stream: a pair such as `'ETH/USD'`, or a name of the simulated catalog; or one of your own, whose name need not be in it. Give `feedId`
 * where your code has it built in; the schema version is in it. Otherwise `schema` is the version, 3 by default, also one that no release knows yet. One that is
 * `hidden` is for accounts that name it.
 */
export type StreamOption =
  | string
  | { readonly name: string; readonly feedId?: string; readonly schema?: number; readonly hidden?: boolean };

export type SandboxOptions = {
  /** Streams whose reports you `push`. No report comes by itself. */
  readonly streams?: readonly StreamOption[];
  /** Streams that follow a simulated price: `advance` signs their reports. By pair or name of the simulated catalog. */
  readonly simulated?: readonly string[];
  /** A scenario of `sealpost sandbox`, parsed from its JSON: its streams are simulated, and its events happen as time advances. */
  readonly scenario?: unknown;
  /** Sandbox time at the start; now by default. It stands still but for `advance` and `push`. */
  readonly at?: Moment;
  /** Decides prices, keys, which requests a fault with a probability acts on and, if given, the credentials; the same one gives the same. `'test'` by default. */
  readonly seed?: string;
  /** Oracles of the network; 4 by default. */
  readonly oracles?: number;
  /** How many of them may fail, fewer than a third; 1 by default. Each report has one signature more. */
  readonly faulty?: number;
  /** `'memory'` by default; `'folder'` is LMDB in a temporary folder, which `close` removes. */
  readonly store?: 'memory' | 'folder';
  /** Requests per second for each route; more get 429. 0, the default, is no limit. */
  readonly requestsPerSecond?: number;
  /** Further accounts by name, with what they may read: `{ alice: ['public'], bob: ['ETH/USD'] }`. `public` is every stream that is not hidden. */
  readonly accounts?: SandboxAccounts;
  /** Origins for clients that connect to several, such as `['001', '002']`. */
  readonly origins?: readonly string[];
};

/** A stream of the sandbox, and by which text it was asked for. */
export type ChosenStream = { readonly stream: Stream; readonly asked: string; readonly isSimulated: boolean };

export type Choices = {
  readonly streams: readonly ChosenStream[];
  readonly startMs: number;
  readonly seed: string;
  readonly size: { readonly n: number; readonly f: number };
  /** The seed, if it is given: without one, each sandbox has its own credentials. */
  readonly credentialsSeed: string | undefined;
  readonly store: 'memory' | 'folder';
  readonly requestsPerSecond: number;
  readonly origins: readonly string[];
  readonly accounts: SandboxAccounts;
  /** With the streams that it simulates. */
  readonly scenario: ChosenScenario | undefined;
};

export type ChosenScenario = { readonly scenario: Scenario; readonly specs: readonly StreamSpec[] };

const optionNames = [
  'streams',
  'simulated',
  'scenario',
  'at',
  'seed',
  'oracles',
  'faulty',
  'store',
  'requestsPerSecond',
  'origins',
  'accounts',
] as const;
const streamsMax = 1_000;

/** Checks the options; throws a SandboxError that names the wrong one. */
export function readOptions(options: SandboxOptions, nowMs: number): Choices {
  const given: unknown = options;
  if (typeof given !== 'object' || given === null)
    throw unexpected('options', given, "an object, for example { streams: ['ETH/USD'] }");
  const unknown = Object.keys(given).find((name) => !(optionNames as readonly string[]).includes(name)); // only widens it
  if (unknown !== undefined)
    throw new SandboxError(unknown, `${unknown} is not an option. Options: ${optionNames.join(', ')}.`);
  const scenario = readScenario(options);
  const {
    seed = scenario?.scenario.seed ?? 'test',
    at = scenario?.scenario.at,
    store = 'memory',
    requestsPerSecond = 0,
    origins = [],
    accounts = {},
  } = options;
  if (typeof seed !== 'string') throw unexpected('seed', seed, 'a text');
  if (store !== 'memory' && store !== 'folder') throw unexpected('store', store, "'memory' or 'folder'");
  if (!Number.isInteger(requestsPerSecond) || requestsPerSecond < 0 || requestsPerSecond > 1_000_000)
    throw unexpected('requestsPerSecond', requestsPerSecond, 'a whole number from 0, which means no limit, to 1000000');
  const isOrigin = (origin: unknown): boolean => typeof origin === 'string' && /^[\w.:-]+$/.test(origin);
  if (!Array.isArray(origins) || !origins.every(isOrigin))
    throw unexpected('origins', origins, "a list of IDs such as ['001', '002']");
  const momentMs = at === undefined ? nowMs : parseMoment('at', at);
  const startMs = Math.floor(momentMs / 1_000) * 1_000; // reports are of whole seconds
  return {
    streams: readStreams(options, scenario, startMs),
    startMs,
    seed,
    size: readSize(options),
    credentialsSeed: options.seed ?? scenario?.scenario.seed,
    store,
    requestsPerSecond,
    origins,
    accounts,
    scenario,
  };
}

const readSize = ({ oracles = networkProfiles.testnet.n, faulty }: SandboxOptions): Choices['size'] => {
  if (!Number.isInteger(oracles) || oracles < 1 || oracles > oraclesMax)
    throw unexpected('oracles', oracles, `a whole number from 1 to ${oraclesMax}`);
  const faultyMax = Math.ceil(oracles / 3) - 1;
  const f = faulty ?? Math.min(networkProfiles.testnet.f, faultyMax);
  if (!Number.isInteger(f) || f < 0 || f > faultyMax)
    throw unexpected('faulty', f, `a whole number from 0 to ${faultyMax}, fewer than a third of ${oracles} oracles`);
  return { n: oracles, f };
};

const readScenario = ({ scenario, simulated }: SandboxOptions): ChosenScenario | undefined => {
  if (scenario === undefined) return undefined;
  if (simulated !== undefined)
    throw new SandboxError(
      'simulated',
      'simulated is given, but the streams of a scenario are in the scenario. Drop one of both.',
    );
  try {
    const parsed = parseScenario(scenario);
    return { scenario: parsed, specs: parsed.streams ?? defaultSpecs };
  } catch (error) {
    throw asSandboxError(error);
  }
};

/** The error about a scenario, with the place in it as the argument. */
export const asSandboxError = (error: unknown): unknown =>
  error instanceof ScenarioError
    ? new SandboxError(error.path === '' ? 'scenario' : `scenario.${error.path}`, `scenario: ${error.message}`, {
        cause: error,
      })
    : error;

const readStreams = (
  { streams = [], simulated = [] }: SandboxOptions,
  scenario: ChosenScenario | undefined,
  startMs: number,
): readonly ChosenStream[] => {
  for (const [name, list] of Object.entries({ streams, simulated }))
    if (!Array.isArray(list) || list.length > streamsMax)
      throw unexpected(name, list, `a list of at most ${streamsMax} streams such as ['ETH/USD']`);
  const catalog = createCatalog('testnet');
  const chosen = [
    ...streams.map((option, i) => chooseStream(`streams[${i}]`, option, catalog)),
    ...simulated.map((name, i) => ({ ...chooseNamed(`simulated[${i}]`, name, catalog), isSimulated: true })),
    ...(scenario?.specs ?? []).map((spec) => {
      const { stream } = createSpecStream('testnet', spec, startMs / 1_000);
      return { stream, asked: stream.name, isSimulated: true };
    }),
  ];
  if (chosen.length === 0)
    throw new SandboxError(
      'streams',
      "No stream is given. Set streams, for example { streams: ['ETH/USD'] }, or simulated.",
    );
  const seen = new Map<FeedId, string>();
  const byName = new Map<string, FeedId>();
  for (const { stream, asked } of chosen) {
    const before = seen.get(stream.feedId);
    if (before !== undefined)
      throw new SandboxError('streams', `${asked} and ${before} are the same stream, ${stream.feedId}. Name it once.`);
    seen.set(stream.feedId, asked);
    const namesake = byName.get(stream.name.toLowerCase());
    if (namesake !== undefined)
      throw new SandboxError(
        'streams',
        `${stream.name} is also the name of ${namesake}. Names are unique in any case.`,
      );
    byName.set(stream.name.toLowerCase(), stream.feedId);
  }
  return chosen;
};

const chooseStream = (argument: string, option: unknown, catalog: readonly Stream[]): ChosenStream => {
  if (typeof option === 'string') return chooseNamed(argument, option, catalog);
  if (typeof option !== 'object' || option === null)
    throw unexpected(argument, option, "a pair such as 'ETH/USD', or { name, feedId } for a stream of your own");
  const { name, feedId, schema, hidden = false, ...others } = option as Record<string, unknown>; // each is checked
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new SandboxError(
      `${argument}.${unknown}`,
      `${argument}.${unknown} is not a field. Fields: name, feedId, schema, hidden.`,
    );
  if (typeof name !== 'string' || !/^[\w.]{1,40}\/[\w.]{1,40}(-[\w.-]{1,80})?$/.test(name))
    throw unexpected(`${argument}.name`, name, "a pair such as 'ETH/USD', or a name that begins with one");
  if (typeof hidden !== 'boolean') throw unexpected(`${argument}.hidden`, hidden, 'true or false');
  return {
    stream: { ...ownStream(name, readFeedId(argument, name, feedId, schema)), hidden },
    asked: name,
    isSimulated: false,
  };
};

/** Schema versions that a report can be made of, known or not: a feed ID has 12 bits for it. */
const schemaMin = 2;
const schemaMax = 4_095;

const readFeedId = (argument: string, name: string, feedId: unknown, schema: unknown): FeedId => {
  const version = schema ?? (feedId === undefined ? 3 : undefined);
  const isVersion = Number.isInteger(version) && Number(version) >= schemaMin && Number(version) <= schemaMax;
  if (version !== undefined && !isVersion)
    throw unexpected(`${argument}.schema`, schema, `a schema version from ${schemaMin} to ${schemaMax}`);
  if (feedId === undefined) {
    const digest = createHash('sha256').update(`sealpost testing ${name}`).digest('hex');
    return parseFeedId(`0x${Number(version).toString(16).padStart(4, '0')}${digest.slice(4)}`);
  }
  const field = `${argument}.feedId`;
  if (typeof feedId !== 'string' || !/^0x[0-9a-f]{64}$/i.test(feedId))
    throw unexpected(field, feedId, '0x and 64 hex digits');
  const own = schemaVersionOf(feedId);
  if (own < schemaMin || timeResolutionOf(feedId) === undefined)
    throw unexpected(field, feedId, `a feed ID of a schema version from ${schemaMin} to ${schemaMax}, such as 0x0003…`);
  if (version !== undefined && version !== own)
    throw unexpected(`${argument}.schema`, schema, `${own}, as in the feed ID, or none`);
  return parseFeedId(feedId);
};

const ownStream = (name: string, feedId: FeedId): Stream => {
  const [baseAsset = '', quoteAsset = ''] = (name.split('-', 1)[0] ?? '').split('/');
  return {
    feedId,
    name: name.includes('-') ? name : `${name}-Streams-Sandbox`,
    assetName: baseAsset,
    baseAsset,
    quoteAsset,
    assetClass: 'Crypto',
    feedType: 'Crypto',
    attributeType: 'Sandbox',
    marketHours: '24/7',
    serviceLevel: 'standard',
    networkType: 'testnet',
    status: 'live',
    createdAt: '2024-01-01T00:00:00.000000Z',
    expectedDecommissionAt: null,
    decommissionedAt: null,
    hidden: false,
  };
};

/** A stream of the simulated catalog. Of several streams of a pair, the crypto price is meant. */
const chooseNamed = (argument: string, name: unknown, catalog: readonly Stream[]): ChosenStream => {
  if (typeof name !== 'string') throw unexpected(argument, name, "a pair such as 'ETH/USD', or a name of the catalog");
  const match = matchStreams(name, catalog);
  const several = match.found === 'several' ? match.streams : [];
  const found =
    match.found === 'one' ? match.stream : several.find(({ attributeType }) => attributeType === 'CexPrice');
  if (found === undefined) {
    const pairs = [...new Set(catalog.map(({ name: full }) => full.split('-', 1)[0]))].join(', ');
    const own = argument.startsWith('streams') ? ` For a stream of your own: { name: ${JSON.stringify(name)} }.` : '';
    const why = match.found === 'one' ? '' : explainMatch(name, match);
    throw new SandboxError(argument, `${argument}: ${why} Pairs: ${pairs}.${own}`);
  }
  const stream: Stream = {
    ...found,
    status: 'live',
    expectedDecommissionAt: null,
    decommissionedAt: null,
    hidden: false,
  };
  return { stream, asked: name, isSimulated: false };
};

/** `'500ms'`, `'10s'`, `'5m'`, `'2h'`, `'1d'`, or a number of milliseconds. */
export type Duration = string | number;

const durationExpected = (max: string): string =>
  `a duration up to ${max} such as '10s' or '500ms', or a whole number of milliseconds`;

/** A duration in whole ms, from 0 to a maximum. */
export function parseDuration(argument: string, value: unknown, maxMs: number, max: string): number {
  const ms = typeof value === 'string' ? durationMs(value.trim()) : value;
  if (typeof ms === 'number' && Number.isInteger(ms) && ms >= 0 && ms <= maxMs) return ms;
  throw unexpected(argument, value, durationExpected(max));
}

export function createStreamNames(chosen: readonly ChosenStream[]) {
  const entries = chosen.map(({ stream }) => stream);
  const find = (argument: string, name: unknown): ChosenStream => {
    if (typeof name !== 'string') throw unexpected(argument, name, "a stream such as 'ETH/USD'");
    const match = matchStreams(name, entries);
    if (match.found === 'one') return chosen.find(({ stream }) => stream === match.stream) as ChosenStream; // it is one of them
    const streams = chosen.map(({ asked }) => asked).join(', ');
    const known = match.found === 'none' ? ` This sandbox was started with: ${streams}.` : '';
    throw new SandboxError(argument, `${explainMatch(name, match)}${known}`);
  };
  return {
    find,
    /** As `find`, but only streams whose reports are pushed. */
    findPushed: (argument: string, name: unknown): ChosenStream => {
      const found = find(argument, name);
      if (!found.isSimulated) return found;
      throw new SandboxError(
        argument,
        `${found.asked} follows a simulated price: use advance. To push its reports, list it in streams instead of simulated.`,
      );
    },
  };
}
