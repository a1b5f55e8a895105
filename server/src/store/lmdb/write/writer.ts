// The caller's side of the writer thread. When a write fails, the caller gets the error, writing counts as stopped, and it is retried until it works
// (D135).
import { join } from 'node:path';
import { openChannel, startThread } from '../../../runtime/threads.ts';
import {
  type AdminStore,
  type AppendOutcome,
  CorruptRecordError,
  type NewReport,
  type QuarantinedReport,
  type Retention,
  StoreError,
  type StoreErrorCode,
  type Trimmed,
  type UsageStore,
  type WritingPart,
  type WritingStop,
  writingParts,
} from '../../store.ts';
import type { StoreEvent } from '../../store-event.ts';
import type { WritingTimes } from '../../write-state.ts';
import { createWriteState, type WriteState } from '../../write-state.ts';
import type { SharedEnvironment } from '../environment.ts';
import { isShortOfSpace, writeFailure } from '../failure.ts';
import { watchExit } from './exit-gate.ts';
import type {
  PackedBatch,
  StoreFiles,
  ThreadError,
  WriterAnswer,
  WriterFailure,
  WriterRemark,
  WriterRequest,
  WriterSettings,
} from './writer-thread.ts';
import type { WriterToken } from './writer-token.ts';

export type Writer = {
  /** Resolves once the thread has opened the store; rejects when it ends before. */
  readonly ready: () => Promise<void>;
  readonly append: (batch: readonly NewReport[]) => Promise<readonly AppendOutcome[]>;
  readonly trim: (retention: Retention) => Promise<Trimmed>;
  readonly quarantine: (rejected: readonly QuarantinedReport[]) => Promise<void>;
  readonly addUsage: UsageStore['add'];
  readonly putRecords: AdminStore['put'];
  /** Makes a change to the administrative environment on this thread, while the other one does not; notes how it went. */
  readonly administer: (change: () => void) => Promise<void>;
  /** How often this process has written; undefined while it does, and when that is unknown. */
  readonly writes: () => number | undefined;
  /** What cannot be written to at present. */
  readonly stops: () => readonly WritingStop[];
  readonly close: () => Promise<void>;
};

export type WriterOptions = {
  /** The folder of the store. */
  readonly folder: string;
  readonly files: StoreFiles;
  /** Absent where only usage is added; then the thread is started by the first addition. */
  readonly place: WriterToken | undefined;
  readonly tell: (event: StoreEvent) => void;
  /** Made by `createClosings`, and known to the environments that this thread reads. */
  readonly closings: Closings;
  /** Opens an environment of this thread again, where it has to be. */
  readonly refresh: (part: WritingPart) => void;
  readonly checkReadersEveryMs?: number;
  /** False: the thread does not keep the process alive while it has nothing to write. */
  readonly keepsProcess?: boolean | undefined;
} & WritingTimes;

/** A commit takes milliseconds, on a very slow disk seconds. */
const stallMsDefault = 30_000;

export type Closings = {
  readonly counter: Int32Array<SharedArrayBuffer>;
  readonly reports: SharedEnvironment;
  readonly administration: SharedEnvironment;
  /** Questions to the thread about administrative records that have no answer yet. */
  pending: number;
};

/** A failed commit closes the environment in the thread within a millisecond; callers wait at most this long for it. */
const closingMaxMs = 200;

/** How the writer thread has the reading thread reopen their environment. */
export function createClosings(): Closings {
  const counter = new Int32Array(new SharedArrayBuffer(8));
  const watch = (index: 0 | 1, isHeld: () => boolean): SharedEnvironment => ({
    closings: () => Atomics.load(counter, index),
    mayReopen: (seen) => {
      if (!isHeld()) return true;
      Atomics.wait(counter, index, seen, closingMaxMs);
      return Atomics.load(counter, index) !== seen;
    },
  });
  const closings: Closings = {
    counter,
    reports: watch(0, () => true),
    administration: watch(1, () => closings.pending > 0),
    pending: 0,
  };
  return closings;
}

/** `tell` gets every durable append, stops, and the number of dead readers found at each check. */
export function openWriter(options: WriterOptions): Writer {
  const { folder, place, tell, closings, refresh, probeEveryMs, stallMs = stallMsDefault } = options;
  const noteEnd = (why: string): void => {
    states[place === undefined ? 'administration' : 'reports'].failed(threadFailure(folder, why, false));
    tell({ kind: 'threadEnded', thread: 'writer', reason: why });
  };
  const start = () => startWriterThread(options, noteEnd);
  let channel = place && start();
  let isClosed = false;
  let writes = 0;
  const ask = async (part: WritingPart, request: WriterRequest): Promise<unknown> => {
    if (isClosed) throw new StoreError('store_closed', `The store in ${folder} is closed.`);
    channel ??= start();
    const state = states[part];
    requireWritable(folder, state.current());
    if (part === 'administration') closings.pending += 1;
    const stall = setTimeout(() => isClosed || state.failed(stalled(folder, stallMs)), stallMs).unref();
    const answer = await channel
      .ask(request)
      .catch((error: StoreError) => {
        state.failed(error);
        throw error;
      })
      .finally(() => {
        writes += 1;
        clearTimeout(stall);
        if (part === 'administration') closings.pending -= 1;
      });
    if (answer.error === undefined) {
      state.worked();
      if (request.act === 'append') tell({ kind: 'committed', seconds: answer.seconds });
      return answer.result;
    }
    throw noteFailure(part, answer);
  };
  const noteFailure = (part: WritingPart, { error: thrown, isClosed: mustReopen }: WriterFailure): Error => {
    if (mustReopen) reopen(part);
    const error = toError(part, folder, thrown);
    if (error instanceof StoreError) states[part].failed(error);
    return error;
  };
  const reopen = (part: WritingPart): void => {
    tryRefresh(() => refresh(part));
    channel?.send({ act: 'reopen', part });
  };
  const states = createStates(tell, probeEveryMs, (part) =>
    part === 'administration' ? inTurn(() => ask(part, { act: 'probe', part })) : ask(part, { act: 'probe', part }),
  );
  const inTurn = createSerializer(); // while one thread reopens the administrative environment, the other must not have it open
  return {
    ready: () => channel?.ready() ?? Promise.resolve(),
    // Copied, not transferred: once any memory of a process was taken from it, V8 looks at every access to bytes whether they are still there.
    append: (batch) => ask('reports', { act: 'append', ...packBatch(batch) }) as Promise<readonly AppendOutcome[]>, // as the thread answers
    trim: (retention) => ask('reports', { act: 'trim', retention }) as Promise<Trimmed>, // as the thread answers
    quarantine: (rejected) => ask('reports', { act: 'quarantine', rejected }) as Promise<void>, // as the thread answers
    addUsage: (rows, uses, nowMs) =>
      inTurn(() => ask('administration', { act: 'usage', rows, uses, nowMs })) as Promise<void>, // as the thread answers
    putRecords: (records, entry) =>
      inTurn(() => ask('administration', { act: 'put', records, entry })) as Promise<void>, // as the thread answers
    administer: (change) => inTurn(async () => noteWrite(states.administration, join(folder, 'admin'), change)),
    writes: () =>
      isClosed || channel === undefined || channel.waiting() > 0 || states.reports.current() ? undefined : writes,
    stops: () => Object.values(states).flatMap((state) => state.current() ?? []),
    close: async () => {
      isClosed = true;
      for (const state of Object.values(states)) state.close();
      await channel?.close({ act: 'close' });
    },
  };
}

/** A small write may still fit where a large one failed: without this, writing would stop and resume all the time. */
const requireWritable = (folder: string, stop: WritingStop | undefined): void => {
  const isStillFull = stop?.code === 'store_disk_full' && isShortOfSpace(folder);
  if (stop !== undefined && (isStillFull || stop.code === 'store_taken_over'))
    throw new StoreError(stop.code, stop.reason);
};

const tryRefresh = (refresh: () => void): void => {
  try {
    refresh();
  } catch {
    // It is closed, which is what the thread needs; each read tries to open it.
  }
};

const startWriterThread = (
  { folder, files, place, tell, closings, checkReadersEveryMs = 60_000, keepsProcess }: WriterOptions,
  onEnded: (why: string) => void,
) =>
  openChannel<WriterRequest, WriterAnswer, WriterRemark>({
    start: () => {
      const { gate, over } = watchExit();
      const settings: WriterSettings = { folder, files, place, closings: closings.counter, checkReadersEveryMs, gate };
      try {
        return startThread('./writer-thread', import.meta.url, settings).once('exit', over);
      } catch (error) {
        over();
        throw error;
      }
    },
    onRemark: (remark) => {
      if ('damaged' in remark) tell({ kind: 'damaged', total: 0, ...remark.damaged });
      else tell({ kind: 'staleReaders', count: remark.staleReaders });
    },
    onEnded,
    keepsProcess,
    failure: (why, wasAsked) => threadFailure(folder, why, wasAsked),
  });

/** Runs one act after the other. */
const createSerializer = () => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(act: () => Promise<T>): Promise<T> => {
    const done = last.then(act);
    last = done.catch(() => {});
    return done;
  };
};

type States = Readonly<Record<WritingPart, WriteState>>;

const createStates = (
  tell: (event: StoreEvent) => void,
  probeEveryMs: number | undefined,
  probe: (part: WritingPart) => Promise<unknown>,
): States => {
  const create = (part: WritingPart) =>
    createWriteState({ part, tell, probe: () => probe(part), ...(probeEveryMs !== undefined && { probeEveryMs }) });
  return Object.fromEntries(writingParts.map((part) => [part, create(part)])) as States; // one for each
};

/** Failures of the system are reported; errors of the caller's own function are not. */
const noteWrite = (state: WriteState, folder: string, change: () => void): void => {
  try {
    change();
  } catch (error) {
    if (!isSystemFailure(error)) throw error;
    const failure = writeFailure(folder, error);
    state.failed(failure);
    throw failure;
  }
  // That writing works again is found by the thread's next try: it needs more of the system than this, and both would contradict each other.
};

const isSystemFailure = (error: unknown): boolean =>
  error instanceof StoreError
    ? ['store_taken_over', 'store_replaced'].includes(error.code)
    : (error as { errno?: unknown }).errno !== undefined || typeof (error as { code?: unknown }).code === 'number'; // whatever was thrown

const threadFailure = (folder: string, why: string, wasAsked: boolean): StoreError =>
  wasAsked
    ? new StoreError(
        'store_outcome_unknown',
        `The writer thread of ${folder} stopped: ${why}. The batch may or may not be stored; send it again.`,
      )
    : new StoreError('store_unavailable', `The writer thread of ${folder} is not running: ${why}. Retry shortly.`);

const stalled = (folder: string, ms: number): StoreError =>
  new StoreError(
    'store_unavailable',
    `A write to ${folder} has taken more than ${ms / 1_000} s and is still in progress; nothing is acknowledged meanwhile. Check the disk; writing resumes automatically.`,
  );

const toError = (part: WritingPart, folder: string, thrown: ThreadError): Error => {
  const { name, message, code } = thrown;
  if (name === 'CorruptRecordError') return new CorruptRecordError(message);
  if (name === 'StoreError') return new StoreError(code as StoreErrorCode, message); // its code, by its name
  return writeFailure(
    join(folder, part === 'reports' ? 'reports' : 'admin'),
    Object.assign(new Error(message), { code }),
  );
};

const packBatch = (batch: readonly NewReport[]): PackedBatch => {
  const bytes = new Uint8Array(batch.reduce((sum, { fullReport }) => sum + fullReport.length, 0));
  let end = 0;
  const reports = batch.map(({ fullReport, ...report }) => {
    bytes.set(fullReport, end);
    end += fullReport.length;
    return { ...report, end };
  });
  return { reports, bytes };
};
