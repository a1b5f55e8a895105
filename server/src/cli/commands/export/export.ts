// The command `sealpost export`: the reports of streams on stdout or in files, as they were signed or with their fields decoded.
import { resolve } from 'node:path';
import { hidePassword } from '../../../runtime/urls.ts';
import { type PlainCommand, settingOptions } from '../../command.ts';
import { type RawOptions, readSettings } from '../../command-options.ts';
import { accessOptions, readAccess } from '../../credentials.ts';
import { usageError } from '../../failure.ts';
import { explainRemote, serverAddress } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { withStore } from '../../store-access.ts';
import { feedForms } from '../../stream-argument.ts';
import { timeForms } from '../../time-arguments.ts';
import { type ExportArguments, formatNames, parseArguments } from './arguments.ts';
import { runExport } from './run.ts';
import { createServerSource, createStoreSource } from './source.ts';

export const exportCommand: PlainCommand = {
  name: 'export',
  summary:
    'Write the reports of streams to stdout or files, in order of observation; from the store, or from a server with --url or --profile.',
  arguments: [{ name: '[FEED...]', help: feedForms }],
  options: [
    { flag: '--all', help: 'all streams of the store, or all that you may read on the server' },
    { flag: '--from <time>', help: 'first observation (default: the oldest)' },
    { flag: '--to <time>', help: 'last observation, included (default: the newest)' },
    { flag: '--format <format>', help: 'output format', default: 'ndjson', choices: formatNames },
    { flag: '--json', help: 'the same as --format ndjson' },
    { flag: '--decoded', help: 'fields instead of signed reports in NDJSON; CSV and Parquet always have fields' },
    { flag: '--raw', help: 'prices, amounts and fees as the signed integers, times 10^18' },
    { flag: '--full-report', help: 'add the signed report to the fields' },
    {
      flag: '--out <folder>',
      help: 'write a file per stream and day in UTC; run again to resume or to add newer reports',
    },
    ...accessOptions,
    ...settingOptions(['store']),
  ],
  about: `Times are ${timeForms}.`,
  examples: [
    [
      'Copy a stream into another store',
      'sealpost export BTC/USD-Streams-CexPrice | sealpost ingest - --store ./other',
    ],
    ['Last hour, for a spreadsheet', 'sealpost export BTC/USD-Streams-CexPrice --from -1h --format csv > hour.csv'],
    ['Everything, for DuckDB or pandas', 'sealpost export --all --format parquet --out ./prices'],
    [
      'Last day of two streams from a server',
      'sealpost export LINK/USD SOL/USD --url https://streams.example.com --from -1d --format parquet --out ./day',
    ],
  ],
  run: async ({ session, options }, feeds: readonly string[]) => {
    const args = parseArguments(feeds, options, Math.floor(session.nowMs() / 1_000));
    const isRemote = [options.url, options.profile, options.profiles].some((option) => option !== undefined);
    await (isRemote ? exportServer : exportStore)(session, options, args);
  },
};

const exportStore = async (session: Session, options: RawOptions, args: ExportArguments): Promise<void> => {
  const { store: url } = (await readSettings(session, options)).values;
  const signal = session.interruption();
  const origin = /^postgres(ql)?:/.test(url)
    ? hidePassword(url)
    : `store ${resolve(session.cwd, url.replace(/^lmdb:/, ''))}`;
  await withStore(url, (store) =>
    runExport(args, { session, source: createStoreSource(store, signal), origin, signal }),
  );
};

const exportServer = async (session: Session, options: RawOptions, args: ExportArguments): Promise<void> => {
  if (options.store !== undefined) throw usageError('--store cannot be combined with --url or --profile.');
  const { url, openClient } = await readAccess(session, options);
  const signal = session.interruption();
  const source = createServerSource(openClient, url, session, signal);
  await explainRemote(url, () => runExport(args, { session, source, origin: serverAddress(url), signal }));
};
