// The log's lines to standard output, many at once, without ever waiting for whoever reads them.
import { pino } from 'pino';

/** Where lines go. Each write is one whole line; one that is not a plain answer's should not wait for others. */
export type LogDestination = {
  readonly write: (line: string, now?: boolean) => void;
  readonly flushSync?: () => void;
  /** Flushes, and leaves nothing in the process. A line after that is still written. */
  readonly close?: () => void;
};

/** Lines that wait for a slow reader; more are dropped and counted, since a service that waits for its log is down. */
const waitingBytesMax = 16 * 1024 * 1024;

/** Lines are handed over so many characters at once, or every so many milliseconds: a call for each would cost more than the line. */
const handOverCharacters = 32_768;
const handOverMs = 50;

type OutputListeners = {
  /** Lines were lost just now: dropped, or not written. */
  readonly onLost: () => void;
  /** The reader is back, and so many lines were dropped since it left. */
  readonly onDropped: (count: number) => void;
};

const openOutput = ({ onLost, onDropped }: OutputListeners) => {
  const output = pino.destination({ dest: 1, sync: false, maxLength: waitingBytesMax });
  let dropped = 0;
  output.on('drop', (lines: string) => {
    dropped += lines.split('\n').length - 1;
    onLost();
  });
  output.on('drain', () => {
    const count = dropped;
    dropped = 0;
    if (count > 0) onDropped(count);
  });
  output.on('error', onLost); // a log that cannot be written must not end the service; the next line tries again
  return output;
};

export const openStandardOutput = (listeners: OutputListeners): LogDestination => {
  let output: ReturnType<typeof openOutput> | undefined;
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  const handOver = (): void => {
    clearTimeout(timer);
    timer = undefined;
    process.off('exit', flushSync);
    const lines = waiting;
    waiting = '';
    if (lines === '') return;
    output ??= openOutput(listeners);
    output.write(lines);
  };
  const flushSync = (): void => {
    handOver();
    try {
      output?.flushSync();
    } catch {
      // As above: the disk of the log is full, or its reader is gone.
    }
  };
  return {
    write: (line, now = false) => {
      waiting += line;
      if (now || waiting.length >= handOverCharacters) return handOver();
      if (timer !== undefined) return;
      timer = setTimeout(handOver, handOverMs).unref();
      process.on('exit', flushSync);
    },
    flushSync,
    close: () => {
      flushSync();
      output?.end(); // pino holds on to it until then, to flush it at the exit
      output = undefined;
    },
  };
};
