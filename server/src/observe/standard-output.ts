// The log's lines to standard output, many at once, without ever waiting for whoever reads them. pino's own destination does not do: on a full disk
// its `flushSync`, which it calls at the exit, never ends (sonic-boom 4.2).
import { write as writeBytes, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where lines go. Each write is one whole line. */
export type LogDestination = {
  readonly write: (line: string) => void;
  readonly flushSync?: () => void;
  /** Resolves when all is written, or nobody reads it; leaves nothing in the process. A line after that is still written. */
  readonly close?: () => Promise<void>;
};

export type OutputListeners = {
  /** Lines were lost just now, or could not be written and wait for the next ones. */
  readonly onLost: () => void;
  /** Lines can be written again, and this many were lost. */
  readonly onDropped: (count: number) => void;
};

/** Bytes of lines that wait for a slow reader; more are dropped and counted, since a service that waits for its log is down. */
const waitingBytesMax = 16 * 1024 * 1024;
/** Lines are written this many characters at once, or this often: a call for each would cost more than the line. */
const [pieceCharacters, writeEveryMs] = [32_768, 50];
/** How often a full pipe is tried again. */
const retryMs = 20;
/** At the exit, a full pipe is waited for this long in all. */
const flushMaxMs = 2_000;
/** At a stop, a reader that reads nothing for this long is abandoned. A slow one gets everything. */
const unreadMaxMs = 3_000;
/** A write that takes longer waits for a reader that does not read: another would stop this process. */
const stuckMs = 1_000;

const descriptor = 1;

const isBusy = (error: unknown): boolean => ['EAGAIN', 'EBUSY'].includes((error as NodeJS.ErrnoException).code ?? ''); // of a system call

export function openStandardOutput({ onLost, onDropped }: OutputListeners): LogDestination {
  void process.stdout; // from here on a pipe does not block: a process cannot end while a write to one that is full waits
  /** Whole lines as text, of which the last piece still grows; as bytes, what was taken and not written. */
  let pieces: (string | Buffer)[] = [];
  /** Bytes of all pieces, and of the one that is being written. */
  let waiting = 0;
  let writing: { readonly bytes: number; readonly sinceMs: number } | undefined;
  let [writtenMs, dropped, closings] = [0, 0, 0];
  let [hasFailed, isHeld, isClosing] = [false, false, false];
  let timer: NodeJS.Timeout | undefined;
  let retry: NodeJS.Timeout | undefined;

  const take = (): Buffer | undefined => {
    const piece = pieces.shift();
    return typeof piece === 'string' ? Buffer.from(piece) : piece;
  };
  const settle = (taken: Buffer, written: number): void => {
    waiting -= written;
    if (written > 0) writtenMs = performance.now();
    if (written < taken.length) pieces.unshift(taken.subarray(written));
  };
  const letGo = (): void => {
    isHeld = false;
    process.off('exit', flushSync);
    const count = dropped;
    dropped = 0;
    if (count > 0) onDropped(count);
  };
  const advance = (): void => {
    clearTimeout(timer);
    clearTimeout(retry);
    [timer, retry] = [undefined, undefined];
    if (writing !== undefined) return;
    const taken = take();
    if (taken === undefined) {
      letGo();
      return;
    }
    writing = { bytes: taken.length, sinceMs: performance.now() };
    const closingsBefore = closings;
    writeBytes(descriptor, taken, (error, written) => {
      writing = undefined;
      const isAbandoned = closings > closingsBefore; // trying again would keep the process
      settle(taken, isAbandoned ? taken.length : error === null ? written : 0);
      hasFailed = error !== null && !isBusy(error);
      if (hasFailed)
        onLost(); // the next line tries again
      else if (error !== null && !isAbandoned) retry = setTimeout(advance, retryMs);
      else if (isClosing || dropped > 0 || waiting === 0 || waiting >= pieceCharacters) advance();
      else timer ??= setTimeout(advance, writeEveryMs).unref(); // at once it would write a line or two at a time
    });
  };
  /** A process that exits writes nothing that a thread has not begun to. What is being written at this moment is not waited for. */
  const flushSync = (): void => {
    if (writing !== undefined && performance.now() - writing.sinceMs > stuckMs) return;
    const endMs = performance.now() + flushMaxMs;
    for (let taken = take(); taken !== undefined; taken = take())
      try {
        settle(taken, writeSync(descriptor, taken));
      } catch (error) {
        settle(taken, 0);
        if (!isBusy(error) || performance.now() > endMs) {
          onLost();
          return;
        }
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
      }
  };
  return {
    write: (line) => {
      const bytes = Buffer.byteLength(line);
      if (waiting + bytes > waitingBytesMax) {
        dropped += 1;
        onLost();
        return;
      }
      if (!isHeld) process.on('exit', flushSync);
      isHeld = true;
      waiting += bytes;
      const last = pieces.at(-1);
      if (typeof last === 'string' && last.length < pieceCharacters) pieces[pieces.length - 1] = last + line;
      else pieces.push(line);
      if (retry !== undefined) return;
      if (waiting >= pieceCharacters) advance();
      else timer ??= setTimeout(advance, writeEveryMs).unref();
    },
    flushSync,
    close: async () => {
      const startedMs = performance.now();
      hasFailed = false;
      isClosing = true;
      advance(); // also after a failure
      while (waiting > 0 && !hasFailed && performance.now() - Math.max(startedMs, writtenMs) < unreadMaxMs)
        await sleep(10);
      clearTimeout(retry);
      retry = undefined;
      if (waiting > 0) onLost();
      closings += 1;
      [pieces, waiting] = [[], writing?.bytes ?? 0];
      letGo();
    },
  };
}
