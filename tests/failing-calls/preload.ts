// The library that makes system calls fail: compiled once, then told through a mapped file which call fails in the process that it is loaded into.
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The calls on files and sockets that can fail. `pwrite` is every write to a file, `meta` the short one that ends LMDB's commit. */
export const calls = ['fdatasync', 'fsync', 'msync', 'pwrite', 'meta', 'ftruncate', 'open', 'accept', 'mmap'] as const;
export type Call = (typeof calls)[number];
/** The order of failing-calls.c. `fork` is of no file, so no case of the others is one of it. */
const allCalls = [...calls, 'fork'] as const;

export const failures = { EIO: 5, EMFILE: 24, ENOSPC: 28, EDQUOT: 122 } as const;
export type Failure = keyof typeof failures;
const allFailures = { ...failures, EAGAIN: 11, ENOMEM: 12 } as const;

/** In place of an error: the call does not return until `heal`, and then works. */
const hanging = -1;

/** A part of the path of the files on which the call fails; `times` is Infinity for ever. */
export type Rule = {
  readonly call: Call;
  readonly error: Failure | 'hangs';
  readonly times: number;
  readonly path: string;
};

/** No process can be started. */
export type ForkRule = {
  readonly call: 'fork';
  readonly error: 'EAGAIN' | 'ENOMEM';
  readonly times: number;
  readonly path: '';
};

export type Preload = {
  /** For the environment of a process. */
  readonly env: Readonly<Record<string, string>>;
  readonly fail: (rule: Rule | ForkRule) => void;
  readonly heal: () => void;
  /** How often a call has failed since `fail`. */
  readonly hits: () => number;
  readonly remove: () => void;
};

const ruleBytes = 256;
const pathAt = 16;

/** Why the library cannot be used here; undefined when it can. */
export const missingCompiler = (): string | undefined => {
  if (process.platform !== 'linux') return 'LD_PRELOAD with /proc is of Linux';
  try {
    execFileSync('cc', ['--version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'there is no C compiler (cc)';
  }
};

/** Compiles the library into a folder of its own. */
export const createPreload = (): Preload => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-calls-'));
  const library = join(folder, 'failing-calls.so');
  const source = fileURLToPath(new URL('failing-calls.c', import.meta.url));
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, source, '-ldl']);
  const control = join(folder, 'rule');
  writeFileSync(control, Buffer.alloc(ruleBytes));
  const write = (bytes: Buffer, at: number): void => {
    const file = openSync(control, 'r+');
    writeSync(file, bytes, 0, bytes.length, at);
    closeSync(file);
  };
  const heal = (): void => write(Buffer.alloc(4), 0);
  return {
    env: { LD_PRELOAD: library, FAILING_CALLS: control },
    fail: ({ call, error, times, path }) => {
      heal();
      const rule = Buffer.alloc(ruleBytes);
      rule.writeInt32LE(error === 'hangs' ? hanging : allFailures[error], 4);
      rule.writeInt32LE(Number.isFinite(times) ? times : -1, 8);
      rule.write(path, pathAt);
      write(rule, 0);
      const number = Buffer.alloc(4);
      number.writeInt32LE(allCalls.indexOf(call) + 1);
      write(number, 0); // last: it switches the rule on
    },
    heal,
    hits: () => {
      const bytes = Buffer.alloc(4);
      const file = openSync(control, 'r');
      readSync(file, bytes, 0, 4, 12);
      closeSync(file);
      return bytes.readInt32LE();
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
