// Runs Stryker on one file and its tests: one mutant after the other, each against the tests that reach it.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../support/source-tree.ts';
import type { MutationReport } from './score.ts';
import { type TestedFile, testsVariable } from './tested-files.ts';

const packages = '{protocol,client,simulator,server}';

/** What tests beside the code import: all else is left out of the copy that is mutated. */
const copied = [packages, `${packages}/package.json`, `${packages}/src/**`, 'tests', 'tests/{support,mutation}/**'];

const optionsOf = (file: TestedFile, tools: string, folder: string) => ({
  mutate: [file.path],
  ignorePatterns: ['**', ...copied.map((pattern) => `!${pattern}`), '!package.json'],
  testRunner: 'vitest',
  plugins: [join(tools, 'node_modules/@stryker-mutator/vitest-runner/dist/src/index.js')],
  vitest: { configFile: 'tests/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  concurrency: 1,
  timeoutMS: 60_000, // beside the time that the tests take: a busy machine must not pass for a mutant that hangs
  tempDirName: join(folder, 'copy'),
  tsconfigFile: 'none', // it would be rewritten by the compiler's API, which TypeScript 7 lacks
  reporters: ['json', 'progress-append-only'],
  jsonReporter: { fileName: join(folder, 'report.json') },
  checkers: [],
});

/** Stryker's report on a file. Rejects if its tests fail without a mutant, or Stryker does. `say` is told how far it is. */
export const mutateFile = async (
  file: TestedFile,
  tools: string,
  say: (text: string) => void,
): Promise<MutationReport> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-mutation-')); // outside of the project, where another vitest would run the copied tests
  try {
    const config = join(folder, 'stryker.json');
    writeFileSync(config, JSON.stringify(optionsOf(file, tools, folder)));
    await runStryker(tools, config, file, say);
    return JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as MutationReport; // Stryker's own form
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const runStryker = async (
  tools: string,
  config: string,
  { path, tests }: TestedFile,
  say: (text: string) => void,
): Promise<void> => {
  const program = join(tools, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  // As one writes it in a shell, not as a test of vitest's that runs this one.
  const env = { ...process.env, [testsVariable]: tests.join(','), VITEST: undefined, NODE_OPTIONS: undefined };
  const child = spawn(process.execPath, [program, 'run', config], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      if (line.startsWith('Mutation testing')) say(`${path}: ${line}`);
    });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`Stryker failed on ${path}:\n${lines.slice(-40).join('\n')}`);
};
