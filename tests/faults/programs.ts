// Child programs for fault tests, bundled once per run.
import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { bundle } from '../../bench/bundle.ts';

export type Programs = {
  readonly start: (name: string, args: readonly string[], options?: { stderr?: 'inherit' | 'ignore' }) => ChildProcess;
  /** The bundled file of a program. */
  readonly fileOf: (name: string) => string;
  readonly remove: () => void;
};

const faultPrograms = ['tests/faults/writer-program.ts', 'tests/faults/reader-program.ts'];

export const buildPrograms = async (entries: readonly string[] = faultPrograms): Promise<Programs> => {
  const { programOf, remove } = await bundle('data-programs-', entries);
  return {
    start: (name, args, { stderr = 'inherit' } = {}) =>
      spawn(process.execPath, [programOf(name), ...args], { stdio: ['ignore', 'pipe', stderr], cwd: tmpdir() }),
    fileOf: programOf,
    remove,
  };
};

/** The lines that a child prints, as they come. */
export async function* linesOf(child: ChildProcess): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of child.stdout ?? []) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

/** How a child ended. */
export const ended = (child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null)
      return resolve({ code: child.exitCode, signal: child.signalCode });
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
