// Owns the caller's side of the writer thread, and what happens when the disk fails: full means wait for space, anything else
// means stop, because after a failed flush nobody knows what the disk holds (D51).
import { statfsSync } from 'node:fs';
import { createReadiness, startThread } from '../threads.ts';
import type { PackedBatch, WriterAnswer, WriterRemark, WriterRequest } from './lmdb-writer-thread.ts';
import {
  type AppendOutcome,
  CorruptRecordError,
  type NewReport,
  type QuarantinedReport,
  type Retention,
  StoreError,
  type StoreEvent,
} from './store.ts';

export type Writer = {
  /** Resolves once the thread has opened the store; rejects when it ends before. */
  readonly ready: () => Promise<void>;
  readonly append: (batch: readonly NewReport[]) => Promise<readonly AppendOutcome[]>;
  readonly trim: (retention: Retention) => Promise<{ removed: number; more: boolean }>;
  readonly quarantine: (refused: readonly QuarantinedReport[]) => Promise<void>;
  /** How often this process has written; undefined while it does, and once nobody can say. */
  readonly writes: () => number | undefined;
  readonly close: () => Promise<void>;
};

type Waiting = {
  readonly act: WriterRequest['act'];
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
};

/** Less free space than this counts as a full disk: a transaction of ours takes up to a few megabytes. */
const freeBytesMin = 1024 * 1024;

/** Opens the writer of a folder; `tell` hears of every durable append, and at every check how many readers were found gone. */
export const openWriter = (folder: string, tell: (event: StoreEvent) => void, checkReadersEveryMs = 60_000): Writer => {
  const thread = startThread('./lmdb-writer-thread', import.meta.url, { folder, checkReadersEveryMs });
  const waiting: Waiting[] = [];
  let stopped: StoreError | undefined;
  let full = false;
  let hasEnded = false;
  let writes = 0;
  const readiness = createReadiness();
  const stop = (cause: unknown): void => {
    stopped ??= new StoreError(
      'store_stopped',
      `Writing to ${folder} has stopped: ${String(cause)}. Check the disk, then restart.`,
      { cause },
    );
    readiness.fail(stopped);
    for (const { reject } of waiting.splice(0)) reject(stopped);
  };
  const judge = ({ message, code, corrupt }: NonNullable<WriterAnswer['error']>): Error => {
    if (corrupt) return new CorruptRecordError(message);
    full = isFull(folder, code);
    if (full) return diskFullError(folder);
    stopped = new StoreError(
      'store_stopped',
      `Writing to ${folder} has stopped after an error: ${message}. Check the disk, then restart.`,
    );
    return new StoreError('store_write_failed', `Writing to ${folder} failed: ${message}. Nothing of it was promised.`);
  };
  thread.on('message', (message: WriterAnswer | WriterRemark) => {
    readiness.reached(); // the first message is that of the reader check, once everything is open
    if ('damaged' in message) return tell({ kind: 'damaged', total: 0, ...message.damaged });
    if ('staleReaders' in message) return tell({ kind: 'staleReaders', count: message.staleReaders });
    const { act, resolve, reject } = waiting.shift() as Waiting; // answers come in the order asked
    writes += 1;
    if (message.error !== undefined) return reject(judge(message.error));
    if (act === 'append') tell({ kind: 'committed', seconds: message.seconds });
    resolve(message.result);
  });
  thread.on('error', stop);
  thread.on('exit', () => {
    hasEnded = true;
    stop('its thread has ended');
  });
  const ask = <T>(request: WriterRequest): Promise<T> => {
    if (stopped !== undefined) return Promise.reject(stopped);
    if (full && isFull(folder, 'ENOSPC')) return Promise.reject(diskFullError(folder));
    full = false;
    return new Promise((resolve, reject) => {
      waiting.push({ act: request.act, resolve: resolve as (result: unknown) => void, reject });
      thread.postMessage(request);
    });
  };
  return {
    ready: readiness.wait,
    // Copied, not transferred: once any memory of a process was taken from it, V8 looks at every access to bytes whether they are still there.
    append: (batch) => ask({ act: 'append', ...packBatch(batch) }),
    trim: (retention) => ask({ act: 'trim', retention }),
    quarantine: (refused) => ask({ act: 'quarantine', refused }),
    writes: () => (waiting.length > 0 || stopped !== undefined ? undefined : writes),
    close: async () => {
      if (hasEnded) return;
      const ended = new Promise((resolve) => thread.once('exit', resolve));
      thread.postMessage({ act: 'close' } satisfies WriterRequest);
      waiting.push({ act: 'close', resolve: () => {}, reject: () => {} });
      await ended;
    },
  };
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

const diskFullError = (folder: string) =>
  new StoreError('store_disk_full', `The disk of ${folder} is full. Free some space; writing goes on by itself.`);

const enospc = 28;
const eio = 5;

// On a full tmpfs LMDB sees a short write and reports EIO, so the free space decides.
const isFull = (folder: string, code: unknown): boolean => {
  if (code === enospc) return true;
  if (code !== eio && code !== 'ENOSPC') return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < freeBytesMin;
};
