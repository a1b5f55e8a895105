// The command `sealpost demo`: a whole service on this machine with a simulated oracle network, every part of it the real one.
import { resolve } from 'node:path';
import type { FeedId, Stream } from '@sealpost/protocol';
import { createSignInCode, createSignInCodes, signInCodeMs } from '@sealpost/server/access/sign-in-code';
import type { Settings } from '@sealpost/server/config/config';
import type { Node } from '@sealpost/server/node/node';
import { closeFailedStart, type StartWatch, watchStart } from '@sealpost/server/runtime/start-watch';
import { StoreError } from '@sealpost/server/store/store';
import { type PlainCommand, settingOptions } from '../../command.ts';
import { parseCount, type RawOptions, readSettings } from '../../command-options.ts';
import { CommandError, exitCodes } from '../../failure.ts';
import { formatNumberOf } from '../../formats.ts';
import { demoFiles, findProfile } from '../../profiles.ts';
import { printJson, type Session, untilAborted } from '../../session.ts';
import { readVersion } from '../../version.ts';
import { type DemoFeed, type FeedOptions, startFeed } from './feed.ts';
import {
  type DemoWorld,
  demoFeedIds,
  demoKeyFile,
  demoProfilesFile,
  openDemoWorld,
  registerDemo,
  writeDemoProfile,
} from './world.ts';

const pastMinutesMax = 1_440;

/** At most so much of its past is signed before the demo says that it is ready. */
const recentSecondsMax = 120;
const demoBytesMax = 2 * 2 ** 30;
const portMax = 65_534; // the private listener has the next one
const logLevelDefault = 'warn';

export const demoCommand: PlainCommand = {
  name: 'demo',
  summary: 'Run the whole service with a simulated oracle network. No setup needed.',
  options: [
    { flag: '--dir <folder>', help: 'folder for the store, key and credentials', default: `./${demoFiles.folder}` },
    {
      flag: '--port <port>',
      help: 'API port; the private listener uses the next one. 0 picks free ports',
      default: '7401',
    },
    {
      flag: '--past <minutes>',
      help: 'minutes of history to generate in the background',
      default: `${pastMinutesMax}`,
    },
    { flag: '--link', help: 'print a new sign-in link for the demo running in the folder, and exit' },
    { flag: '--json', help: 'print one line of JSON when ready, and nothing else' },
    ...settingOptions(['store', 'requestsPerSecond', 'origins', 'logLevel'], {
      store: 'the folder of --dir',
      logLevel: logLevelDefault,
    }),
  ],
  examples: [
    ['Start the demo', 'sealpost demo'],
    ['Get another sign-in link, in another terminal', 'sealpost demo --link'],
    [
      'For tests: free ports, a separate folder, no rate limits',
      'sealpost demo --json --port 0 --dir /tmp/demo --past 5 --requests-per-second 0',
    ],
  ],
  run: ({ session, options }) => demo(session, options),
};

const demo = async (session: Session, options: RawOptions): Promise<void> => {
  const folder = resolve(session.cwd, String(options.dir));
  if (options.link === true) return printLink(session, folder, options.json === true);
  const port = parseCount('--port', String(options.port), 0, portMax);
  const pastSeconds = 60 * parseCount('--past', String(options.past), 1, pastMinutesMax);
  const recentSeconds = Math.min(recentSecondsMax, pastSeconds);
  const { values, sources } = await readSettings(session, options);
  const world = openDemoWorld(folder);
  const isLogAsked = sources.logLevel !== 'default';
  const settings: Settings = {
    ...values,
    // Only as a flag: a variable may name a production store.
    store: options.store === undefined ? `lmdb:${folder}` : values.store,
    keyFile: demoKeyFile(folder),
    key: undefined,
    network: 'testnet',
    workers: 0, // this process takes each sign-in code once
    listen: { host: '127.0.0.1', port },
    opsListen: { host: '127.0.0.1', port: port === 0 ? 0 : port + 1 },
    retentionBytes: demoBytesMax,
    logLevel: isLogAsked ? values.logLevel : logLevelDefault,
  };
  const signal = session.interruption();
  const toStderr = (line: string): void => void session.stderr.write(line);
  const starting = watchStart((text) => toStderr(`${text}\n`));
  const json = options.json === true;
  const run = { session, signal, starting, folder, world, pastSeconds, recentSeconds, json };
  let feed: DemoFeed | undefined;
  try {
    const { openNode } = await import('@sealpost/server/node/node'); // its help does not load a server
    const node = await openNode({
      settings,
      version: readVersion(),
      ingestToken: world.ingestToken,
      logTo: { write: isLogAsked ? toStderr : createQuietLog(toStderr) },
      starting,
      hooks: {
        status: () => {
          const historyLoaded = feed?.historyLoaded();
          return historyLoaded === undefined ? {} : { historyLoaded };
        },
        signIn: {
          codes: createSignInCodes(world.secret, session.nowMs),
          credentials: { userId: world.userId, secret: world.secret },
        },
      },
    }).catch((error: unknown) => explainStart(error, folder));
    const onReady = (started: DemoFeed): Promise<void> => {
      feed = started;
      return announce(session, node, folder, world, settings.explorer, run.json);
    };
    await runDemo(node, run, onReady);
  } finally {
    starting.end();
  }
};

const probeMs = 2_000;

/** Explains a failed start: a demo is already running in this folder, or another program uses the port. */
const explainStart = async (error: unknown, folder: string): Promise<never> => {
  const { code, port } = Object(error);
  if (error instanceof StoreError && code === 'store_locked') {
    const url = await findRunning(folder);
    if (url !== undefined)
      throw new CommandError(
        exitCodes.unavailable,
        `A demo is already running in ${folder}: ${url}. Use it, or stop it first.`,
      );
  }
  if (code === 'EADDRINUSE') {
    const text = `Port ${port} is in use by another program. Stop it, or use free ports: sealpost demo --port 0.`;
    throw new CommandError(exitCodes.unavailable, text, { cause: error });
  }
  throw error;
};

/** The URL of the demo running in a folder; undefined if none is. */
const findRunning = async (folder: string): Promise<string | undefined> => {
  const url = (await findProfile(demoProfilesFile(folder), demoFiles.profile).catch(() => undefined))?.url;
  if (url === undefined) return undefined;
  const answer = await fetch(`${url}/time`, { signal: AbortSignal.timeout(probeMs) }).catch(() => undefined);
  return answer?.ok ? url : undefined;
};

const printLink = async (session: Session, folder: string, json: boolean): Promise<void> => {
  const profile = await findProfile(demoProfilesFile(folder), demoFiles.profile);
  const url = await findRunning(folder);
  if (profile?.secret === undefined || url === undefined)
    throw new CommandError(exitCodes.unavailable, `No demo is running in ${folder}. Start one with: sealpost demo.`);
  const link = signInLink(url, profile.secret, session.nowMs());
  await (json ? printJson(session, { link }) : session.write(`${link}\n`));
};

/** Passes log lines on, but slow commits once: while a day of history is written, a laptop's disk is slow every second. */
export function createQuietLog(write: (line: string) => void): (line: string) => void {
  let isTold = false;
  return (line) => {
    const isSlowCommit =
      (line.includes('"event":"committed"') && line.includes('"slow":true')) ||
      line.includes('"event":"suppressed","of":"committed"');
    if (!isSlowCommit) return write(line);
    if (!isTold) write('warning: slow disk: a commit took more than 1 s. Use --log-level warn to see each one.\n');
    isTold = true;
  };
}

type DemoRun = FeedOptions & {
  readonly signal: AbortSignal;
  readonly starting: StartWatch;
  readonly folder: string;
};

/** Feeds a node until the demo is interrupted, and stops it. Rejects when any part fails. */
const runDemo = async (node: Node, run: DemoRun, onReady: (feed: DemoFeed) => Promise<void>): Promise<void> => {
  try {
    await feedUntilInterrupted(node, run, onReady);
  } catch (error) {
    await closeFailedStart(() => node.stop('the demo failed'));
    throw error;
  }
  await node.stop(String(run.signal.reason));
};

const feedUntilInterrupted = async (
  node: Node,
  run: DemoRun,
  onReady: (feed: DemoFeed) => Promise<void>,
): Promise<void> => {
  const { session, signal, starting, folder, world } = run;
  const interrupted = untilAborted(signal);
  await starting.part('the demo account', () => registerDemo(node.write.store, folder, world, session.nowMs()));
  writeDemoProfile(folder, node.url, world);
  const feed = await startFeed(node, run);
  try {
    await starting.part('the first reports of the simulated network', () =>
      Promise.race([feed.ready, feed.failed, interrupted]),
    );
    starting.end();
    if (!signal.aborted) await onReady(feed);
    await Promise.race([feed.failed, interrupted]);
  } finally {
    await feed.stop();
  }
};

const announce = async (
  session: Session,
  node: Node,
  folder: string,
  { userId, secret }: DemoWorld,
  hasExplorer: boolean,
  json: boolean,
): Promise<void> => {
  const streams = [...node.write.view.current().streams.values()];
  const feedIds = demoFeedIds(node.write.store, streams);
  if (json) return printJson(session, { url: node.url, opsUrl: node.opsUrl, userId, secret, feedIds });
  // Commands in the folder that ./data is in find the demo's profile by themselves.
  const isFound = folder === resolve(session.cwd, demoFiles.folder);
  const profile = isFound ? '' : ` --profile ${demoFiles.profile} --profiles ${demoProfilesFile(folder)}`;
  // npm sets this for what it starts: then the command is in no PATH.
  const sealpost = session.env.npm_command === undefined ? 'sealpost' : 'npx sealpost';
  await session.write(`
Sealpost is ready: ${formatNumberOf(streams.length, 'stream')}, signed live by a simulated network of 4 oracles.
${describeReports(streams, feedIds)}
${hasExplorer ? `\nOpen the explorer, signed in:\n\n  ${signInLink(node.url, secret, session.nowMs())}\n\nThe link works once, for ${signInCodeMs / 60_000} minutes. Another one: ${sealpost} demo --link${isFound ? '' : ` --dir ${folder}`}\n` : ''}
  API      ${node.url}
  private  ${node.opsUrl}  (/readyz /metrics)

In another terminal${isFound ? ', in the same folder' : ''}:

  ${sealpost} watch${profile}
  ${sealpost} report latest LINK/USD${profile}

For code, curl and other folders:

  export SEALPOST_URL=${node.url}
  export SEALPOST_USER_ID=${userId}
  export SEALPOST_SECRET=${secret}
  curl -s --config <(${sealpost} sign GET /api/v1/feeds)

`);
};

/** How many streams have reports, and why the others have none. */
const describeReports = (streams: readonly Stream[], feedIds: readonly FeedId[]): string => {
  const others = streams.filter(({ feedId }) => !feedIds.includes(feedId));
  if (others.length === 0) return 'All of them have reports.';
  const ended = others.filter(({ status }) => status === 'decommissioned').map(({ name }) => name);
  const why =
    ended.length === others.length
      ? `${ended.join(', ')} ${ended.length === 1 ? 'is' : 'are'} decommissioned`
      : 'the others have none yet';
  return `${feedIds.length} have reports; ${why}.`;
};

/** Signs in once by a code in the fragment: the address in a browser's history is useless (D154). */
export const signInLink = (url: string, secret: string, nowMs: number): string =>
  `${url}/#sign-in=${createSignInCode(secret, nowMs)}`;
