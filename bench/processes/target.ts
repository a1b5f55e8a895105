// Starts the processes that workloads measure.
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Options of Node for a process: with `--profile` it leaves CPU profiles in data-profile/, one for each thread. */
export const profileFlags = (): readonly string[] =>
  process.argv.includes('--profile') ? ['--cpu-prof', '--cpu-prof-dir', 'data-profile'] : [];

/** Starts a program of the bench, by the name of its source; resolves with the first message that it sends. Its log goes nowhere. */
export const startProgram = <T extends object>(
  name: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<T & { readonly child: ChildProcess }> => {
  const program = fileURLToPath(new URL(`./${name}.mjs`, import.meta.url)); // beside this, bundled
  const child = spawn(process.execPath, [...flags, ...profileFlags(), program, ...args], {
    stdio: ['ignore', openSync('/dev/null', 'w'), 'inherit', 'ipc'],
  });
  return new Promise((resolve) => child.once('message', (told) => resolve({ child, ...(told as T) }))); // the program's own first message
};
