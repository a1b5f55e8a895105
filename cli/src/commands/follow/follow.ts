// The command `sealpost follow`: a copy of another server's reports through its public API, from a second on and then live.
import { oneLine } from '@sealpost/protocol';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { SettingsCommand } from '../../command.ts';
import type { RawOptions } from '../../command-options.ts';
import { parseServerUrl, readUser, readWsUrl, userOptions, wsUrlOption } from '../../credentials.ts';
import { formatSecond } from '../../formats.ts';
import { explainRemote } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { parseTime, timeForms } from '../../time-arguments.ts';
import { ingestSettings, reportResults } from '../ingest/lines.ts';
import { openMirrorCatalog } from './catalog.ts';
import { runMirror } from './mirror.ts';
import { createPacedFetch } from './paced-fetch.ts';
import { sleepUntil } from './session.ts';
import { openMirrorTarget } from './target.ts';

const about = `Reports pass the same checks as with sealpost ingest, so their streams and signer sets must be registered at the target. --adopt registers
those of the other server, now and as they change: that server then decides whose signatures are trusted, so use it between deployments of
one operator. --catalog and --signers register those of files instead.

You can stop and restart it at any time: each stream resumes after its newest report at the target, which also stores --from. If either side
fails, it retries. Ctrl-C exits with 130.`;

export const followCommand: SettingsCommand = {
  name: 'follow',
  summary: 'Mirror another server: copy its reports through its API, then follow it live.',
  arguments: [
    { name: '<URL>', help: 'server to copy from, such as https://streams.example.com' },
    { name: '[FEED...]', help: 'feed IDs, names or pairs (default: every stream that the user may read there)' },
  ],
  options: [
    { flag: '--from <time>', help: `first observation, stored for each stream (default: now): ${timeForms}` },
    { flag: '--restart', help: 'discard the stored start and copy everything from --from again' },
    { flag: '--adopt', help: 'register the streams and signer sets of the other server, now and as they change' },
    { flag: '--catalog <file>', help: 'register the streams of this catalog.json instead' },
    { flag: '--signers <file>', help: 'register the signer sets of this signers.json instead' },
    {
      flag: '--to <url>',
      help: 'send the reports to the private listener of a running server instead of writing to the store',
    },
    { flag: '--json', help: 'print the result of each report as NDJSON, then {"summary": {…}}' },
    ...userOptions,
    wsUrlOption,
  ],
  settings: ingestSettings,
  about,
  examples: [
    [
      'Mirror the demo, starting an hour ago',
      'sealpost follow http://127.0.0.1:7401 --profile demo --from -1h --adopt --store ./copy',
    ],
    [
      'Mirror two streams into a running server',
      'sealpost follow https://streams.example.com BTC/USD ETH/USD --to http://127.0.0.1:7402',
    ],
    [
      'A server that publishes neither catalog nor signers',
      'sealpost follow https://streams.example.com 0x0003… --catalog catalog.json --signers signers.json',
    ],
  ],
  run: async ({ session, options, settings, resolved }, rawUrl: string, feeds: readonly string[]) => {
    const url = parseServerUrl('URL', rawUrl);
    const signal = session.interruption();
    const nowSeconds = Math.floor(session.nowMs() / 1_000);
    const from = options.from === undefined ? undefined : parseTime('--from', String(options.from), nowSeconds);
    const user = await readUser(session, options, url);
    const client = user.openClient(url, session, {
      fetch: createPacedFetch(
        fetch,
        () => performance.now(),
        (ms) => sleepUntil(ms, signal),
      ),
      wsUrl: readWsUrl(session, options, url, user),
    });
    const parts = { session, client, url, network: settings.network, signal };
    const catalog = await openMirrorCatalog(parts, feeds, options);
    const target = await openMirrorTarget(session, resolved, options);
    const tell = (text: string) => void session.stderr.write(`${oneLine(text)}\n`);
    const { nowMs } = session;
    const restart = options.restart === true;
    const results = runMirror({ url, client, target, catalog, from, restart, nowMs, signal, tell });
    try {
      await explainRemote(url, () => report(session, options, results, signal));
    } finally {
      await target.close();
    }
  },
};

const report = (
  session: Session,
  options: RawOptions,
  results: AsyncIterable<readonly LineResult[]>,
  signal: AbortSignal,
): Promise<void> => {
  let newest = 0;
  const seen = (async function* () {
    for await (const batch of results) {
      newest = Math.max(newest, ...batch.map(({ observationsTimestamp }) => observationsTimestamp ?? 0));
      yield batch;
    }
  })();
  return reportResults(session, options, seen, signal, (count) => ({
    fraction: undefined,
    count,
    label: `reports, up to ${formatSecond(newest)}`,
  }));
};
