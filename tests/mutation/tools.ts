// Stryker, a provider of coverage and recheck: 70 MB that only this row needs, so `npm ci` does not install them (D138). They go into `.bars` of this
// project, because from there they find its vitest.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readText, root } from '../support/source-tree.ts';

const listed = 'tests/mutation/tools';

/** The folder whose node_modules has the tools; installs them first, with the checksums of the lock file and without scripts. */
export const installTools = async (): Promise<string> => {
  const version = createHash('sha256')
    .update(readText(`${listed}/package-lock.json`))
    .digest('hex')
    .slice(0, 12);
  const place = join(root, '.bars', `tools-${version}`);
  if (existsSync(place)) return place;
  mkdirSync(join(root, '.bars'), { recursive: true });
  const stage = mkdtempSync(join(root, '.bars', 'stage-'));
  try {
    cpSync(join(root, listed), stage, { recursive: true });
    const options = ['--ignore-scripts', '--legacy-peer-deps', '--omit=optional', '--no-audit', '--no-fund'];
    await promisify(execFile)('npm', ['ci', ...options], { cwd: stage });
    renameSync(stage, place);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  return place;
};
