// Runs commands in the test's own process, as the real program does, with what they write collected.
import { Readable } from 'node:stream';
import { createPaint } from './formats.ts';
import { runProgram } from './program.ts';
import type { Session } from './session.ts';

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type SampleOptions = {
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
  /** Empty unless given: nothing of the machine gets into a test. */
  readonly cwd?: string;
  /** The command's clock, which does not advance; the machine's unless given. */
  readonly nowMs?: number;
  readonly interruption?: AbortSignal;
  /** Whoever read stdout has left. */
  readonly isUnread?: boolean;
  /** The disk behind stdout is full. */
  readonly isFull?: boolean;
  /** Gets what the command writes, as a terminal does; without it nothing is a terminal. */
  readonly terminal?: (text: string) => void;
};

/** Runs one command; the actor is `cli:tester@bench`. */
export const runCommand = async (args: readonly string[], options: SampleOptions = {}): Promise<Ran> => {
  const ran = { code: 0, stdout: '', stderr: '' };
  const session: Session = {
    env: { HOME: '/nonexistent', ...options.env },
    cwd: options.cwd ?? '/nonexistent',
    stdin: Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    stderr: {
      write: (text) => {
        ran.stderr += text;
      },
    },
    paint: createPaint({}, {}),
    ...(options.terminal !== undefined && { isTerminal: true }),
    nowMs: () => options.nowMs ?? Date.now(),
    actor: () => 'cli:tester@bench',
    write: async (text) => {
      const code = options.isUnread ? 'EPIPE' : options.isFull ? 'ENOSPC' : undefined;
      if (code !== undefined) throw Object.assign(new Error(`write ${code}`), { code, syscall: 'write' });
      ran.stdout += text;
      options.terminal?.(text);
    },
    hint: async (text) => text,
    interruption: () => options.interruption ?? new AbortController().signal,
    exitWith: (code) => {
      ran.code = code;
    },
  };
  await runProgram(session, args);
  return ran;
};
