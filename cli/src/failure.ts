// How a command ends: the exit codes, and the one line that an expected error becomes on stderr.
import { constants } from 'node:os';
import { ApiError } from '@sealpost/protocol';
import { SecretBoxError } from '@sealpost/server/access/secrets';
import { SettingError } from '@sealpost/server/config/config';
import { FileBusyError } from '@sealpost/server/runtime/file-replacement';
import { describeFileFailure } from '@sealpost/server/runtime/files';
import { CorruptRecordError, StoreError } from '@sealpost/server/store/store';
import { CommanderError } from 'commander';

/** Every exit code with its meaning; an interrupted command adds 128 + the signal's number, 130 for SIGINT. */
export const exitCodes = {
  done: 0,
  /** Input was rejected, or a check failed. */
  refused: 1,
  usage: 2,
  /** The store or the network failed. */
  unavailable: 3,
} as const;

/** An expected failure; the message says what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The error for an argument or option that cannot be used. */
export const usageError = (message: string, options?: ErrorOptions): CommandError =>
  new CommandError(exitCodes.usage, message, options);

/** Reads command-line values with the protocol's parsers; their errors become usage errors. */
export function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ApiError ? usageError(error.message, { cause: error }) : error;
  }
}

/** The exit code of a command that was interrupted. */
export const interruptedCode = ({ reason }: Pick<AbortSignal, 'reason'>): number =>
  128 + constants.signals[reason as NodeJS.Signals]; // session.ts aborts with the signal's name

/** Has whoever reads stdout left? That fails no command. */
export const hasReaderLeft = (error: unknown): boolean => isSystemError(error) && error.code === 'EPIPE';

/** Why standard output could not be written, as the end of a sentence. */
export function describeOutputFailure(error: unknown): string {
  if (hasReaderLeft(error)) return 'its reader has closed the pipe';
  const { code, message } = Object(error) as { readonly code?: string; readonly message?: string }; // whatever was thrown
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'no space left on its disk' : (message ?? String(error));
}

/** How a failed command ends: its exit code, and what to print, unless it was printed before. */
export function explainFailure(error: unknown): { readonly exitCode: number; readonly text?: string } {
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? exitCodes.done : exitCodes.usage };
  if (error instanceof CommandError) return { exitCode: error.exitCode, text: error.message };
  if (error instanceof SettingError || error instanceof SecretBoxError)
    return { exitCode: exitCodes.usage, text: error.message };
  if (error instanceof ApiError || error instanceof FileBusyError)
    return { exitCode: exitCodes.refused, text: error.message };
  if (error instanceof StoreError)
    return {
      exitCode: error.code === 'store_url_invalid' ? exitCodes.usage : exitCodes.unavailable,
      text: error.message,
    };
  if (error instanceof CorruptRecordError) {
    const text = `The store is damaged: ${error.message}. Run: sealpost store verify, then restore a backup.`;
    return { exitCode: exitCodes.unavailable, text };
  }
  if (isSystemError(error)) return { exitCode: exitCodes.unavailable, text: explainSystem(error) };
  const trace = error instanceof Error ? error.stack : String(error);
  return { exitCode: exitCodes.unavailable, text: `Unexpected error, please report it: ${trace}` };
}

const explainSystem = (error: NodeJS.ErrnoException): string => {
  const { code, message, path } = error;
  const { address, port, hostname } = Object(error);
  if (code === 'EADDRINUSE') {
    // The error of a worker crosses processes as its message alone, which ends in the address.
    const where = port === undefined ? message.split(' ').at(-1) : `${address}:${port}`;
    return `Another program is using ${where}. Stop it, or choose another address.`;
  }
  if (code === 'EACCES' && port !== undefined)
    return `Permission denied: ${address}:${port}. Ports below 1024 require privileges; choose another address.`;
  if (hostname !== undefined) return `The host ${hostname} has no address (${code}). Check its name in the address.`;
  if (code === 'ENOSPC' && path === undefined)
    return 'No space left on the disk that is written to. Free some, then run the command again.';
  return path === undefined ? `${message}.` : describeFileFailure(path, error);
};

// A failure of the operating system, such as ENOENT.
const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'code' in error && 'syscall' in error;
