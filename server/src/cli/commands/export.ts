// The command `sealpost export`: the reports of a stream on stdout, as they went in or with their fields decoded.
import {
  decodeFullReport,
  decodeReportBody,
  type FeedId,
  isSchemaVersion,
  reportSchemas,
  schemaVersionOf,
  secondsMax,
  toReportJson,
} from '@sealpost/protocol';
import type { ReportStore, StoredReport } from '../../store/store.ts';
import type { SettingsCommand } from '../command.ts';
import type { RawOptions } from '../command-options.ts';
import { interruptedCode, usageError } from '../failure.ts';
import { feedForms, findReadableStream } from '../stream-argument.ts';
import { parseSpan, timeForms } from '../time-arguments.ts';

type Format = {
  readonly header: (feedId: FeedId) => string;
  readonly line: (report: StoredReport) => string;
};

const toHex = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`;

const formats: Readonly<Record<string, Format>> = {
  ndjson: {
    header: () => '',
    line: (report) => `${JSON.stringify(toReportJson(report.feedId, report, toHex(report.fullReport)))}\n`,
  },
  csv: {
    header: (feedId) => `${fieldNames(feedId).join(',')}\n`,
    line: ({ feedId, fullReport }) => {
      const body = new Map<string, unknown>(Object.entries(decodeReportBody(decodeFullReport(toHex(fullReport)).body)));
      return `${fieldNames(feedId)
        .map((name) => String(body.get(name)))
        .join(',')}\n`;
    },
  },
};

const fieldNames = (feedId: FeedId): readonly string[] => {
  const version = schemaVersionOf(feedId);
  if (!isSchemaVersion(version))
    throw usageError(`Schema version ${version} is unknown, so its fields cannot be written as CSV.`);
  return reportSchemas[version].fields.map(({ name }) => name);
};

const parseFormat = ({ format, json }: RawOptions): Format => {
  if (json && format === 'csv') throw usageError('--json cannot be combined with --format csv.');
  const known = formats[String(format)];
  if (known !== undefined) return known;
  throw usageError(`--format has the value "${format}", expected ${Object.keys(formats).join(' or ')}.`);
};

export const exportCommand: SettingsCommand = {
  name: 'export',
  summary: 'Write the reports of a stream to stdout, in order of observation. CSV has exact integers, never rounded.',
  arguments: [{ name: '<FEED>', help: feedForms }],
  options: [
    { flag: '--from <time>', help: 'first observation (default: the oldest)' },
    { flag: '--to <time>', help: 'last observation, included (default: the newest)' },
    { flag: '--format <format>', help: 'output format', default: 'ndjson', choices: Object.keys(formats) },
    { flag: '--json', help: 'the same as --format ndjson' },
  ],
  settings: ['store'],
  about: `Times are ${timeForms}.`,
  examples: [
    [
      'Copy a stream into another store',
      'sealpost export BTC/USD-Streams-CexPrice | sealpost ingest - --store ./other',
    ],
    ['Last hour, for a spreadsheet', 'sealpost export BTC/USD-Streams-CexPrice --from -1h --format csv > hour.csv'],
  ],
  run: async ({ session, options, withStore }, feed: string) => {
    const format = parseFormat(options);
    const span = parseSpan(options, { from: 0, to: secondsMax }, Math.floor(session.nowMs() / 1_000));
    const interruption = session.interruption();
    await withStore(async (store) => {
      const { feedId } = await findReadableStream(store, feed);
      await session.write(format.header(feedId));
      for await (const reports of readPages(store.reports, feedId, span)) {
        if (interruption.aborted) return session.exitWith(interruptedCode(interruption));
        await session.write(reports.map(format.line).join(''));
      }
    });
  },
};

const pageReports = 1_000; // as many as a second of a millisecond stream can hold, so that a page always ends with one

async function* readPages(
  reports: ReportStore,
  feedId: FeedId,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<readonly StoredReport[]> {
  const secondOf = ({ observationsMs }: StoredReport) => Math.floor(observationsMs / 1_000);
  for (let start = from; start <= to; ) {
    const page = await reports.page(feedId, start, pageReports);
    yield page.reports.filter((report) => secondOf(report) <= to);
    const last = page.reports.at(-1);
    if (!page.more || last === undefined) return;
    start = secondOf(last) + 1;
  }
}
