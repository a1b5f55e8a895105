// The folder of an export: one file per stream and day in UTC. A file gets its name when it is complete and on the disk, so that whatever has a name is
// whole. A later run reads each stream again from its second newest day on: late reports and what was interrupted are in it (D188).
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExportStream } from '@sealpost/client/export';
import { daySeconds, type FeedId, parseFeedId, withoutTrailing } from '@sealpost/protocol';
import { openDraft } from '@sealpost/server/runtime/file-replacement';
import { makeFolder } from '@sealpost/server/runtime/files';
import { acquireLock } from '@sealpost/server/runtime/process-lock';
import { CommandError, exitCodes, usageError } from '../../failure.ts';

const recordName = '_sealpost-export.json';
const lockName = '_sealpost-export.lock';
const partialSuffix = '.partial';

/** What must be the same to continue an export: argument → value. */
export type ExportedArguments = Readonly<Record<string, string | boolean | readonly string[] | null>>;

/** A stream with the name that its files begin with. */
export type FolderStream = ExportStream & {
  readonly file: string;
  /** When the first reports of its two newest files were observed: day → second. A source that begins later has lost reports of that day. */
  firsts: Readonly<Record<string, number>>;
};

/** What the folder remembers, in `_sealpost-export.json`. */
type ExportRecord = {
  readonly arguments: ExportedArguments;
  /** First second of the time range, as the first run understood it. */
  readonly from: number;
  readonly streams: readonly Omit<FolderStream, 'file'>[];
};

/** One file that is being written. */
export type DayFile = {
  readonly day: number;
  readonly name: string;
  readonly write: (bytes: Uint8Array | string) => Promise<void>;
  /** Gives the file its name. */
  readonly complete: () => Promise<void>;
  readonly discard: () => Promise<void>;
};

export type ExportFolder = {
  readonly from: number;
  readonly streams: readonly FolderStream[];
  /** Whether an earlier run has begun this export. */
  readonly isResumed: boolean;
  /** The second that a stream continues at. */
  readonly startOf: (stream: FolderStream) => number;
  /** The file of a day that an earlier run wrote, if it begins before a second: what begins there would replace it by less. */
  readonly fullerFile: (stream: FolderStream, day: number, first: number) => string | undefined;
  /** Opens the file of a day whose first report was observed at a second. */
  readonly openDay: (stream: FolderStream, day: number, first: number) => Promise<DayFile>;
  /** Releases the folder; what is complete stays. */
  readonly close: () => void;
};

export type FolderRequest = {
  readonly path: string;
  readonly extension: string;
  readonly arguments: ExportedArguments;
  readonly from: number;
  /** The streams to export; called with those of an earlier run. */
  readonly find: (known: readonly ExportStream[]) => Promise<readonly ExportStream[]>;
};

/** Opens a new folder or one with an earlier run of the same export. */
export async function openFolder(request: FolderRequest): Promise<ExportFolder> {
  const { path, extension } = request;
  const found = await request.find(readRecord(request)?.streams ?? []); // before the folder is made: a mistake leaves none
  makeFolder(path);
  const release = await acquireLock(join(path, lockName), (pid) => {
    const text = `An export into ${path} is running: process ${pid}. Wait for it, or choose another folder.`;
    return new CommandError(exitCodes.refused, text);
  });
  try {
    const before = readRecord(request); // another export may have ended meanwhile
    for (const name of readdirSync(path))
      if (isLeftover(name) && name !== lockName) await rm(join(path, name), { force: true });
    const named = nameFiles(found, before?.streams ?? []);
    const from = before?.from ?? request.from;
    const save = async (): Promise<void> => {
      const kept = named.map(({ feedId, name, firsts }) => ({ feedId, name, firsts }));
      const record: ExportRecord = { arguments: request.arguments, from, streams: kept };
      const file = await openFile(path, recordName);
      try {
        await file.write(`${JSON.stringify(record, null, 2)}\n`);
        await file.complete();
      } catch (error) {
        await file.discard();
        throw error;
      }
    };
    await save();
    const existing = new Set(readdirSync(path));
    const nameOf = ({ file }: FolderStream, date: string): string => `${file}_${date}.${extension}`;
    return {
      from,
      streams: named.filter(({ feedId }) => found.some((one) => one.feedId === feedId)),
      isResumed: before !== undefined,
      startOf: (stream) => {
        const dates = [...existing].flatMap((name) => {
          const date = name.slice(stream.file.length + 1).slice(0, 10);
          return name === nameOf(stream, date) && /^\d{4}-\d\d-\d\d$/.test(date) ? [date] : [];
        });
        const second = dates.sort().at(-2);
        return second === undefined ? from : Math.max(from, Date.parse(second) / 1_000);
      },
      fullerFile: (stream, day, first) => {
        const date = formatDay(day);
        const name = nameOf(stream, date);
        return existing.has(name) && Number(stream.firsts[date]) < first ? name : undefined;
      },
      openDay: async (stream, day, first) => {
        const date = formatDay(day);
        const file = await openFile(path, nameOf(stream, date));
        const complete = async (): Promise<void> => {
          const firsts = Object.entries({ ...stream.firsts, [date]: first }).sort();
          stream.firsts = Object.fromEntries(firsts.slice(-2));
          await save();
          await file.complete();
        };
        return { ...file, day, complete };
      },
      close: release,
    };
  } catch (error) {
    release();
    throw error;
  }
}

const formatDay = (second: number): string => new Date(second * 1_000).toISOString().slice(0, 10);

/** The first second of the day of a second, in UTC. */
export const dayStartOf = (second: number): number => Math.floor(second / daySeconds) * daySeconds;

/** Files of the lock, and those that a killed process left. */
const isLeftover = (name: string): boolean => name.startsWith(lockName) || name.endsWith(partialSuffix);

/** What an earlier run of the same export left; undefined if there was none, or another one without a file. Rejects a folder with anything else. */
const readRecord = ({ path, arguments: given }: FolderRequest): ExportRecord | undefined => {
  const names = namesIn(path).filter((name) => name !== 'lost+found' && !isLeftover(name));
  const files = names.filter((name) => name !== recordName);
  if (files.length === names.length) {
    if (files.length === 0) return undefined;
    throw new CommandError(exitCodes.refused, `${path} is not empty and has no export. Choose another folder.`);
  }
  const record = parseRecord(join(path, recordName));
  const change = Object.entries(given).find(
    ([name, value]) => JSON.stringify(record.arguments[name]) !== JSON.stringify(value),
  );
  if (change === undefined) return record;
  if (files.length === 0) return undefined;
  const [name, value] = change;
  const before = record.arguments[name];
  const text = `${path} has another export: ${name} was ${show(before)}, now it is ${show(value)}. Run the same command to continue it, or choose another folder.`;
  throw new CommandError(exitCodes.refused, text);
};

const namesIn = (path: string): readonly string[] => {
  try {
    return readdirSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // of the file system
    if (code === 'ENOENT') return [];
    throw code === 'ENOTDIR' ? usageError(`${path} is a file, expected a folder.`) : error;
  }
};

/** Reads the record of a folder, which may be somebody else's. */
const parseRecord = (path: string): ExportRecord => {
  const text = readFileSync(path, 'utf8');
  try {
    const { arguments: args, from, streams } = Object(JSON.parse(text));
    if (!Number.isInteger(from)) throw new Error('from is not a second');
    const read = (stream: unknown): ExportRecord['streams'][number] => {
      const { feedId, name, firsts } = Object(stream);
      return { feedId: parseFeedId(feedId), name: String(name), firsts: { ...Object(firsts) } };
    };
    return { arguments: { ...Object(args) }, from, streams: [...streams].map(read) };
  } catch (cause) {
    const text = `${path} is not the record of an export. Export into another folder.`;
    throw new CommandError(exitCodes.refused, text, { cause });
  }
};

const show = (value: unknown): string => {
  if (value === null || value === undefined || value === false) return 'not set';
  return Array.isArray(value) ? value.join(' ') || 'all streams' : value === true ? 'set' : String(value);
};

/** Names streams for files: what a file system allows, and none alike. Streams of earlier runs keep theirs, whatever they are called now. */
const nameFiles = (found: readonly ExportStream[], known: ExportRecord['streams']): readonly FolderStream[] => {
  const knownIds = new Set<FeedId>(known.map(({ feedId }) => feedId));
  const taken = new Set<string>();
  const name = (stream: ExportStream, firsts: FolderStream['firsts']): FolderStream => {
    const allowed = stream.name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+/, '');
    const plain = withoutTrailing(allowed, '.-').slice(0, 100);
    const file = plain === '' || taken.has(plain.toLowerCase()) ? `${plain}-${stream.feedId}`.replace(/^-/, '') : plain;
    taken.add(file.toLowerCase());
    return { ...stream, file, firsts };
  };
  return [
    ...known.map((stream) => name(stream, stream.firsts)),
    ...found.filter(({ feedId }) => !knownIds.has(feedId)).map((stream) => name(stream, {})),
  ];
};

/** Opens a file under a temporary name; failures of writing name the file, which the system's own do not. */
const openFile = async (folder: string, name: string): Promise<Omit<DayFile, 'day'>> => {
  const path = join(folder, name);
  const { handle, complete, discard } = await openDraft(path, join(folder, `.${name}${partialSuffix}`), 0o666);
  const write = (data: Uint8Array | string): Promise<void> =>
    handle.appendFile(data).catch((error: NodeJS.ErrnoException) => {
      throw Object.assign(error, { path });
    });
  return { name, write, complete, discard };
};
