// How many branches of a file its tests take, as vitest measures it.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../support/source-tree.ts';
import { type TestedFile, testsVariable, toolsVariable } from './tested-files.ts';

type Summary = Readonly<Record<string, { readonly branches: { readonly total: number; readonly pct: number } }>>;

/** Percent of its branches. */
export const measureBranches = async ({ path, tests }: TestedFile, tools: string): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-coverage-'));
  try {
    const coverage = {
      enabled: 'true',
      provider: 'custom',
      customProviderModule: join(root, 'tests/mutation/coverage-provider.ts'),
      include: path,
      reporter: 'json-summary',
      reportsDirectory: folder,
    };
    const args = Object.entries(coverage).map(([name, value]) => `--coverage.${name}=${value}`);
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    await promisify(execFile)(
      process.execPath,
      [vitest, 'run', '--config', 'tests/mutation/vitest.config.ts', ...args],
      { cwd: root, env: { ...process.env, [testsVariable]: tests.join(','), [toolsVariable]: tools } },
    );
    const summary = JSON.parse(readFileSync(join(folder, 'coverage-summary.json'), 'utf8')) as Summary; // vitest's own form
    const branches = summary[join(root, path)]?.branches;
    if (branches === undefined) throw new Error(`No coverage of ${path} was measured.`);
    return branches.total === 0 ? 100 : branches.pct;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
