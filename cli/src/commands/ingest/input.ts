// Reading lines for ingest: from a file or standard input, stopping at an interruption with the last whole line.
import { fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { lineCharactersMax } from '@sealpost/server/ingest/report-line';
import { usageError } from '../../failure.ts';
import { unreadable } from '../../private-file.ts';
import type { Session } from '../../session.ts';

/** Bytes to read, and their number if known. The caller closes it, read or not. */
export type IngestInput = {
  readonly stream: Readable;
  readonly bytes: number | undefined;
  readonly close: () => Promise<void>;
};

/** Opens a file, or standard input for `-`. */
export async function openInput({ stdin }: Pick<Session, 'stdin'>, file: string): Promise<IngestInput> {
  if (file === '-') {
    // Node reads a folder as an empty file.
    if (stdin.fd !== undefined && fstatSync(stdin.fd).isDirectory())
      throw usageError('Standard input is a folder. Pass a file of reports.');
    return { stream: stdin, bytes: undefined, close: async () => {} };
  }
  const handle = await open(file).catch((cause: Error) => {
    throw unreadable(file, cause);
  });
  // The garbage collector would close an open handle with a warning on stderr.
  const stat = await handle.stat().catch(async (cause: Error) => {
    await handle.close();
    throw unreadable(file, cause);
  });
  if (stat.isDirectory()) {
    await handle.close();
    throw usageError(`${file} is a folder. Pass a file of reports, such as ${file}/reports.ndjson.`);
  }
  const stream = handle.createReadStream({ autoClose: false });
  const close = async (): Promise<void> => {
    stream.destroy();
    await handle.close();
  };
  return { stream, bytes: stat.isFile() ? stat.size : undefined, close };
}

// What gzip and zstd begin with. As lines, their bytes would fill the quarantine.
const isCompressed = (start: Buffer): boolean =>
  start.subarray(0, 2).equals(Buffer.of(0x1f, 0x8b)) || start.subarray(0, 4).equals(Buffer.of(0x28, 0xb5, 0x2f, 0xfd));

const requireText = (start: Buffer): void => {
  if (isCompressed(start))
    throw usageError('The input is compressed. Decompress it first, such as with: gunzip -c FILE > reports.ndjson');
};

/**
 * Passes on whole lines, however the input is cut; the last one may lack its end. An abort ends the lines there, and drops what
 * arrived of an unfinished one, which would otherwise be rejected as malformed.
 */
export async function* readWholeLines(
  input: Readable,
  signal: AbortSignal,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const stop = () => input.destroy();
  signal.addEventListener('abort', stop, { once: true });
  let held = Buffer.alloc(0);
  let read = 0;
  try {
    for await (const chunk of input) {
      if (signal.aborted) return;
      if (read === 0) requireText(chunk);
      read += chunk.length;
      onRead(read);
      const bytes = Buffer.concat([held, chunk]);
      // Longer than any line: passed on unfinished, so that ingest rejects it and it is not buffered here.
      const end = bytes.lastIndexOf('\n') + 1 || (bytes.length > lineCharactersMax ? bytes.length : 0);
      if (end > 0) yield bytes.subarray(0, end);
      held = bytes.subarray(end);
    }
    if (held.length > 0 && !signal.aborted) yield held;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
