// The command `sealpost report`: reads reports of a server. Decoding and verifying are in inspection.ts, calldata in calldata.ts.
import { type CallOptions, type Client, decode, formatDecimal, SealpostError, type TimeRange } from '@sealpost/client';
import { limits, type ReportJson, secondsMax, timeResolutionOf } from '@sealpost/protocol';
import type { CommandGroup, OptionRow, PlainCommand } from '../../command.ts';
import { parseCount, type RawOptions } from '../../command-options.ts';
import { accessOptions, readAccess } from '../../credentials.ts';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { type Column, formatDuration, formatSecond, renderTable, toJsonLine, withoutControls } from '../../formats.ts';
import { explainRemote, type RemoteFeed, readRemoteFeeds } from '../../remote-client.ts';
import { printJson, type Session } from '../../session.ts';
import { feedForms } from '../../stream-argument.ts';
import { parseSpan, parseTime, timeForms } from '../../time-arguments.ts';
import { calldataCommand } from './calldata.ts';
import { decodeCommand, formatInstant, verifyCommand } from './inspection.ts';

/** What a reading command uses: the client, the requested streams and the options. */
type Reading = {
  readonly session: Session;
  readonly client: Client;
  /** Ends every call when the command is interrupted. */
  readonly call: CallOptions;
  readonly feeds: readonly RemoteFeed[];
  readonly options: RawOptions;
  readonly nowSeconds: number;
};

const runReading = async (
  session: Session,
  run: (reading: Reading, first: RemoteFeed) => Promise<void>,
  raws: readonly string[],
  options: RawOptions,
): Promise<void> => {
  if (options.json && options.raw) throw usageError('--json cannot be combined with --raw.');
  const { url, openClient } = await readAccess(session, options);
  const client = openClient(url, session);
  const signal = session.interruption();
  await explainRemote(url, async () => {
    const feeds = await readRemoteFeeds(client, url, raws, signal);
    const nowSeconds = Math.floor(session.nowMs() / 1_000);
    const reading = { session, client, call: { signal }, feeds, options, nowSeconds };
    await run(reading, feeds[0] as RemoteFeed); // the argument is required
  });
};

const readLatest = async (reading: Reading, { feedId }: RemoteFeed): Promise<void> => {
  const { report } = await reading.client.latest(feedId, reading.call);
  await printReports(reading, [report]);
};

const readAt = async (reading: Reading, { feedId }: RemoteFeed): Promise<void> => {
  const { report } = await reading.client.at(feedId, parseTimestamp(reading), reading.call);
  await printReports(reading, [report]);
};

const parseTimestamp = ({ options, nowSeconds }: Reading): number =>
  parseTime('--timestamp', String(options.timestamp), nowSeconds);

const missReasons: Readonly<Record<string, string>> = {
  not_yet: 'the time is after its newest report',
  gap: 'the time falls into a gap',
  before_first: 'the time is before its oldest report',
  no_reports: 'it has no reports',
  damaged: 'its report is damaged in the store',
};

const readBulk = async (reading: Reading): Promise<void> => {
  const { session, client, call, feeds, options } = reading;
  const feedIds = feeds.map(({ feedId }) => feedId);
  const { reports, missing } = await client.bulk(feedIds, parseTimestamp(reading), call);
  if (missing.length > 0) session.exitWith(exitCodes.refused); // before a reader may leave
  const nameOf = (feedId: string) => feeds.find((feed) => feed.feedId === feedId)?.name ?? feedId;
  if (reports.length > 0) await printReports(reading, reports, { nameOf });
  if (missing.length === 0) return;
  if (options.json) await printJson(session, { missing });
  for (const { feedID, reason } of missing) {
    const why = reason === undefined ? 'the server gave no reason' : (missReasons[reason] ?? reason);
    session.stderr.write(withoutControls(`warning: no report of ${nameOf(feedID)}: ${why}.\n`));
  }
};

const readPages = async (reading: Reading, { feedId, name }: RemoteFeed): Promise<void> => {
  const { options, nowSeconds } = reading;
  if (options.all && options.limit !== undefined) throw usageError('--limit cannot be combined with --all.');
  const span = parseSpan(options, { from: 0, to: secondsMax }, nowSeconds);
  const printed = await (options.all ? printAllPages : printPage)(reading, feedId, span);
  if (printed === 0) throw new CommandError(exitCodes.refused, `${name} has no reports in this time range.`);
};

/** Prints every report of the span; returns how many there were. */
const printAllPages = async (reading: Reading, feedId: string, span: TimeRange): Promise<number> => {
  let printed = 0;
  for await (const { reports } of reading.client.pages(feedId, { ...span, ...reading.call })) {
    await printReports(reading, reports, { isContinued: printed > 0 });
    printed += reports.length;
  }
  return printed;
};

/** Prints the first reports of the time range, and how to continue. */
const printPage = async (reading: Reading, feedId: string, { from, to }: TimeRange): Promise<number> => {
  const { session, client, call, options } = reading;
  const asked = String(options.limit ?? limits.pageLimitDefault);
  const limit = parseCount('--limit', asked, limits.pageLimitMin, limits.pageLimitMax);
  const { reports, more, nextStartTimestamp: next } = await client.page(feedId, from, limit, call);
  const within = reports.filter(({ observationsTimestamp }) => observationsTimestamp <= to);
  if (within.length > 0) await printReports(reading, within);
  if (more && next <= to && !options.json && !options.raw)
    session.stderr.write(`More reports follow. Continue with --from ${next}, or use --all.\n`);
  return within.length;
};

type PrintOptions = { readonly nameOf?: (feedId: string) => string; readonly isContinued?: boolean };

const printReports = async (
  { session, options }: Reading,
  reports: readonly ReportJson[],
  { nameOf = () => '', isContinued = false }: PrintOptions = {},
): Promise<void> => {
  if (options.json) return session.write(reports.map((report) => toJsonLine(report)).join(''));
  if (options.raw) return session.write(reports.map(({ fullReport }) => `${fullReport}\n`).join(''));
  const rows = reports.map((report) => [nameOf(report.feedID), ...cellsOf(report, session.nowMs())]);
  const shown = columns.flatMap((column, i) => (rows.some((row) => row[i] !== '') ? [[column, i] as const] : []));
  const table = renderTable(
    shown.map(([column]) => column),
    rows.map((row) => shown.map(([, i]) => row[i] ?? '')),
    session.paint,
  );
  await session.write(isContinued ? table.slice(table.indexOf('\n') + 1) : table);
};

/** Columns that are empty in every row, such as bid and ask of a single price, are left out. */
const columns: readonly Column[] = [
  { title: 'stream' },
  { title: 'time (UTC)' },
  { title: 'price', align: 'right' },
  { title: 'bid', align: 'right' },
  { title: 'ask', align: 'right' },
  { title: 'valid for', align: 'right' },
  { title: 'age', align: 'right' },
];

const cellsOf = (report: ReportJson, nowMs: number): readonly string[] => {
  const age = (ms: number) => formatDuration(Math.max(0, Math.floor((nowMs - ms) / 1_000)));
  try {
    const { feedId, price, bid, ask, validFromMs, observationsMs } = decode(report);
    const isMs = timeResolutionOf(feedId) === 'milliseconds';
    const span = isMs ? `${observationsMs - validFromMs + 1} ms` : `${(observationsMs - validFromMs) / 1_000 + 1} s`;
    const cells = [price, bid, ask].map((value) => (value === undefined ? '' : formatDecimal(value)));
    return [formatInstant(observationsMs), ...cells, span, age(observationsMs)];
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const { validFromTimestamp: from, observationsTimestamp: to } = report;
    return [formatSecond(to), `(${error.code})`, '', '', `${to - from + 1} s`, age(to * 1_000)];
  }
};

/** A command that reads a server: arguments, options and printing are those of all. */
const createReading = (
  name: string,
  summary: string,
  argument: string,
  options: readonly OptionRow[],
  examples: PlainCommand['examples'],
  run: Parameters<typeof runReading>[1],
): PlainCommand => ({
  name,
  summary,
  arguments: [{ name: argument, help: feedForms }],
  options: [
    ...options,
    { flag: '--json', help: 'print each report as the API returns it, one line of JSON each' },
    { flag: '--raw', help: 'print fullReport only, one per line' },
    ...accessOptions,
  ],
  examples,
  run: ({ session, options: given }, feed: string | string[]) => runReading(session, run, [feed].flat(), given),
});

const timestampOption: OptionRow = { flag: '--timestamp <time>', help: `time: ${timeForms}`, required: true };

const pageOptions: readonly OptionRow[] = [
  { flag: '--from <time>', help: `first observation: ${timeForms}`, required: true },
  { flag: '--to <time>', help: 'last observation, included (default: the newest)' },
  {
    flag: '--limit <count>',
    help: `reports, at most ${limits.pageLimitMax} (default: ${limits.pageLimitDefault})`,
  },
  { flag: '--all', help: 'read every page up to --to or the newest report' },
];

export const reportCommands: CommandGroup = {
  name: 'report',
  summary: 'Read reports of a server; decode and verify reports, also on-chain.',
  commands: [
    createReading(
      'latest',
      'Read the newest report of a stream.',
      '<FEED>',
      [],
      [
        ['Current price', 'sealpost report latest BTC/USD-Streams-CexPrice --url https://streams.example.com'],
        ['Decode the signed bytes', 'sealpost report latest BTC/USD-Streams-CexPrice --raw | sealpost report decode'],
      ],
      readLatest,
    ),
    createReading(
      'at',
      'Read the report that is valid at a given time. If there is none, show why, and the reports around it.',
      '<FEED>',
      [timestampOption],
      [['Price a minute ago', 'sealpost report at BTC/USD-Streams-CexPrice --timestamp -1m']],
      readAt,
    ),
    createReading(
      'bulk',
      'Read the reports of several streams at one time. Streams without a report are listed with the reason.',
      '<FEED...>',
      [timestampOption],
      [['Two prices', 'sealpost report bulk BTC/USD-Streams-CexPrice ETH/USD-Streams-CexPrice --timestamp -1m']],
      readBulk,
    ),
    createReading(
      'page',
      'Read consecutive reports of a stream, oldest first.',
      '<FEED>',
      pageOptions,
      [
        ['First ten reports of the last hour', 'sealpost report page BTC/USD-Streams-CexPrice --from -1h'],
        [
          'Save the last hour to a file',
          'sealpost report page BTC/USD-Streams-CexPrice --from -1h --all --json > hour.ndjson',
        ],
      ],
      readPages,
    ),
    decodeCommand,
    verifyCommand,
    calldataCommand,
  ],
};
