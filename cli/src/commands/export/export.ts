// The command `sealpost export`: the reports of streams on stdout or in files, as they were signed or with their fields decoded.
import { resolve } from 'node:path';
import { secondsMax } from '@sealpost/protocol';
import { hidePassword } from '@sealpost/server/runtime/urls';
import { type PlainCommand, settingOptions } from '../../command.ts';
import { type RawOptions, readSettings } from '../../command-options.ts';
import { accessOptions, readAccess } from '../../credentials.ts';
import { usageError } from '../../failure.ts';
import { explainRemote, serverAddress } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { withStore } from '../../store-access.ts';
import { feedForms } from '../../stream-argument.ts';
import { parseSpan, timeForms } from '../../time-arguments.ts';
import { type ExportArguments, type FormatName, formatNames, runExport } from './run.ts';
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

/** Reads the arguments; throws a usage error that names what does not fit together. */
const parseArguments = (feeds: readonly string[], options: RawOptions, nowSeconds: number): ExportArguments => {
  const [format, out] = [parseFormat(options), options.out === undefined ? undefined : String(options.out)];
  if (feeds.length === 0 && !options.all) throw usageError('No stream is given. Name streams, or use --all.');
  if (feeds.length > 0 && options.all) throw usageError('--all cannot be combined with names of streams.');
  if (format === 'parquet' && out === undefined) throw usageError('--format parquet needs --out FOLDER.');
  if (out === '') throw usageError('--out is empty, expected a folder.');
  const isDecoded = options.decoded === true || format !== 'ndjson';
  for (const [flag, isGiven] of [
    ['--raw', options.raw],
    ['--full-report', options.fullReport],
  ] as const)
    if (isGiven && !isDecoded) throw usageError(`${flag} needs --decoded.`);
  const { from, to } = parseSpan(options, { from: 0, to: secondsMax }, nowSeconds);
  return {
    feeds,
    format,
    out,
    isDecoded,
    isRaw: options.raw === true,
    hasFullReport: options.fullReport === true,
    span: { from, to },
    times: { from: textOf(options.from), to: textOf(options.to) },
  };
};

const textOf = (option: unknown): string | null => (option === undefined ? null : String(option));

const parseFormat = ({ format, json }: RawOptions): FormatName => {
  if (json && format !== 'ndjson') throw usageError(`--json cannot be combined with --format ${format}.`);
  const known = formatNames.find((name) => name === format);
  if (known !== undefined) return known;
  throw usageError(`--format has the value "${format}", expected ${formatNames.join(', ')}.`);
};
