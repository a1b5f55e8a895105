// What a command gets from the process it runs in: environment, streams, clock, interruption. Commands touch no globals.
import { Socket } from 'node:net';
import { hostname, userInfo } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { writeAll } from '@sealpost/server/runtime/file-replacement';
import { hasReaderLeft } from './failure.ts';
import { cleanOutput, createPaint, type Paint, toJsonLine } from './formats.ts';

/** The stream for messages to people; on a terminal it shows the progress bar. */
export type MessageStream = {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly write: (text: string) => unknown;
};

/** Standard input: a terminal can stop echoing. */
export type Input = Readable & {
  readonly fd?: number;
  readonly isTTY?: boolean;
  readonly setRawMode?: (on: boolean) => unknown;
};

export type Session = {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Input;
  /** The folder that the command runs in. */
  readonly cwd: string;
  readonly stderr: MessageStream;
  /** Is stdout a terminal, where a table may be drawn again in place? */
  readonly isTerminal?: boolean;
  /** The current size of that terminal; undefined if unknown. */
  readonly terminalSize?: () => { readonly columns: number; readonly rows: number } | undefined;
  /** Colors for stdout. */
  readonly paint: Paint;
  readonly nowMs: () => number;
  /** Who acts, for the audit log. */
  readonly actor: () => string;
  /** Writes to stdout unchanged, at the reader's pace; rejects with EPIPE if the reader has closed it. */
  readonly write: (text: string) => Promise<void>;
  /** Completes the commands that a text suggests with the flags of this run: see hints.ts. */
  readonly hint: (text: string) => Promise<string>;
  /** From the first call on, SIGINT, SIGTERM and those named abort this instead of ending the process. */
  readonly interruption: (others?: readonly NodeJS.Signals[]) => AbortSignal;
  /** The code to end with once everything is done; 0 when never called. */
  readonly exitWith: (code: number) => void;
};

/** The session of the running process. */
export const createSession = (host: NodeJS.Process): Session => ({
  env: host.env,
  stdin: host.stdin,
  cwd: host.cwd(),
  stderr: host.stderr,
  isTerminal: host.stdout.isTTY === true,
  terminalSize: () => {
    const { columns, rows } = host.stdout;
    return columns > 0 && rows > 0 ? { columns, rows } : undefined;
  },
  paint: createPaint(host.stdout, host.env),
  nowMs: () => Date.now(),
  actor: () => `cli:${userName()}@${hostname()}`,
  write:
    host.stdout instanceof Socket
      ? (text) => writeTo(host.stdout, text)
      : async (text) => writeAll(host.stdout.fd, Buffer.from(text)), // Node.js ignores a short write to a file
  hint: async (text) => text,
  interruption: createInterruption(host, () => performance.now()),
  exitWith: (code) => {
    host.exitCode = code;
  },
});

const userName = (): string => {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // a container's user may have no name
  }
};

const writeTo = (stream: Writable, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });

// Within this time a second signal is the same key press, which reaches the launcher and, through it, this process again.
const sameSignalMs = 1_000;

/** Aborts at the first signal. A later one, from another key press, ends the process at once with 130. */
export function createInterruption(
  host: Pick<NodeJS.Process, 'on' | 'exit'>,
  monotonicMs: () => number,
): Session['interruption'] {
  const controller = new AbortController();
  let listening = false;
  let firstMs: number | undefined;
  const interrupt = (name: NodeJS.Signals): void => {
    if (firstMs !== undefined && monotonicMs() - firstMs > sameSignalMs) host.exit(130);
    firstMs ??= monotonicMs();
    controller.abort(name);
  };
  return (others = []) => {
    if (!listening) for (const name of ['SIGINT', 'SIGTERM', ...others] as const) host.on(name, interrupt);
    listening = true;
    return controller.signal;
  };
}

/** Resolves when a signal is aborted, or at once if it is. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** A session whose output has no terminal control sequences except the program's own. */
export function withCleanOutput(session: Session): Session {
  const { stderr, write } = session;
  return {
    ...session,
    // Not a copy: a terminal changes its width.
    stderr: Object.create(stderr, { write: { value: (text: string) => stderr.write(cleanOutput(text)) } }),
    write: (text) => write(cleanOutput(text)),
  };
}

/** A session whose output may find no reader any more: then nothing is shown, and what is being done or checked goes on to its exit code. */
export function withoutReader(session: Session): Session {
  let hasLeft = false;
  const write = async (text: string): Promise<void> => {
    if (hasLeft) return;
    try {
      await session.write(text);
    } catch (error) {
      if (!hasReaderLeft(error)) throw error;
      hasLeft = true;
    }
  };
  return { ...session, write };
}

/** Prints a value as one line of JSON. */
export const printJson = (session: Session, value: unknown): Promise<void> => session.write(toJsonLine(value));
