// The command `sealpost report`: reports as a reader of the API gets them. Reports at hand are report-inspection.ts.
import { formatDecimal } from '@sealpost/client';
import {
  decodeFullReport,
  decodeReportBody,
  limits,
  parseFeedId,
  ReportFormatError,
  type ReportJson,
  reportSchemas,
  secondsMax,
  timeResolutionOf,
  windowOf,
} from '@sealpost/protocol';
import type { Command } from 'commander';
import { type ApiReader, createApiReader } from './api-reader.ts';
import { addExamples, parseCount, type RawOptions } from './command-options.ts';
import { addAccessOptions, readAccess } from './credentials.ts';
import { asUsage, CommandError, exitCodes, usageError } from './failure.ts';
import { type Column, formatDuration, formatSecond, renderTable } from './formats.ts';
import { addDecode, addVerify, formatInstant } from './report-inspection.ts';
import { printJson, type Session } from './session.ts';
import { parseSpan, parseTime, timeForms } from './time-arguments.ts';

export const addReportCommand = (program: Command, session: Session): void => {
  const report = program.command('report').description('Read reports of a server; take reports apart and verify them.');
  for (const [name, about, feeds, examples, run] of readings) {
    const command = report.command(name).description(about).argument(feeds, 'feed id or name');
    if (name === 'at' || name === 'bulk') command.requiredOption('--timestamp <time>', `moment: ${timeForms}`);
    if (name === 'page') addPageOptions(command);
    command
      .option('--json', 'print each report as the API gives it, one line of JSON each')
      .option('--raw', 'print fullReport only, one to a line')
      .action((feed: string | string[], options: RawOptions) => runReading(session, run, [feed].flat(), options));
    addExamples(addAccessOptions(command), examples);
  }
  addDecode(report, session);
  addVerify(report, session);
};

const addPageOptions = (command: Command): Command =>
  command
    .requiredOption('--from <time>', `first observation: ${timeForms}`)
    .option('--to <time>', 'last observation, included (default: the newest)')
    .option('--limit <count>', `reports, at most ${limits.pageLimitMax} (default: ${limits.pageLimitDefault})`)
    .option('--all', 'go on until --to or the end');

/** What a reading has to do with: the reader, the streams asked for, and the one way to print. */
type Reading = {
  readonly session: Session;
  readonly read: ApiReader;
  readonly feeds: readonly Feed[];
  readonly options: RawOptions;
  readonly nowSeconds: number;
};

type Feed = { readonly feedId: string; readonly name: string };

const runReading = async (
  session: Session,
  run: (reading: Reading, first: Feed) => Promise<void>,
  raws: readonly string[],
  options: RawOptions,
): Promise<void> => {
  if (options.json && options.raw) throw usageError('--json and --raw exclude each other.');
  const read = createApiReader(session, await readAccess(session, options));
  const feeds = await findFeeds(read, raws);
  const nowSeconds = Math.floor(session.nowMs() / 1_000);
  await run({ session, read, feeds, options, nowSeconds }, feeds[0] as Feed); // the argument is required
};

/** Feed ids as they are, names through the catalog of the server. */
const findFeeds = async (read: ApiReader, raws: readonly string[]): Promise<readonly Feed[]> => {
  const isId = (raw: string) => raw.startsWith('0x');
  const catalog = raws.every(isId) ? [] : (await read('discovery', { hidden: true })).body.feeds;
  return raws.map((raw) => {
    if (isId(raw)) return { feedId: asUsage(() => parseFeedId(raw, 'FEED')), name: raw };
    const [found, ...others] = catalog.filter(({ name }) => name.toLowerCase() === raw.toLowerCase());
    if (found !== undefined && others.length === 0) return found;
    const what = found === undefined ? 'is no stream in the catalog of the server' : 'names several streams';
    throw usageError(`"${raw}" ${what}. Give its feed id.`);
  });
};

const readLatest = async (reading: Reading, { feedId }: Feed): Promise<void> => {
  const { body } = await reading.read('reportLatest', { feedID: feedId });
  await printReports(reading, [body.report]);
};

const readAt = async (reading: Reading, { feedId }: Feed): Promise<void> => {
  const { body } = await reading.read('reportAt', { feedID: feedId, timestamp: parseTimestamp(reading) });
  await printReports(reading, [body.report]);
};

const parseTimestamp = ({ options, nowSeconds }: Reading): number =>
  parseTime('--timestamp', String(options.timestamp), nowSeconds);

const missReasons: Readonly<Record<string, string>> = {
  not_yet: 'the moment is after its newest report',
  gap: 'the moment falls into a gap',
  before_first: 'the moment is before its oldest report',
  no_reports: 'it has no report yet',
};

const readBulk = async (reading: Reading): Promise<void> => {
  const { session, feeds, options } = reading;
  const feedIDs = feeds.map(({ feedId }) => feedId).join(',');
  const { body } = await reading.read('reportBulk', { feedIDs, timestamp: parseTimestamp(reading), missing: true });
  const nameOf = (feedId: string) => feeds.find((feed) => feed.feedId === feedId)?.name ?? feedId;
  if (body.reports.length > 0) await printReports(reading, body.reports, { nameOf });
  const missing = 'missing' in body ? (body.missing ?? []) : [];
  if (missing.length === 0) return;
  if (options.json) await printJson(session, { missing });
  for (const { feedID, reason } of missing)
    session.stderr.write(`warning: no report of ${nameOf(feedID)}: ${missReasons[reason] ?? reason}.\n`);
  session.exitWith(exitCodes.refused);
};

const readPages = async (reading: Reading, { feedId, name }: Feed): Promise<void> => {
  const { session, options, nowSeconds } = reading;
  if (options.all && options.limit !== undefined) throw usageError('--limit and --all exclude each other.');
  const { from, to } = parseSpan(options, { from: 0, to: secondsMax }, nowSeconds);
  const asked = String(options.limit ?? limits.pageLimitDefault);
  const limit = options.all
    ? limits.pageLimitMax
    : parseCount('--limit', asked, limits.pageLimitMin, limits.pageLimitMax);
  let printed = 0;
  for (let start = from; ; ) {
    const { body, more } = await reading.read('reportPage', { feedID: feedId, startTimestamp: start, limit });
    const within = body.reports.filter(({ observationsTimestamp }) => observationsTimestamp <= to);
    if (within.length > 0) await printReports(reading, within, { isContinued: printed > 0 });
    printed += within.length;
    const end = body.reports.at(-1)?.observationsTimestamp ?? to;
    if (!more || end >= to) break;
    if (end < start)
      throw new CommandError(exitCodes.unavailable, `The page from ${start} on ends before it. Report it.`);
    start = end + 1; // as D14 tells clients to go on
    if (options.all) continue;
    if (!options.json && !options.raw) session.stderr.write(`More follows: --from ${start}, or --all.\n`);
    break;
  }
  if (printed === 0) throw new CommandError(exitCodes.refused, `No report of ${name} was observed in this span.`);
};

/** Name, help, argument, examples and act of each command that reads a server. */
const readings = [
  [
    'latest',
    'Read the newest report of a stream.',
    '<FEED>',
    [
      ['The price now', 'sealpost report latest BTC/USD-Streams-CexPrice --url https://streams.example.com'],
      [
        'Its signed bytes, taken apart',
        'sealpost report latest BTC/USD-Streams-CexPrice --raw | sealpost report decode',
      ],
    ],
    readLatest,
  ],
  [
    'at',
    'Read the report that holds at a moment. Where there is none, say why and what lies around it.',
    '<FEED>',
    [['The price a minute ago', 'sealpost report at BTC/USD-Streams-CexPrice --timestamp -1m']],
    readAt,
  ],
  [
    'bulk',
    'Read the reports of several streams at one moment. Streams without one are named, with the reason.',
    '<FEED...>',
    [['Two prices', 'sealpost report bulk BTC/USD-Streams-CexPrice ETH/USD-Streams-CexPrice --timestamp -1m']],
    readBulk,
  ],
  [
    'page',
    'Read the reports of a stream one after the other, oldest first.',
    '<FEED>',
    [
      ['The first ten of the last hour', 'sealpost report page BTC/USD-Streams-CexPrice --from -1h'],
      [
        'All of them into a file',
        'sealpost report page BTC/USD-Streams-CexPrice --from -1h --all --json > hour.ndjson',
      ],
    ],
    readPages,
  ],
] as const;

type PrintOptions = { readonly nameOf?: (feedId: string) => string; readonly isContinued?: boolean };

const printReports = async (
  { session, options }: Reading,
  reports: readonly ReportJson[],
  { nameOf = () => '', isContinued = false }: PrintOptions = {},
): Promise<void> => {
  if (options.json) return session.write(reports.map((report) => `${JSON.stringify(report)}\n`).join(''));
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
  { title: 'span', align: 'right' },
  { title: 'age', align: 'right' },
];

const cellsOf = (report: ReportJson, nowMs: number): readonly string[] => {
  const age = (ms: number) => formatDuration(Math.max(0, Math.floor((nowMs - ms) / 1_000)));
  try {
    const body = decodeReportBody(decodeFullReport(report.fullReport).body);
    const { validFromMs, observationsMs } = windowOf(body);
    const headline: { price: string; bid?: string; ask?: string } = reportSchemas[body.version].headline;
    const named = new Map<string | undefined, unknown>(Object.entries(body));
    const prices = [headline.price, headline.bid, headline.ask].map((name) => named.get(name));
    const isMs = timeResolutionOf(body.feedId) === 'milliseconds';
    const span = isMs ? `${observationsMs - validFromMs + 1} ms` : `${(observationsMs - validFromMs) / 1_000 + 1} s`;
    const cells = prices.map((price) => (typeof price === 'bigint' ? formatDecimal(price) : ''));
    return [formatInstant(observationsMs), ...cells, span, age(observationsMs)];
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    const { validFromTimestamp: from, observationsTimestamp: to } = report;
    return [formatSecond(to), `(${error.reason})`, '', '', `${to - from + 1} s`, age(to * 1_000)];
  }
};
