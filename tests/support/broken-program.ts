// The built program with one of its modules replaced, to see how a start fails.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Program, startProgram } from './real-program.ts';
import { root } from './source-tree.ts';

/** Modules of the server's dist/, and with `cli/` before them the command's → what stands there instead, or what follows there. */
export type Replacements = Readonly<Record<string, string | { readonly append: string }>>;

const folders: string[] = [];

/** Builds the packages unless they are up to date. */
export const requireBuild = (): void => {
  if (process.env.SEALPOST_BUILT_COMMAND !== undefined) return; // they are: tests/bundled-threads.ts has looked
  execFileSync(process.execPath, ['build.mjs'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
};

/** Starts a command of a copy of the build with some modules replaced. */
export const startBroken = (replacements: Replacements, args: readonly string[], cwd: string): Program => {
  const folder = mkdtempSync(join(root, 'data-broken-')); // inside the project, so that packages are found
  folders.push(folder);
  const places = { cli: join(folder, 'cli'), server: join(folder, 'node_modules/@sealpost/server') };
  for (const [name, place] of Object.entries(places)) {
    mkdirSync(place, { recursive: true });
    execFileSync('cp', ['-al', join(root, name, 'dist'), join(place, 'dist')]); // links: what is replaced is removed before
    cpSync(join(root, name, 'package.json'), join(place, 'package.json'));
  }
  for (const [module, source] of Object.entries(replacements)) {
    const path = join(module.startsWith('cli/') ? folder : places.server, module.replace(/^(cli\/)?/, '$1dist/'));
    if (!existsSync(path)) throw new Error(`The build has no module ${module} to replace.`);
    const text = typeof source === 'string' ? source : `${readFileSync(path, 'utf8')}${source.append}`;
    rmSync(path);
    writeFileSync(path, text);
  }
  return startProgram([join(folder, 'cli/dist/main.js'), ...args], cwd);
};

export const removeBroken = (): void => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
};
