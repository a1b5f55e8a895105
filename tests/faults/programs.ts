// Child programs for fault tests, bundled once per run: from the sources a child takes a second to start, bundled a quarter.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root } from '../source-tree.ts';

const entries = [
  'tests/faults/writer-program.ts',
  'tests/faults/reader-program.ts',
  'server/src/store/lmdb-writer-thread.ts',
  'server/src/ingest/verifier-thread.ts',
];

export type Programs = {
  readonly start: (name: string, args: readonly string[], options?: { stderr?: 'inherit' | 'ignore' }) => ChildProcess;
  readonly remove: () => void;
};

export const buildPrograms = async (): Promise<Programs> => {
  // Inside the project, so that lmdb's native module is found.
  const folder = mkdtempSync(join(root, 'data-programs-'));
  await build({
    entryPoints: entries.map((entry) => join(root, entry)),
    outdir: folder,
    entryNames: '[name]',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: ['lmdb', 'node:*'],
    conditions: ['source'],
  });
  return {
    start: (name, args, { stderr = 'inherit' } = {}) =>
      spawn(process.execPath, [join(folder, `${name}.mjs`), ...args], {
        stdio: ['ignore', 'pipe', stderr],
        cwd: tmpdir(),
      }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
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
