// The command `sealpost candles`: prices of a stream rolled up by a server, as a table, as CSV or as NDJSON.
import { type Candle, type Client, formatDecimal, SealpostError } from '@sealpost/client';
import { type CandleResolution, candleResolutions, type FeedId, limits } from '@sealpost/protocol';
import type { PlainCommand } from '../command.ts';
import type { RawOptions } from '../command-options.ts';
import { accessOptions, readAccess } from '../credentials.ts';
import { CommandError, exitCodes, usageError } from '../failure.ts';
import { type Column, formatSecond, renderTable, toJsonLine } from '../formats.ts';
import { explainRemote, readRemoteFeeds } from '../remote-client.ts';
import type { Session } from '../session.ts';
import { feedForms } from '../stream-argument.ts';
import { parseSpan, timeForms } from '../time-arguments.ts';

const formatNames = ['table', 'csv', 'ndjson'] as const;
type FormatName = (typeof formatNames)[number];

/** Resolutions as people write them. */
const resolutionNames: Readonly<Record<string, CandleResolution>> = {
  '1s': 1,
  '1m': 60,
  '5m': 300,
  '15m': 900,
  '1h': 3_600,
  '4h': 14_400,
  '1d': 86_400,
};

export const candlesCommand: PlainCommand = {
  name: 'candles',
  summary:
    'Read candles of a stream: open, high, low and close of every second, minute, hour, day, or lengths in between.',
  arguments: [{ name: '<FEED>', help: feedForms }],
  options: [
    { flag: '--from <time>', help: 'first candle', default: '-1h' },
    { flag: '--to <time>', help: 'last candle, included', default: 'now' },
    {
      flag: '--resolution <length>',
      help: 'length of a candle',
      default: '1m',
      choices: Object.keys(resolutionNames),
    },
    {
      flag: '--format <format>',
      help: 'output format; ndjson has prices as integers with 18 decimals',
      default: 'table',
      choices: formatNames,
    },
    { flag: '--json', help: 'the same as --format ndjson' },
    { flag: '--raw', help: 'prices in CSV as integers with 18 decimals' },
    ...accessOptions,
  ],
  about: `Times are ${timeForms}. Candles begin at multiples of their length in UTC; the last one counts what there is so far.`,
  examples: [
    ['Last hour, by minute', 'sealpost candles LINK/USD'],
    [
      'Last day, by hour, for a spreadsheet',
      'sealpost candles LINK/USD --from -1d --resolution 1h --format csv > day.csv',
    ],
  ],
  run: async ({ session, options }, feed: string) => {
    const [resolution, format] = [parseResolution(String(options.resolution)), parseFormat(options)];
    const nowSeconds = Math.floor(session.nowMs() / 1_000);
    const { from, to } = parseSpan(options, { from: 0, to: nowSeconds }, nowSeconds);
    const { url, openClient } = await readAccess(session, options);
    const [client, signal] = [openClient(url, session), session.interruption()];
    const printer = createPrinter(session, format, options.raw === true);
    await explainRemote(url, async () => {
      const [named] = await readRemoteFeeds(client, url, [feed], signal);
      const { feedId, name } = named as NonNullable<typeof named>; // one was asked for
      const spanSeconds = limits.candlesMax * resolution;
      const last = to > nowSeconds ? Math.min(to, await newestSecond(client, feedId, signal)) : to;
      // Buckets begin at whole multiples of the resolution, so that no request cuts one in two.
      for (let start = Math.floor(from / resolution) * resolution; start <= last; start += spanSeconds) {
        const end = Math.min(last, start + spanSeconds - 1);
        const { candles } = await client.candles(
          feedId,
          { from: Math.max(from, start), to: end, resolution },
          { signal },
        );
        await printer.print(feedId, candles);
      }
      if (!(await printer.end()))
        throw new CommandError(
          exitCodes.refused,
          `${name} has no candles in this time range: no reports, or none whose fields the server knows.`,
        );
    });
  },
};

/** Of the newest report, by the server: its clock may be ahead of this machine’s. After it are no candles to request. */
const newestSecond = async (client: Client, feedId: FeedId, signal: AbortSignal): Promise<number> => {
  try {
    return (await client.latest(feedId, { signal })).report.observationsTimestamp;
  } catch (error) {
    if (error instanceof SealpostError && error.status === 404) return -1; // none at all
    throw error;
  }
};

const parseResolution = (raw: string): CandleResolution => {
  const seconds = resolutionNames[raw] ?? candleResolutions.find((known) => String(known) === raw);
  if (seconds !== undefined) return seconds;
  throw usageError(`--resolution has the value "${raw}", expected ${Object.keys(resolutionNames).join(', ')}.`);
};

const parseFormat = ({ format, json, raw }: RawOptions): FormatName => {
  if (json && format === 'csv') throw usageError('--json cannot be combined with --format csv.');
  const known = formatNames.find((name) => name === format);
  if (known === undefined) throw usageError(`--format has the value "${format}", expected ${formatNames.join(', ')}.`);
  if (raw && format !== 'csv') throw usageError('--raw needs --format csv.');
  return json ? 'ndjson' : known;
};

const columns: readonly Column[] = [
  { title: 'from (UTC)' },
  ...['open', 'high', 'low', 'close', 'reports'].map((title) => ({ title, align: 'right' }) as const),
];

/** Prints candles as they come, a table when all are there; `end` says whether there were any. */
const createPrinter = (session: Session, format: FormatName, isRaw: boolean) => {
  const rows: (readonly string[])[] = [];
  let count = 0;
  const pricesOf = ({ open, high, low, close }: Candle): readonly bigint[] => [open, high, low, close];
  return {
    print: async (feedID: string, candles: readonly Candle[]): Promise<void> => {
      const isFirst = count === 0 && candles.length > 0;
      count += candles.length;
      if (format === 'table')
        for (const one of candles)
          rows.push([
            formatSecond(one.timestamp),
            ...pricesOf(one).map((price) => formatDecimal(price)),
            String(one.reports),
          ]);
      const lines = candles.map((one) =>
        format === 'csv'
          ? `${[one.timestamp, ...pricesOf(one).map(isRaw ? String : (price) => formatDecimal(price)), one.reports].join(',')}\n`
          : toJsonLine({ feedID, ...one }, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
      );
      if (isFirst && format === 'csv') await session.write('timestamp,open,high,low,close,reports\n');
      if (format !== 'table') await session.write(lines.join(''));
    },
    end: async (): Promise<boolean> => {
      if (rows.length > 0) await session.write(renderTable(columns, rows, session.paint));
      return count > 0;
    },
  };
};
