// A sandbox inside of a test: a node of its own, with a client, an account, and control over reports, time and faults.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, type ClientOptions, createClient } from '@sealpost/client';
import { type FeedId, type ReportJson, type RouteName, routes, type SignerSetsJson } from '@sealpost/protocol';
import {
  createNetwork,
  createScenarioSimulation,
  createSimulation,
  type Network,
  type NetworkOptions,
} from '@sealpost/simulator';
import { advanceTime, moveTime, type Source, startSimulated } from './advance.ts';
import {
  checkPushOptions,
  compileScenario,
  durationSeconds,
  type EmbeddedSandbox,
  type Fault,
  FaultError,
  inRow,
  type LoggedRequest,
  openEmbeddedSandbox,
  type Price,
  type PushOptions,
  readSeries,
  rowError,
  SandboxError,
  type SeriesRow,
  type SignReport,
  type TrackedFault,
  unexpected,
} from './embedded.ts';
import {
  asSandboxError,
  type Choices,
  type ChosenScenario,
  type ChosenStream,
  createStreamNames,
  type Duration,
  readOptions,
  type SandboxOptions,
} from './options.ts';

/** A fault that is set. `matched` and `applied` count: how often it could have acted, and how often it did. */
export type SandboxFault = {
  readonly id: string;
  readonly matched: number;
  readonly applied: number;
  /** Removes the fault. */
  readonly clear: () => void;
  readonly [Symbol.dispose]: () => void;
};

/** An account of its own. */
export type SandboxAccount = { readonly userId: string; readonly secret: string; readonly client: Client };

export type Sandbox = {
  /** Base URL of the API, `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** The same for WebSockets, `ws://127.0.0.1:PORT`. */
  readonly wsUrl: string;
  readonly userId: string;
  readonly secret: string;
  /** The accounts of the option `accounts`, by name. */
  readonly accounts: Readonly<Record<string, SandboxAccount>>;
  /** A client with these credentials. Its live streams end when the sandbox closes. */
  readonly client: Client;
  /** Another one, with options of your own. */
  readonly createClient: (options?: Omit<ClientOptions, 'baseUrl' | 'baseUrls'>) => Client;
  readonly feedId: (stream: string) => FeedId;
  /** The signer sets that reports verify against, as `verify` of @sealpost/client takes them. A rotation adds one. */
  readonly signers: SignerSetsJson;
  /** Sandbox time. */
  readonly now: () => Date;
  /** Signs and serves a report. Resolves, with the report, once it can be read and was sent to live connections. */
  readonly push: (stream: string, price: Price, options?: PushOptions) => Promise<ReportJson>;
  /** Pushes a series of prices, each at its time: CSV text, the URL of a CSV file, or rows. Resolves with the reports. */
  readonly pushSeries: (series: Series) => Promise<readonly ReportJson[]>;
  /** Moves sandbox time, and signs and serves the reports of simulated streams up to then. Streams that you push to get none. */
  readonly advance: (duration: Duration) => Promise<void>;
  /** Sets a fault: a line such as `'status=503,count=2'`, or the same as an object. */
  readonly fault: (fault: string | Fault) => SandboxFault;
  /** Removes all faults. */
  readonly clearFaults: () => void;
  /** Events of the scenario that could not happen, such as a fault whose ID is taken by then. */
  readonly problems: readonly string[];
  /** The last 1,000 requests, oldest first. */
  readonly requests: readonly LoggedRequest[];
  /** Those of one route, such as `reportLatest`. */
  readonly requestsTo: (route: RouteName) => readonly LoggedRequest[];
  readonly clearRequests: () => void;
  /** Resolves once so many live connections (1 by default) are subscribed to a stream; rejects after 5 s. */
  readonly subscribed: (stream: string, count?: number) => Promise<void>;
  /** Ends everything; resolves when nothing is left. */
  readonly close: () => Promise<void>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** Starts a sandbox; it serves when this resolves, and nothing is left if this rejects. */
export const startSandbox = (options: SandboxOptions): Promise<Sandbox> => keepingAlive(() => start(options));

const start = async (options: SandboxOptions): Promise<Sandbox> => {
  const choices = readOptions(options, Date.now());
  const simulated = await simulate(choices);
  const network = await createNetwork({ seed: choices.seed, ...choices.size });
  const source = simulated?.source;
  const folder = choices.store === 'folder' ? await mkdtemp(join(tmpdir(), 'sealpost-testing-')) : undefined;
  const removeFolder = async (): Promise<void> => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  };
  let node: EmbeddedSandbox | undefined;
  try {
    node = await openNode(choices, network, simulated?.sign ?? network.sign, folder);
    if (source !== undefined) await startSimulated(node, source, choices.startMs);
    return composeSandbox(node, choices.streams, source, removeFolder);
  } catch (error) {
    await node?.close();
    await removeFolder();
    throw error;
  }
};

type Simulated = { readonly source: Source; readonly sign: SignReport };

const simulate = async ({ streams, seed, size, scenario, startMs }: Choices): Promise<Simulated | undefined> => {
  if (scenario !== undefined) return simulateScenario(scenario, { seed, ...size }, startMs / 1_000);
  const feedIds = streams.filter(({ isSimulated }) => isSimulated).map(({ stream }) => stream.feedId);
  if (feedIds.length === 0) return undefined;
  const simulation = await createSimulation({ seed, ...size, feedIds });
  return { source: { ...simulation, acts: [], pastSeconds: 0 }, sign: simulation.network.sign };
};

const simulateScenario = async (
  { scenario, specs }: ChosenScenario,
  network: NetworkOptions,
  startSecond: number,
): Promise<Simulated> => {
  const simulation = await createScenarioSimulation({ ...network, streams: specs, startSecond, effects: [] });
  const streams = simulation.streams.map(({ stream }) => stream);
  const compiled = compile({ scenario, startSecond, streams, specs });
  await simulation.add(compiled.flatMap(({ effects }) => effects));
  const acts = compiled.flatMap((event) => event.acts).sort((a, b) => a.second - b.second);
  return {
    source: { ...simulation, acts, pastSeconds: durationSeconds(scenario.past ?? '0s') ?? 0 },
    sign: (body, epochAndRound, configDigest) =>
      simulation
        .networks()
        .find(({ signerSet }) => signerSet.configDigest === configDigest)
        ?.sign(body, epochAndRound),
  };
};

const compile = (parts: Parameters<typeof compileScenario>[0]) => {
  try {
    return compileScenario(parts);
  } catch (error) {
    throw asSandboxError(error);
  }
};

const openNode = (choices: Choices, { signerSet }: Network, sign: SignReport, folder: string | undefined) =>
  openEmbeddedSandbox({
    ...choices,
    streams: choices.streams.map(({ stream }) => stream),
    signerSet,
    sign,
    folder,
  });

const composeSandbox = (
  node: EmbeddedSandbox,
  streams: readonly ChosenStream[],
  source: Source | undefined,
  removeFolder: () => Promise<void>,
): Sandbox => {
  const { url, userId, secret, clock, faults } = node;
  const names = createStreamNames(streams);
  const pushReport = ({ stream }: ChosenStream, price: Price, options: PushOptions) => {
    checkPushOptions(options);
    const moveTo = (ms: number) => moveTime(node, source, ms);
    return node.push({ stream, price, options, moveTo });
  };
  const seriesParts = {
    nowMs: clock.nowMs,
    find: (stream: string) => names.findPushed('stream', stream),
    push: async (...pushed: Parameters<typeof pushReport>) => pushReport(...pushed),
  };
  const closing = new AbortController();
  const inTurn = createTurns(closing.signal);
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= (async () => {
      closing.abort();
      try {
        await node.close();
      } finally {
        await removeFolder();
      }
    })();
    return closed;
  };
  const newClient: Sandbox['createClient'] = (own = {}) =>
    endingWith(closing.signal, createClient({ userId, secret, ...own, baseUrl: url }));
  return {
    url,
    wsUrl: url.replace(/^http/, 'ws'),
    userId,
    secret,
    accounts: Object.fromEntries(
      node.accounts.map(({ name, ...own }) => [name, { ...credentialsOf(own), client: newClient(credentialsOf(own)) }]),
    ),
    client: newClient(),
    createClient: newClient,
    feedId: (stream) => names.find('stream', stream).stream.feedId,
    get signers() {
      return node.signers();
    },
    now: () => new Date(clock.nowMs()),
    push: (stream, price, options = {}) =>
      inTurn(async () => pushReport(names.findPushed('stream', stream), price, options)),
    pushSeries: (series) => inTurn(() => pushSeries(series, seriesParts)),
    advance: (duration) => inTurn(() => advanceTime(node, source, duration)),
    fault: (fault) => {
      if (closing.signal.aborted) throw closedError();
      return setFault(node, fault);
    },
    clearFaults: faults.clear,
    get problems() {
      return node.problems();
    },
    get requests() {
      return faults.requests();
    },
    requestsTo: (route) => {
      if (!Object.hasOwn(routes, route)) throw unexpected('route', route, `one of ${Object.keys(routes).join(', ')}`);
      return faults.requests().filter((request) => request.route === route);
    },
    clearRequests: faults.clearRequests,
    subscribed: (stream, count = 1) => waitForSubscribers(node, names.find('stream', stream), count, closing.signal),
    close,
    [Symbol.asyncDispose]: close,
  };
};

const credentialsOf = ({ userId, secret }: Pick<Sandbox, 'userId' | 'secret'>) => ({ userId, secret });

const closedError = (options?: ErrorOptions): SandboxError =>
  new SandboxError('sandbox', 'The sandbox is closed. Start another one.', options);

/** Keeps the process alive until the act is done, since nothing of a sandbox does. */
const keepingAlive = async <T>(act: () => Promise<T>): Promise<T> => {
  const hold = setInterval(() => {}, 60_000);
  try {
    return await act();
  } finally {
    clearInterval(hold);
  }
};

/** One at a time, in the order of the calls. Whatever fails once the sandbox closes fails because of that. */
const createTurns = (closing: AbortSignal) => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(act: () => Promise<T>): Promise<T> => {
    const turn = last.then(async () => {
      if (closing.aborted) throw closedError();
      try {
        return await keepingAlive(act);
      } catch (cause) {
        throw closing.aborted ? closedError({ cause }) : cause;
      }
    });
    last = turn.catch(() => {});
    return turn;
  };
};

/** The signals that others come from: on Node 20 `AbortSignal.any` does not hold them, and a timeout that nobody else holds never fires. */
const sources = new WeakMap<AbortSignal, AbortSignal>();

/** A client whose live streams end with the sandbox: a stream reconnects for as long as it is read, and would keep the process alive. */
const endingWith = (closing: AbortSignal, client: Client): Client => ({
  ...client,
  stream: (feedIds, options = {}) => {
    if (options.signal === undefined) return client.stream(feedIds, { ...options, signal: closing });
    const signal = AbortSignal.any([closing, options.signal]);
    sources.set(signal, options.signal);
    return client.stream(feedIds, { ...options, signal });
  },
});

const setFault = ({ faults }: EmbeddedSandbox, fault: unknown): SandboxFault => {
  const { listed, remove } = addFault(faults, fault);
  const clear = (): void => void remove();
  return {
    id: listed().id,
    get matched() {
      return listed().matched;
    },
    get applied() {
      return listed().applied;
    },
    clear,
    [Symbol.dispose]: clear,
  };
};

const addFault = (faults: EmbeddedSandbox['faults'], fault: unknown): TrackedFault => {
  try {
    return faults.addTracked(fault);
  } catch (error) {
    if (error instanceof FaultError) throw new SandboxError(`fault.${error.field}`, error.message, { cause: error });
    throw error;
  }
};

const subscribedMaxMs = 5_000;
const subscribedLookMs = 5;

const waitForSubscribers = async (
  node: EmbeddedSandbox,
  { stream, asked }: ChosenStream,
  count: number,
  closing: AbortSignal,
): Promise<void> => {
  if (!Number.isInteger(count) || count < 1) throw unexpected('count', count, 'a whole number from 1 on');
  const deadlineMs = performance.now() + subscribedMaxMs;
  while (node.subscribers(stream.feedId) < count) {
    if (closing.aborted) throw new SandboxError('sandbox', 'The sandbox was closed.');
    if (performance.now() > deadlineMs)
      throw new SandboxError(
        'stream',
        `${asked} has ${node.subscribers(stream.feedId)} live connections after ${subscribedMaxMs / 1_000} s, expected ${count}.`,
      );
    await new Promise((resolve) => setTimeout(resolve, subscribedLookMs));
  }
};

export type Series = string | URL | readonly SeriesRow[];

type SeriesParts = {
  readonly nowMs: () => number;
  readonly find: (stream: string) => ChosenStream;
  readonly push: (stream: ChosenStream, price: Price, options: PushOptions) => Promise<ReportJson>;
};

/** Pushes each price at its time. Nothing is pushed if a row cannot be read or names a stream that there is not. */
export async function pushSeries(series: Series, { nowMs, find, push }: SeriesParts): Promise<readonly ReportJson[]> {
  const rows = readSeries(series instanceof URL ? await readFile(series, 'utf8') : series, nowMs());
  const streams = rows.map(({ where, stream }) => inRow(where, () => find(stream)));
  const reports: ReportJson[] = [];
  for (const [i, { where, price, options, ms }] of rows.entries()) {
    const pushing = push(streams[i] as ChosenStream, price, { ...options, at: new Date(ms) }); // one for each row
    reports.push(await pushing.catch((error: unknown) => Promise.reject(rowError(where, error))));
  }
  return reports;
}
