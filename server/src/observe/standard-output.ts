// The log's lines to standard output, many at once, without ever waiting for whoever reads them.
import { write as writeBytes, writeSync } from 'node:fs';
import { setTimeout as setTimeoutPromise } from 'node:timers/promises';

/** Where lines go. Each write is one whole line; one that is not a plain answer's should not wait for others. */
export type LogDestination = {
  readonly write: (line: string, now?: boolean) => void;
  readonly flushSync?: () => void;
  /** Resolves when all is written, or nobody reads it; leaves nothing in the process. A line after that is still written. */
  readonly close?: () => Promise<void>;
};

export type OutputListeners = {
  /** Lines were lost just now, or could not be written and wait for the next ones. */
  readonly onLost: () => void;
  /** Lines can be written again, and so many were lost. */
  readonly onDropped: (count: number) => void;
};

/** Lines that wait for a slow reader; more are dropped and counted, since a service that waits for its log is down. */
const waitingBytesMax = 16 * 1024 * 1024;

/** Lines are handed over so many characters at once, or every so many milliseconds: a call for each would cost more than the line. */
const handOverCharacters = 32_768;
const handOverMs = 50;

const descriptor = 1;
const writtenBytesMax = 1024 * 1024;
const noBytes: Buffer = Buffer.alloc(0);
/** Pauses while a pipe is full: the first one, doubled up to the second until its reader has read. */
const [retryMinMs, retryMaxMs] = [10, 100];
const drainLookMs = 10;
/** At the exit, such a pipe is waited for so long in all. */
const flushMaxMs = 2_000;
/** At a stop, a reader that reads nothing for so long is no longer waited for. A slow one gets everything. */
const unreadMaxMs = 3_000;
/** A write that takes longer waits for a reader that does not read: another would stop this process. */
const stuckMs = 1_000;

const isBusy = ({ code }: NodeJS.ErrnoException): boolean => code === 'EAGAIN' || code === 'EBUSY';

const sleepSync = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

/** Writes what can be written now; returns the rest. */
const writeNow = (bytes: Buffer, onFailed: () => void): Buffer => {
  const endMs = performance.now() + flushMaxMs;
  let rest = bytes;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      const isWorthWaiting = isBusy(error as NodeJS.ErrnoException) && performance.now() < endMs; // of the system call
      if (!isWorthWaiting) {
        onFailed();
        break;
      }
      sleepSync(10);
    }
  }
  return rest;
};

/** Bytes that wait, those being written included: what is taken is counted until it is settled. */
const createWaiting = () => {
  const waiting: Buffer[] = [];
  let bytes = 0;
  return {
    bytes: () => bytes,
    hasMore: () => waiting.length > 0,
    add: (added: Buffer): void => {
      waiting.push(added);
      bytes += added.length;
    },
    /** The first of what waits; not all, because after a failure it is taken again with every line. */
    take: (): Buffer => {
      let [count, length] = [0, 0];
      while (count < waiting.length && length < writtenBytesMax) length += (waiting[count++] as Buffer).length; // within bounds
      const taken = waiting.splice(0, count);
      return taken.length === 1 ? (taken[0] as Buffer) : Buffer.concat(taken); // there is one
    },
    /** What was not written of what was taken waits again. */
    settle: (taken: Buffer, rest: Buffer): void => {
      bytes -= taken.length - rest.length;
      if (rest.length > 0) waiting.unshift(rest);
    },
    clear: (): void => {
      for (const { length } of waiting.splice(0)) bytes -= length;
    },
  };
};

/** Tries again later, and ever later until it is told that something was written. */
const createRetry = (act: () => void) => {
  let pauseMs = retryMinMs;
  let timer: NodeJS.Timeout | undefined;
  return {
    later: (keepsProcess: boolean): void => {
      timer = setTimeout(act, pauseMs);
      if (!keepsProcess) timer.unref();
      pauseMs = Math.min(2 * pauseMs, retryMaxMs);
    },
    stop: (): void => clearTimeout(timer),
    wrote: (): void => {
      pauseMs = retryMinMs;
    },
  };
};

/** Bytes on their way to standard output. A failure loses none: the next write begins with them. It must not end the service. */
const createOutput = ({ onLost, onDropped }: OutputListeners, onEmpty: () => void) => {
  const waiting = createWaiting();
  let writingSinceMs: number | undefined;
  let writtenMs = 0;
  let dropped = 0;
  let [hasFailed, isGivenUp] = [false, false];
  const tellDropped = (): void => {
    const count = dropped;
    dropped = 0;
    if (count > 0) onDropped(count);
  };
  const advance = (): void => {
    if (writingSinceMs !== undefined) return;
    if (waiting.bytes() === 0) {
      onEmpty();
      tellDropped();
      return;
    }
    retry.stop();
    writingSinceMs = performance.now();
    const bytes = waiting.take();
    writeBytes(descriptor, bytes, (error, written) => {
      writingSinceMs = undefined;
      waiting.settle(bytes, error ? bytes : bytes.subarray(written));
      hasFailed = error !== null && !isBusy(error);
      if (hasFailed) return onLost();
      if (error) return retry.later(!isGivenUp);
      writtenMs = performance.now();
      retry.wrote();
      advance();
    });
  };
  const retry = createRetry(advance);
  const add = (lines: string): void => {
    const bytes = Buffer.from(lines);
    if (waiting.bytes() + bytes.length > waitingBytesMax) {
      dropped += lines.split('\n').length - 1;
      onLost();
    } else waiting.add(bytes);
  };
  return {
    write: (lines: string): void => {
      add(lines);
      advance();
    },
    /** Resolves when nothing waits, or it cannot be written: then it is given up. */
    drain: async (): Promise<void> => {
      const startedMs = performance.now();
      advance(); // also after a failure
      hasFailed = false;
      const isRead = () => performance.now() - Math.max(startedMs, writtenMs) < unreadMaxMs;
      while (waiting.bytes() > 0 && !hasFailed && isRead()) await setTimeoutPromise(drainLookMs);
      retry.stop();
      isGivenUp = waiting.bytes() > 0;
      waiting.clear();
      if (isGivenUp) onLost();
    },
    /** With these lines, too: a process that exits writes nothing that a thread has not begun to. What is being written at this moment is not waited for. */
    flushSync: (lines: string): void => {
      if (lines !== '') add(lines);
      if (writingSinceMs !== undefined && performance.now() - writingSinceMs > stuckMs) return;
      for (let rest = noBytes; waiting.hasMore() && rest.length === 0; ) {
        const bytes = waiting.take();
        rest = writeNow(bytes, onLost);
        waiting.settle(bytes, rest);
      }
    },
  };
};

export const openStandardOutput = (listeners: OutputListeners): LogDestination => {
  void process.stdout; // from here on a pipe does not block: a process cannot end while a write to one that is full waits
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  let isHeld = false;
  const take = (): string => {
    clearTimeout(timer);
    timer = undefined;
    const lines = waiting;
    waiting = '';
    return lines;
  };
  const handOver = (): void => {
    const lines = take();
    if (lines !== '') output.write(lines);
  };
  const flushSync = (): void => output.flushSync(take());
  const letGo = (): void => {
    if (waiting !== '' || !isHeld) return;
    isHeld = false;
    process.off('exit', flushSync);
  };
  const output = createOutput(listeners, letGo);
  return {
    write: (line, now = false) => {
      waiting += line;
      if (!isHeld) process.on('exit', flushSync);
      isHeld = true;
      if (now || waiting.length >= handOverCharacters) return handOver();
      timer ??= setTimeout(handOver, handOverMs).unref();
    },
    flushSync,
    close: async () => {
      handOver();
      await output.drain();
      letGo();
    },
  };
};
