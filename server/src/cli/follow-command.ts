// The command `sealpost follow`: a copy of another server's reports through its public API, from a moment on and then for good.
import type { Client } from '@sealpost/client';
import { type FeedId, parseSignerSets, parseStream, type Stream } from '@sealpost/protocol';
import type { Command } from 'commander';
import type { ResolvedSettings } from '../config.ts';
import { reportLines } from '../ingest/sources/follow.ts';
import { addExamples, addSettings, type RawOptions, readSettings } from './command-options.ts';
import { addUserOptions, parseServerUrl, readUser } from './credentials.ts';
import { formatNumberOf, formatSecond } from './formats.ts';
import { ingestLines, ingestSettings, reportResults } from './ingest-lines.ts';
import { explainRemote, findRemoteFeeds } from './remote-client.ts';
import type { Session } from './session.ts';
import { registerSignerSets } from './signers-command.ts';
import { withStore } from './store-access.ts';
import { registerStreams } from './stream-command.ts';
import { parseTime, timeForms } from './time-arguments.ts';

const about = `
Every report passes the same checks as one that is ingested: its signatures count, not where it comes from. So its stream and its signer
set must be registered here; --adopt registers those of the other server first, which means to trust whom it trusts.

Stopped and started again, it goes on after the newest report of the stream that is furthest behind. Ctrl-C ends it with 130.`;

export const addFollowCommand = (program: Command, session: Session): void => {
  const command = program
    .command('follow')
    .description('Copy the reports of another server through its API, and keep up with it.')
    .argument('<URL>', 'server to copy from, such as https://streams.example.com')
    .argument('[FEED...]', 'feed ids or names (default: every stream that the user may read there)')
    .option('--from <time>', `first observation (default: where the store ends, else now): ${timeForms}`)
    .option('--adopt', 'register the streams and signer sets of the other server here first')
    .option(
      '--to <url>',
      'send the reports to the private listener of a running server instead of writing to the store',
    )
    .option('--json', 'print the result of each report as NDJSON, then {"summary": {…}}')
    .addHelpText('after', about)
    .action((url: string, feeds: readonly string[], options: RawOptions) => follow(session, url, feeds, options));
  addUserOptions(command);
  addSettings(command, ingestSettings);
  addExamples(command, [
    [
      'The demo, from an hour ago',
      'sealpost follow http://127.0.0.1:7401 --profile demo --from -1h --adopt --store ./copy',
    ],
    [
      'Two streams, into a running server',
      'sealpost follow https://streams.example.com BTC/USD ETH/USD --to http://127.0.0.1:7402',
    ],
  ]);
};

const follow = async (
  session: Session,
  rawUrl: string,
  feeds: readonly string[],
  options: RawOptions,
): Promise<void> => {
  const settings = await readSettings(session, options);
  const url = parseServerUrl('URL', rawUrl);
  const signal = session.interruption();
  const client = (await readUser(session, options)).openClient(url, session);
  const feedIds = (await findRemoteFeeds(client, url, feeds, signal)).map(({ feedId }) => feedId);
  if (options.adopt === true) await explainRemote(url, () => adopt(session, client, feedIds, settings));
  const from = await findStart(session, settings, feedIds, options);
  session.stderr.write(
    `Following ${formatNumberOf(feedIds.length, 'stream')} of ${url.host} from ${formatSecond(from)} on.\n`,
  );
  let newest = from;
  const reports = client.stream(feedIds, { from, signal });
  const told = (async function* () {
    for await (const report of reports) {
      newest = Math.max(newest, report.observationsTimestamp);
      yield report;
    }
  })();
  try {
    const results = await ingestLines(session, settings, options, reportLines(told));
    await explainRemote(url, () =>
      reportResults(session, options, results, signal, (count) => ({
        fraction: undefined,
        count,
        label: `reports, up to ${formatSecond(newest)}`,
      })),
    );
  } finally {
    reports.close();
  }
};

/** Registers what the other server publishes of these streams, and its signer sets. Known records of ours are brought up to date. */
const adopt = async (
  session: Session,
  client: Client,
  feedIds: readonly FeedId[],
  { values }: ResolvedSettings,
): Promise<void> => {
  const { feeds } = await client.discovery({ hidden: true });
  const wanted = new Set<string>(feedIds);
  const streams = feeds.filter(({ feedId }) => wanted.has(feedId)).map((entry): Stream => parseStream(entry));
  const { signers } = await client.signers();
  const detail = { adopted: true };
  await registerStreams(session, values.store, streams, values.network, detail);
  await registerSignerSets(session, values.store, [...parseSignerSets(signers).values()], detail);
};

/** Where to begin: as told, or after the newest report of the stream that is furthest behind, or now. */
const findStart = async (
  session: Session,
  { values }: ResolvedSettings,
  feedIds: readonly FeedId[],
  options: RawOptions,
): Promise<number> => {
  const nowSeconds = Math.floor(session.nowMs() / 1_000);
  if (options.from !== undefined) return parseTime('--from', String(options.from), nowSeconds);
  if (options.to !== undefined) return nowSeconds;
  const newest = await withStore(values.store, async ({ reports }) =>
    feedIds.flatMap((feedId) => reports.latest(feedId)?.observationsMs ?? []),
  ).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'store_not_found') return [];
    throw error;
  });
  return newest.length === 0 ? nowSeconds : Math.floor(Math.min(...newest) / 1_000) + 1;
};
