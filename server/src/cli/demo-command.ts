// The command `sealpost demo`: a whole service on this machine with a simulated oracle network, every part of it the real one.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Settings } from '../config.ts';
import { type Node, openNode } from '../node.ts';
import { startThread } from '../threads.ts';
import { addExamples, addSettings, parseCount, type RawOptions, readSettings } from './command-options.ts';
import type { DemoBatch, DemoThreadOptions } from './demo-thread.ts';
import {
  type DemoWorld,
  demoFeedIds,
  demoKeyFile,
  demoProfilesFile,
  openDemoWorld,
  registerDemo,
  writeDemoProfile,
} from './demo-world.ts';
import { createProgress } from './progress.ts';
import { printJson, type Session } from './session.ts';
import { readVersion } from './version.ts';

const recentSeconds = 120;
const pastMinutesMax = 1_440;
const demoBytesMax = 2 * 2 ** 30;

export const addDemoCommand = (program: Command, session: Session): void => {
  const command = program
    .command('demo')
    .description('Run the whole service with a simulated oracle network: nothing to set up.')
    .option('--dir <folder>', 'where the demo keeps its store, key and credentials', './data')
    .option('--port <port>', 'of the API; 0 takes a free one, and so does the private listener then', '7401')
    .option('--past <minutes>', 'how much of the past is signed in the background', '60')
    .option('--json', 'print one line of JSON when ready, and nothing else')
    .action((options: RawOptions) => demo(session, options));
  addSettings(command, ['store', 'requestsPerSecond', 'logLevel']);
  addExamples(command, [
    ['As it comes', 'sealpost demo'],
    [
      'For tests: any port, a folder of its own, no limits',
      'sealpost demo --json --port 0 --dir /tmp/demo --past 5 --rate-limit 0',
    ],
  ]);
};

const demo = async (session: Session, options: RawOptions): Promise<void> => {
  const folder = resolve(String(options.dir));
  const port = parseCount('--port', String(options.port), 0, 65_535);
  const pastSeconds = 60 * parseCount('--past', String(options.past), recentSeconds / 60, pastMinutesMax);
  const { values } = await readSettings(session, options);
  const world = openDemoWorld(folder);
  const settings: Settings = {
    ...values,
    // Only as a flag: a variable may name a store that is no playground.
    store: options.store === undefined ? `lmdb:${folder}` : values.store,
    keyFile: demoKeyFile(folder),
    key: undefined,
    network: 'testnet',
    listen: { host: '127.0.0.1', port },
    ingestListen: { host: '127.0.0.1', port: port === 0 ? 0 : port + 1 },
    retentionBytes: demoBytesMax,
    logLevel: options.logLevel === undefined ? 'warn' : values.logLevel,
  };
  const signal = session.interruption();
  const node = await openNode({
    settings,
    version: readVersion(),
    ingestToken: world.ingestToken,
    logTo: { write: (line) => void session.stderr.write(line) },
  });
  await registerDemo(node.write.store, folder, world, session.nowMs());
  writeDemoProfile(folder, node.url, world);
  const stopFeed = await feed(session, node, world, pastSeconds, options.json === true, () =>
    announce(session, node, folder, world, settings.explorer, options.json === true),
  );
  await new Promise<void>((done) => {
    if (signal.aborted) done();
    signal.addEventListener('abort', () => done(), { once: true });
  });
  await stopFeed();
  await node.stop(String(signal.reason));
};

/** Feeds the node from the simulator's thread; calls back once the last minutes are in. */
const feed = async (
  session: Session,
  node: Node,
  world: DemoWorld,
  pastSeconds: number,
  quiet: boolean,
  onReady: () => Promise<void>,
): Promise<() => Promise<void>> => {
  const now = Math.floor(session.nowMs() / 1_000);
  const newest =
    Math.max(
      0,
      ...demoFeedIds(node.write.store, node.write.view.current().streams.values()).map(
        (feedId) => node.write.store.reports.latest(feedId)?.observationsMs ?? 0,
      ),
    ) / 1_000;
  const known = newest > now - pastSeconds;
  const workerData: DemoThreadOptions = {
    seed: world.seed,
    now,
    recentFrom: Math.max(now - recentSeconds, known ? newest + 1 : 0),
    pastFrom: known ? Math.max(now - pastSeconds, newest + 1) : now - pastSeconds,
  };
  const thread = startThread('./demo-thread', import.meta.url, workerData);
  const bar = createProgress(session.stderr);
  let past = 0;
  let underWay = Promise.resolve();
  const take = async ({ part, lines, last }: DemoBatch): Promise<void> => {
    if (lines.length > 0) await node.write.ingest.submit(lines, 1);
    if (part === 'past') past += lines.length;
    if (part === 'past' && !quiet && !last)
      bar.update({ fraction: undefined, count: past, label: 'reports of the past' });
    if (part === 'past' && last) bar.end();
    if (part === 'recent' && last) await onReady();
    thread.postMessage('taken');
  };
  thread.on('message', (batch: DemoBatch) => {
    underWay = Promise.allSettled([underWay, take(batch)]).then(() => {});
  });
  thread.on('error', (error) => session.stderr.write(`error: the simulated network has stopped: ${error.message}\n`));
  return async () => {
    await thread.terminate();
    await underWay;
  };
};

const announce = async (
  session: Session,
  node: Node,
  folder: string,
  { userId, secret }: DemoWorld,
  hasExplorer: boolean,
  json: boolean,
): Promise<void> => {
  const feedIds = demoFeedIds(node.write.store, node.write.view.current().streams.values());
  if (json) return printJson(session, { url: node.url, opsUrl: node.opsUrl, userId, secret, feedIds });
  const target = `/api/v1/reports/latest?feedID=${feedIds[0]}`;
  const profile = `--profile demo --profiles ${demoProfilesFile(folder)}`;
  await session.write(`
Sealpost is ready: ${feedIds.length} streams, signed live by a simulated network of 4 oracles.

${hasExplorer ? `Open it, signed in:\n\n  ${signInLink(node.url, userId, secret)}\n` : ''}
  API      ${node.url}
  private  ${node.opsUrl}  (/readyz /metrics)
  user id  ${userId}
  secret   ${secret}

Try it, in another terminal:

  curl -s --config <(npx sealpost sign GET '${target}' ${profile})
  npx sealpost watch ${profile}
  SEALPOST_URL=${node.url} SEALPOST_USER_ID=${userId} SEALPOST_SECRET=${secret} npx tsx --conditions=source examples/latest.ts

`);
};

/** Signs in through the fragment, which no browser sends and the page takes out of the address bar at once. */
const signInLink = (url: string, userId: string, secret: string): string =>
  `${url}/#sign-in=${userId}:${encodeURIComponent(secret)}`;
