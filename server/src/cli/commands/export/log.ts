// The log of an export folder, `_sealpost-export.log`: what is exported, and which files are complete. Lines are only appended, each is on the
// disk before the next file is begun, and a line that was cut off counts as not written (D188).
import { type FileHandle, lstat, open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ExportStream } from '@sealpost/client/export';
import { daySeconds, type FeedId } from '@sealpost/protocol';
import { CommandError, exitCodes } from '../../failure.ts';
import type { ExportSpan } from './source.ts';

export const logName = '_sealpost-export.log';

/** The version of the log's lines. */
export const logVersion = 1;

/** What must be the same to continue an export: argument → value. */
export type LoggedArguments = Readonly<Record<string, string | boolean | readonly string[] | null>>;

/** A stream with the name that its files begin with. */
export type LoggedStream = ExportStream & { readonly file: string };

/** A complete file: the reports of a stream and a day in UTC, observed up to a second. */
export type LoggedFile = {
  readonly feedId: FeedId;
  /** First second of the day. */
  readonly day: number;
  readonly to: number;
  /** The run that wrote it, counted from 1. */
  readonly run: number;
  /** When its first report was observed, in seconds. */
  readonly first: number;
  readonly reports: number;
  readonly bytes: number;
  readonly file: string;
  /** Late reports are in: it is not written again for the same time range. */
  readonly isSettled: boolean;
};

type Line =
  | { readonly arguments: LoggedArguments; readonly log: typeof logVersion }
  | { readonly span: ExportSpan }
  | { readonly stream: LoggedStream }
  | { readonly file: LoggedFile }
  | { readonly complete: true };

export type ExportLog = {
  readonly arguments: LoggedArguments | undefined;
  /** The time range of the last run; undefined before the first. */
  readonly span: ExportSpan | undefined;
  readonly runs: number;
  readonly isComplete: boolean;
  readonly streams: readonly LoggedStream[];
  /** By stream, then by day; the last line of a day counts. */
  readonly files: ReadonlyMap<FeedId, ReadonlyMap<number, LoggedFile>>;
  /** Bytes of whole lines. */
  readonly bytes: number;
};

/** Reads the log of a folder; an empty one if there is none. Rejects one that leads out of the folder. */
export const readLog = async (path: string): Promise<ExportLog> => {
  await requireNoLink(path);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const lines = whole
    .split('\n')
    .slice(0, -1)
    .map((line, i) => parseLine(path, line, i + 1));
  const log = fold(lines);
  for (const days of log.files.values())
    for (const { file } of days.values()) await requireNoLink(join(dirname(path), file));
  // The arguments end the first entry: without them its streams may have been cut off.
  return log.arguments === undefined ? emptyLog() : { ...log, bytes: Buffer.byteLength(whole) };
};

/** The folder may be somebody else's: what is written must stay inside it. */
const requireNoLink = async (path: string): Promise<void> => {
  const isLink = await lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false, // reading it says why
  );
  if (isLink) throw refusal(`${path} is a symbolic link.`);
};

/** What `nameFiles` makes: no path. */
const isFileName = (name: unknown): boolean => typeof name === 'string' && /^\w[\w.-]*$/.test(name);

const parseLine = (path: string, line: string, number: number): Line => {
  const parsed = parseObject(path, line, number);
  if ('arguments' in parsed && parsed.log !== logVersion) throw refusal(`${path} was written by another release.`);
  const named = 'stream' in parsed ? parsed.stream : 'file' in parsed ? parsed.file : undefined;
  if (named !== undefined && !isFileName(named?.file))
    throw refusal(`Line ${number} of ${path} has ${JSON.stringify(named?.file)} for the name of a file.`);
  return parsed;
};

const parseObject = (path: string, line: string, number: number): Line => {
  try {
    return Object(JSON.parse(line)) as Line; // written by `openExportLog`
  } catch (cause) {
    throw refusal(`Line ${number} of ${path} is not JSON.`, { cause });
  }
};

const refusal = (what: string, options?: ErrorOptions): CommandError =>
  new CommandError(exitCodes.refused, `${what} Export into another folder.`, options);

const fold = (lines: readonly Line[]): Omit<ExportLog, 'bytes'> => {
  const files = new Map<FeedId, Map<number, LoggedFile>>();
  const streams = new Map<FeedId, LoggedStream>();
  let [args, span, runs, isComplete]: [LoggedArguments | undefined, ExportSpan | undefined, number, boolean] = [
    undefined,
    undefined,
    0,
    false,
  ];
  for (const line of lines) {
    if ('arguments' in line) args = line.arguments;
    if ('span' in line) [span, runs, isComplete] = [line.span, runs + 1, false];
    if ('complete' in line) isComplete = true;
    if ('stream' in line) streams.set(line.stream.feedId, line.stream);
    if ('file' in line) {
      const { feedId, day } = line.file;
      const days = files.get(feedId) ?? new Map<number, LoggedFile>();
      files.set(feedId, days.set(day, line.file));
    }
  }
  return { arguments: args, span, runs, isComplete, streams: [...streams.values()], files };
};

/** The log of a folder without an export. */
export const emptyLog = (): ExportLog => ({ ...fold([]), bytes: 0 });

/** Appends lines; each call resolves when its line is on the disk. */
export type LogWriter = {
  readonly append: (...lines: readonly Line[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Opens the log for appending, behind its last whole line. */
export const openExportLog = async (path: string, { bytes }: ExportLog): Promise<LogWriter> => {
  const file: FileHandle = await open(path, bytes === 0 ? 'w' : 'r+');
  let at = bytes;
  await file.truncate(bytes);
  return {
    append: async (...lines) => {
      const text = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await writeWhole(file, text, path, at);
      at += text.length;
      await file.datasync();
    },
    close: () => file.close(),
  };
};

/** Writes all bytes, at a position or where the file is; a failure names the file, which the system's own error does not. */
export const writeWhole = async (
  handle: FileHandle,
  chunk: Uint8Array,
  path: string,
  position?: number,
): Promise<void> => {
  try {
    for (let done = 0; done < chunk.length; ) {
      const place = position === undefined ? null : position + done;
      done += (await handle.write(chunk, done, chunk.length - done, place)).bytesWritten;
    }
  } catch (error) {
    throw Object.assign(error as Error, { path }); // of the file system
  }
};

/** The last second of a day that begins at a second. */
export const endOf = (day: number): number => day + daySeconds - 1;

/** The first second of the day of a second, in UTC. */
export const dayStartOf = (second: number): number => Math.floor(second / daySeconds) * daySeconds;
