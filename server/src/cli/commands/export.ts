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
import { type Command, Option } from 'commander';
import type { ReportStore, StoredReport } from '../../store/store.ts';
import { addExamples, addSettings, type RawOptions, readSettings, withChoices } from '../command-options.ts';
import { interruptedCode, usageError } from '../failure.ts';
import type { Session } from '../session.ts';
import { withStore } from '../store-access.ts';
import { feedForms, findReadableStream } from '../stream-argument.ts';
import { parseSpan, timeForms } from '../time-arguments.ts';

export const addExportCommand = (program: Command, session: Session): void => {
  const command = program
    .command('export')
    .description(
      'Write the reports of a stream to stdout, in order of observation. CSV has exact integers, never rounded.',
    )
    .argument('<FEED>', feedForms)
    .option('--from <time>', 'first observation (default: the oldest)')
    .option('--to <time>', 'last observation, included (default: the newest)')
    .addOption(withChoices(new Option('--format <format>', 'output format').default('ndjson'), Object.keys(formats)))
    .option('--json', 'the same as --format ndjson')
    .addHelpText('after', `\nTimes are ${timeForms}.`)
    .action((feed: string, options: RawOptions) => exportReports(session, feed, options));
  addSettings(command, ['store']);
  addExamples(command, [
    [
      'Copy a stream into another store',
      'sealpost export BTC/USD-Streams-CexPrice | sealpost ingest - --store ./other',
    ],
    ['Last hour, for a spreadsheet', 'sealpost export BTC/USD-Streams-CexPrice --from -1h --format csv > hour.csv'],
  ]);
};

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

const exportReports = async (session: Session, feed: string, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const format = parseFormat(options);
  const span = parseSpan(options, { from: 0, to: secondsMax }, Math.floor(session.nowMs() / 1_000));
  const interruption = session.interruption();
  await withStore(values.store, async (store) => {
    const { feedId } = await findReadableStream(store, feed);
    await session.write(format.header(feedId));
    for await (const reports of readPages(store.reports, feedId, span)) {
      if (interruption.aborted) return session.exitWith(interruptedCode(interruption));
      await session.write(reports.map(format.line).join(''));
    }
  });
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
