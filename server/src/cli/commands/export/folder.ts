// The folder of an export: one file per stream and day in UTC. A file is written under a temporary name and gets its own when it is complete and on
// the disk; the log says which ones are, so that an interrupted export continues without duplicates or holes (D188).
import { type FileHandle, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { ExportStream } from '@sealpost/client/export';
import { type FeedId, withoutTrailing } from '@sealpost/protocol';
import { makeFolder } from '../../../runtime/make-folder.ts';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { lockFolder, lockName } from './lock.ts';
import {
  dayStartOf,
  type ExportLog,
  emptyLog,
  endOf,
  type LoggedArguments,
  type LoggedFile,
  type LoggedStream,
  type LogWriter,
  logName,
  logVersion,
  openExportLog,
  readLog,
  writeWhole,
} from './log.ts';
import type { ExportSpan } from './source.ts';

/** Reports may come in this long after a day is over: a file is written again by the next run until its stream has a report so much later. */
export const lateSeconds = 3_600;

const formatDay = (second: number): string => new Date(second * 1_000).toISOString().slice(0, 10);

const partialSuffix = '.partial';

/** One file that is being written. */
export type DayFile = {
  readonly day: number;
  /** Appends what an encoder gives for reports that were observed at these seconds. */
  readonly write: (bytes: Uint8Array | string, seconds: readonly number[]) => Promise<void>;
  /** Gives the file its name; without reports there is none. `isPassed`: a report of a later day was read. */
  readonly complete: (isPassed: boolean) => Promise<void>;
  readonly discard: () => Promise<void>;
};

export type ExportFolder = {
  readonly span: ExportSpan;
  readonly streams: readonly LoggedStream[];
  /** Whether an earlier run was interrupted. */
  readonly isResumed: boolean;
  /** The second that a stream continues at; after the span when it is complete. */
  readonly startOf: (feedId: FeedId) => Promise<number>;
  /** Whether an earlier run's file of a day begins before a second: what begins there would replace it by less. */
  readonly hasMore: (feedId: FeedId, day: number, first: number) => Promise<boolean>;
  readonly openDay: (stream: LoggedStream, day: number) => Promise<DayFile>;
  /** Ends a stream that was read from a second on. Returns files of earlier runs that were not replaced: the source has lost reports of them. */
  readonly endStream: (feedId: FeedId, start: number) => Promise<readonly LoggedFile[]>;
  /** Files with reports that this run has completed. */
  readonly written: () => number;
  readonly complete: () => Promise<void>;
  /** Releases the folder; what is complete stays. */
  readonly close: () => Promise<void>;
};

export type FolderRequest = {
  readonly path: string;
  readonly extension: string;
  readonly arguments: LoggedArguments;
  readonly span: ExportSpan;
  /** Whether the span ends at a fixed time that is long enough ago for late reports. */
  readonly isPast: boolean;
  /** The streams to export; called with those of an earlier run. */
  readonly find: (known: readonly LoggedStream[]) => Promise<readonly ExportStream[]>;
};

/** Opens a new folder or one with an earlier run of the same export. */
export const openFolder = async (request: FolderRequest): Promise<ExportFolder> => {
  const { path } = request;
  const created = makeOwn(path);
  const release = await lockFolder(path);
  try {
    const log = await requireOwn(path, await readLog(join(path, logName)), request.arguments);
    const found = await request.find(log.streams);
    const writer = await openExportLog(join(path, logName), log);
    try {
      return await createFolder(request, log, writer, found, release);
    } catch (error) {
      await writer.close();
      throw error;
    }
  } catch (error) {
    await release();
    if (created !== undefined) await removeEmpty(resolve(path), resolve(created));
    throw error;
  }
};

/** Makes the folder; returns the first one that was made. */
const makeOwn = (path: string): string | undefined => {
  try {
    return makeFolder(path);
  } catch (error) {
    throw ['EEXIST', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code)) // of the file system
      ? usageError(`${path} is a file, expected a folder.`)
      : error;
  }
};

/** Removes a folder and those above it up to one, as far as they are empty. */
const removeEmpty = async (path: string, top: string): Promise<void> => {
  try {
    await rmdir(path);
  } catch {
    return; // something was written into it
  }
  if (path !== top) await removeEmpty(dirname(path), top);
};

/** Rejects a folder with anything but an earlier run of this export, and removes what a killed one left. Another export without a file is forgotten. */
const requireOwn = async (path: string, log: ExportLog, given: LoggedArguments): Promise<ExportLog> => {
  // Files of the lock are also those of a process that was killed while it took it, or is about to find it taken.
  const names = (await readdir(path)).filter((name) => name !== 'lost+found' && !name.startsWith(lockName));
  if (log.arguments === undefined && names.some((name) => name !== logName))
    throw new CommandError(exitCodes.refused, `${path} is not empty and has no export. Choose another folder.`);
  const isBare = log.files.size === 0 && names.every((name) => name === logName || name.endsWith(partialSuffix));
  const change = Object.entries(given).find(([name, value]) => isChanged(log.arguments?.[name], value));
  if (log.arguments !== undefined && change !== undefined && !isBare) {
    const [name, value] = change;
    const before = log.arguments[name];
    const text = `${path} has another export: ${name} was ${show(before)}, now it is ${show(value)}. Run the same command to continue it, or choose another folder.`;
    throw new CommandError(exitCodes.refused, text);
  }
  for (const name of names) if (name.endsWith(partialSuffix)) await rm(join(path, name), { force: true });
  return change === undefined ? log : emptyLog();
};

const isChanged = (before: unknown, now: unknown): boolean => JSON.stringify(before) !== JSON.stringify(now);

const show = (value: unknown): string => {
  if (value === null || value === undefined || value === false) return 'not set';
  return Array.isArray(value) ? value.join(' ') || 'all streams' : value === true ? 'set' : String(value);
};

const createFolder = async (
  request: FolderRequest,
  log: ExportLog,
  writer: LogWriter,
  found: readonly ExportStream[],
  release: () => Promise<void>,
): Promise<ExportFolder> => {
  const isResumed = log.span !== undefined && !log.isComplete;
  // An interrupted run keeps its time range; after a complete one the range grows to its new end.
  const span = isResumed || log.span === undefined ? (log.span ?? request.span) : { ...log.span, to: request.span.to };
  const run = isResumed ? log.runs : log.runs + 1;
  const streams = nameFiles(found, log.streams);
  await writer.append(
    ...streams.filter((one) => !log.streams.includes(one)).map((stream) => ({ stream })),
    ...(isResumed ? [] : [{ span }]),
    // Last, so that a log with arguments has all streams.
    ...(log.arguments === undefined ? [{ arguments: request.arguments, log: logVersion } as const] : []),
  );
  const files = new Map([...log.files].map(([feedId, days]) => [feedId, new Map(days)]));
  const context: Context = { request, run, span, writer, files, written: new Set() };
  return {
    span,
    streams,
    isResumed,
    startOf: (feedId) => findStart(context, feedId),
    hasMore: async (feedId, day, first) => {
      const file = files.get(feedId)?.get(day);
      return file !== undefined && file.first < first && isIntact(request, file);
    },
    openDay: (stream, day) => openDayFile(context, stream, day),
    endStream: (feedId, start) => keepLost(context, feedId, start),
    written: () => context.written.size,
    complete: () => writer.append({ complete: true }),
    close: async () => {
      await writer.close();
      await release();
    },
  };
};

type Context = {
  readonly request: FolderRequest;
  readonly run: number;
  readonly span: ExportSpan;
  readonly writer: LogWriter;
  readonly files: Map<FeedId, Map<number, LoggedFile>>;
  /** Names of the files that this process has completed. */
  readonly written: Set<string>;
};

/** Names streams for files: what a file system allows, and none alike. Streams of earlier runs keep theirs, whatever they are called now. */
const nameFiles = (found: readonly ExportStream[], known: readonly LoggedStream[]): readonly LoggedStream[] => {
  const taken = new Set(known.map(({ file }) => file.toLowerCase()));
  return found.map((stream) => {
    const before = known.find(({ feedId }) => feedId === stream.feedId);
    if (before !== undefined) return before;
    const allowed = stream.name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+/, '');
    const plain = withoutTrailing(allowed, '.-').slice(0, 100);
    const file = plain === '' || taken.has(plain.toLowerCase()) ? `${plain}-${stream.feedId}`.replace(/^-/, '') : plain;
    taken.add(file.toLowerCase());
    return { ...stream, file };
  });
};

const note = async ({ writer, files }: Context, noted: readonly LoggedFile[]): Promise<void> => {
  await writer.append(...noted.map((file) => ({ file })));
  for (const file of noted) files.set(file.feedId, (files.get(file.feedId) ?? new Map()).set(file.day, file));
};

/** Files of a stream that are settled by a report observed at a second, which was read after them: what an earlier process wrote is older. */
const settledBy = ({ files, written }: Context, feedId: FeedId, second: number): readonly LoggedFile[] =>
  [...(files.get(feedId)?.values() ?? [])]
    .filter(({ file, to, isSettled }) => !isSettled && written.has(file) && to + lateSeconds <= second)
    .map((one) => ({ ...one, isSettled: true }));

/** Files of earlier runs that this one could not replace, because the source has lost reports of them: they stay, and count as complete. */
const keepLost = async (context: Context, feedId: FeedId, start: number): Promise<readonly LoggedFile[]> => {
  const { request, run, span, files, written } = context;
  const lost: LoggedFile[] = [];
  for (const one of files.get(feedId)?.values() ?? []) {
    if (written.has(one.file) || one.day < dayStartOf(start) || isDone(context, one) || !(await isIntact(request, one)))
      continue;
    lost.push({ ...one, run, to: Math.min(endOf(one.day), span.to), isSettled: true });
  }
  await note(context, lost);
  return lost;
};

/** A file counts while it is as it was written. */
const isIntact = async ({ path }: FolderRequest, { file, bytes }: LoggedFile): Promise<boolean> => {
  const found = await stat(join(path, file)).catch(() => undefined);
  return found?.isFile() === true && found.size === bytes;
};

/** Whether a file has what this run would write. */
const isDone = ({ run, span }: Context, { day, to, isSettled, run: writtenBy }: LoggedFile): boolean =>
  (isSettled || writtenBy === run) && to >= Math.min(endOf(day), span.to);

const findStart = async (context: Context, feedId: FeedId): Promise<number> => {
  const { request, span, files } = context;
  let start = span.from;
  const days = [...(files.get(feedId)?.values() ?? [])].sort((a, b) => a.day - b.day);
  for (const one of days) {
    if (!isDone(context, one) || !(await isIntact(request, one))) return Math.max(span.from, one.day);
    start = Math.min(endOf(one.day), span.to) + 1;
  }
  return start;
};

const openDayFile = async (context: Context, stream: LoggedStream, day: number): Promise<DayFile> => {
  const { request, run, span } = context;
  const file = `${stream.file}_${formatDay(day)}.${request.extension}`;
  const partial = join(request.path, `.${file}.${process.pid}-${run}${partialSuffix}`);
  const handle: FileHandle = await open(partial, 'wx'); // what lies there is not ours
  let [bytes, reports, first, last, isOpen] = [0, 0, 0, 0, true];
  const close = async (): Promise<void> => {
    if (isOpen) await handle.close();
    isOpen = false;
  };
  const discard = async (): Promise<void> => {
    await close().catch(() => {}); // what is discarded need not be whole
    await rm(partial, { force: true });
  };
  return {
    day,
    write: async (data, seconds) => {
      if (reports === 0) first = seconds[0] ?? 0;
      last = seconds.at(-1) ?? last;
      reports += seconds.length;
      const chunk = typeof data === 'string' ? Buffer.from(data) : data;
      await writeWhole(handle, chunk, join(request.path, file));
      bytes += chunk.length;
    },
    complete: async (isPassed) => {
      if (reports === 0) return discard();
      await handle.sync();
      await close();
      await rename(partial, join(request.path, file));
      await syncFolder(request.path);
      const to = isPassed || request.isPast ? Math.min(endOf(day), span.to) : last;
      const { feedId } = stream;
      const line: LoggedFile = { feedId, day, to, run, first, reports, bytes, file, isSettled: request.isPast };
      await note(context, [line, ...settledBy(context, feedId, last)]);
      context.written.add(file);
    },
    discard,
  };
};

const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
};
