// Runs an export: stream after stream, page after page, to stdout or into a folder. Holds one page of reports, and one group of rows for Parquet.
import {
  type ColumnOptions,
  columnsOf,
  createCsv,
  createParquetEncoder,
  type Encoder,
  type ExportColumn,
  type ExportRow,
  type ExportStream,
  exportRowOf,
  exportTextOf,
  requireFit,
  type Value,
} from '@sealpost/client/export';
import { isSchemaVersion, type ReportJson, type SchemaVersion, schemaVersionOf } from '@sealpost/protocol';
import { describeFileFailure } from '@sealpost/server/runtime/files';
import { CommandError, exitCodes, interruptedCode, usageError } from '../../failure.ts';
import { formatNumberOf, formatSecond, toJsonLine } from '../../formats.ts';
import { createProgress, type Progress } from '../../progress.ts';
import type { Session } from '../../session.ts';
import { type DayFile, dayStartOf, type ExportedArguments, type ExportFolder, openFolder } from './folder.ts';
import type { ExportSource, ExportSpan } from './source.ts';

export const formatNames = ['ndjson', 'csv', 'parquet'] as const;
export type FormatName = (typeof formatNames)[number];

export type ExportArguments = ColumnOptions & {
  /** Streams as given; none for all. */
  readonly feeds: readonly string[];
  readonly format: FormatName;
  /** The folder for files; undefined for stdout. */
  readonly out: string | undefined;
  readonly span: ExportSpan;
  /** Times as given; null for the oldest and the newest. */
  readonly times: { readonly from: string | null; readonly to: string | null };
};

export type ExportParts = {
  readonly session: Session;
  readonly source: ExportSource;
  /** The store or server, as a folder's record names it. */
  readonly origin: string;
  readonly signal: AbortSignal;
};

type Format = {
  readonly create: (columns: readonly ExportColumn[]) => Encoder;
  /** Throws where a row does not fit the format. */
  readonly check: (columns: readonly ExportColumn[], row: ExportRow) => void;
};

const openFormat = async (name: FormatName): Promise<Format> => {
  if (name === 'ndjson') return { create: createNdjson, check: () => {} };
  if (name === 'csv') return { create: createCsv, check: () => {} };
  const library = await import('hyparquet-writer'); // loaded by those who use it (D186)
  return { create: (columns) => createParquetEncoder(library, columns), check: requireFit };
};

/** One JSON object per line. Every value is exact: numbers above 2^53 and decimals are strings, times ISO 8601 in UTC. */
const createNdjson = (columns: readonly ExportColumn[]): Encoder => ({
  add: (rows) =>
    rows
      .map((row) => toJsonLine(Object.fromEntries(columns.map((one, i) => [one.name, jsonOf(one, row[i])]))))
      .join(''),
  end: () => '',
});

const jsonOf = (column: ExportColumn, value: Value | undefined): string | number | null => {
  if (value === null || value === undefined || typeof value === 'number') return value ?? null;
  return exportTextOf(column, value);
};

/** Problems that are printed; more are counted. */
const problemsShown = 20;

/** Prints what could not be exported, and sets the exit code. */
const createProblems = ({ stderr, exitWith }: Session) => {
  let count = 0;
  return {
    tell: (text: string): void => {
      count += 1;
      exitWith(exitCodes.refused); // before a reader of stdout may leave
      if (count <= problemsShown) stderr.write(`error: ${text}\n`);
    },
    end: (): void => {
      if (count > problemsShown) stderr.write(`error: ${formatNumberOf(count - problemsShown, 'more problem')}.\n`);
    },
  };
};

type Run = ExportParts & {
  readonly args: ExportArguments;
  readonly format: Format;
  readonly problems: ReturnType<typeof createProblems>;
  readonly progress: Progress;
  reports: number;
};

/** Exports; returns when everything is written. */
export async function runExport(args: ExportArguments, parts: ExportParts): Promise<void> {
  const { session } = parts;
  const problems = createProblems(session);
  // A bar would be drawn between the lines of stdout.
  const progress = createProgress(args.out === undefined && session.isTerminal ? { write: () => {} } : session.stderr);
  const run: Run = { ...parts, args, format: await openFormat(args.format), problems, progress, reports: 0 };
  try {
    await (args.out === undefined ? writeOut(run) : writeFolder(run, args.out));
  } finally {
    progress.end();
  }
  problems.end();
}

/** The streams that can be exported. One of an unknown schema is an error if it was named, else a problem. */
const decodable = ({ args, problems }: Run, streams: readonly ExportStream[]): readonly ExportStream[] =>
  streams.filter(({ feedId, name }) => {
    const version = schemaVersionOf(feedId);
    if (!args.isDecoded || isSchemaVersion(version)) return true;
    const text = `${name} has schema version ${version}, which this release cannot decode (unknown_schema).`;
    if (args.feeds.length > 0) throw usageError(`${text} Export it with --format ndjson, without --decoded.`);
    problems.tell(`${text} It was skipped.`);
    return false;
  });

const versionsOf = (streams: readonly ExportStream[]): readonly SchemaVersion[] =>
  [...new Set(streams.map(({ feedId }) => schemaVersionOf(feedId)))].filter(isSchemaVersion);

const unique = (streams: readonly ExportStream[]): readonly ExportStream[] => [
  ...new Map(streams.map((stream) => [stream.feedId, stream])).values(),
];

/** All streams to stdout. Lines of CSV have the columns of all schemas, lines of NDJSON those of their own. */
const writeOut = async (run: Run): Promise<void> => {
  const { args, session, source, format } = run;
  const streams = decodable(run, unique(await source.find(args.feeds)));
  const encoderOf = (some: readonly ExportStream[]) => {
    const columns = columnsOf(versionsOf(some), args);
    return { columns, encoder: format.create(columns) };
  };
  const shared = args.format === 'csv' ? encoderOf(streams) : undefined;
  for (const [i, stream] of streams.entries()) {
    const { columns, encoder } = shared ?? encoderOf([stream]);
    for await (const page of readPages(run, stream, args.span, i / streams.length, streams.length)) {
      const { rows } = readRows(run, stream, columns, page);
      await session.write(String(encoder.add(rows)));
      run.reports += rows.length;
    }
  }
  await session.write(String(shared?.encoder.end() ?? ''));
};

/** Pages of a stream, with progress; ends the command when it is interrupted. */
async function* readPages(
  run: Run,
  stream: ExportStream,
  span: ExportSpan,
  done: number,
  streams: number,
): AsyncGenerator<readonly ReportJson[]> {
  const { session, source, signal, progress, problems } = run;
  const end = Math.min(span.to, Math.floor(session.nowMs() / 1_000));
  let first: number | undefined;
  try {
    for await (const page of source.pages(stream, span)) {
      if (signal.aborted) break;
      yield page;
      for (const problem of source.takeProblems()) problems.tell(problem);
      const second = page.at(-1)?.observationsTimestamp ?? end;
      first ??= page[0]?.observationsTimestamp ?? second;
      const part = Math.min(1, (second - first + 1) / Math.max(1, end - first + 1));
      progress.update({ fraction: done + part / streams, count: run.reports, label: `reports  ${stream.name}` });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  for (const problem of source.takeProblems()) problems.tell(problem);
  if (!signal.aborted) return;
  const advice = run.args.out === undefined ? '' : ' Run the command again to resume.';
  throw new CommandError(interruptedCode(signal), `Interrupted.${advice}`);
}

/** The rows of reports; those that cannot be decoded are told and skipped. */
const readRows = (run: Run, stream: ExportStream, columns: readonly ExportColumn[], page: readonly ReportJson[]) => {
  const { args, format, problems } = run;
  const [rows, seconds]: [ExportRow[], number[]] = [[], []];
  for (const report of page) {
    const { row, problem } = exportRowOf(columns, stream, report, args.isDecoded);
    const which = `The report of ${stream.name} observed at ${formatSecond(report.observationsTimestamp)}`;
    if (problem !== undefined) {
      problems.tell(`${which} was skipped: ${problem}.`);
      continue;
    }
    try {
      format.check(columns, row);
    } catch (cause) {
      const what = cause instanceof Error ? cause.message : String(cause);
      const text = `${which} does not fit: ${what}. Use --raw, which writes integers as text, or --format csv.`;
      throw new CommandError(exitCodes.refused, text, { cause });
    }
    rows.push(row);
    seconds.push(report.observationsTimestamp);
  }
  return { rows, seconds };
};

/** What must be the same for a folder to be continued. */
const exportedArguments = ({ args, origin }: Run): ExportedArguments => ({
  source: origin,
  streams: args.feeds,
  '--from': args.times.from,
  '--to': args.times.to,
  '--format': args.format,
  '--decoded': args.isDecoded,
  '--raw': args.isRaw,
  '--full-report': args.hasFullReport,
});

const writeFolder = async (run: Run, path: string): Promise<void> => {
  const { args, session, source } = run;
  const folder = await openFolder({
    path,
    extension: args.format,
    arguments: exportedArguments(run),
    from: args.span.from,
    // Streams that were named keep the name that they had, so that a renamed one is continued; all streams may be more by now.
    find: async (known) =>
      known.length > 0 && args.feeds.length > 0 ? known : decodable(run, unique(await source.find(args.feeds))),
  });
  let files = 0;
  try {
    if (folder.isResumed) session.stderr.write(`Resuming the export in ${path}.\n`);
    for (const i of folder.streams.keys()) files += await writeStream(run, folder, i);
  } catch (error) {
    throw explainFull(error, path);
  } finally {
    folder.close();
  }
  run.progress.end();
  session.stderr.write(
    `${formatNumberOf(run.reports, 'report')} of ${formatNumberOf(folder.streams.length, 'stream')} in ${formatNumberOf(files, 'file')}, ${path}.\n`,
  );
};

/** A full disk ends the export; what is complete stays. */
const explainFull = (error: unknown, path: string): unknown => {
  const { code, path: file = path } = Object(error) as NodeJS.ErrnoException; // whatever was thrown: both may be absent
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const text = `${describeFileFailure(file, error)}. Free some space, then run the command again to resume.`;
  return new CommandError(exitCodes.unavailable, text, { cause: error });
};

/** Writes what is missing of one stream, a file per day. Returns how many. */
const writeStream = async (run: Run, folder: ExportFolder, index: number): Promise<number> => {
  const { args, format, problems } = run;
  const stream = folder.streams[index] as ExportFolder['streams'][number]; // an index of this list
  const columns = columnsOf(versionsOf([stream]), args);
  const span = { from: folder.startOf(stream), to: args.span.to };
  let day: { readonly file: DayFile; readonly encoder: Encoder } | undefined;
  let files = 0;
  let kept: string | undefined;
  const endDay = async (): Promise<void> => {
    if (day === undefined) return;
    await day.file.write(day.encoder.end());
    await day.file.complete();
    files += 1;
    day = undefined;
  };
  try {
    for await (const page of readPages(run, stream, span, index / folder.streams.length, folder.streams.length)) {
      const { rows, seconds } = readRows(run, stream, columns, page);
      for (const { at, from, to } of splitByDay(seconds)) {
        if (day?.file.day !== at) await endDay();
        const first = seconds[from] ?? at;
        const fuller: string | undefined = day === undefined ? folder.fullerFile(stream, at, first) : undefined;
        if (fuller !== undefined) {
          if (fuller !== kept)
            problems.tell(
              `The source has lost reports of ${fuller} since it was written. It is kept as it was, without later reports of that day.`,
            );
          kept = fuller;
          continue;
        }
        day ??= { file: await folder.openDay(stream, at, first), encoder: format.create(columns) };
        await day.file.write(day.encoder.add(rows.slice(from, to)));
        run.reports += to - from;
      }
    }
    await endDay();
  } catch (error) {
    await day?.file.discard();
    throw error;
  }
  return files;
};

/** The parts of ascending seconds that lie in one day, from one index to before another. */
const splitByDay = (seconds: readonly number[]) => {
  const parts: { at: number; from: number; to: number }[] = [];
  seconds.forEach((second, i) => {
    const last = parts.at(-1);
    if (last?.at === dayStartOf(second)) last.to = i + 1;
    else parts.push({ at: dayStartOf(second), from: i, to: i + 1 });
  });
  return parts;
};
