#!/usr/bin/env node
// Runs the built command. In a checkout whose build is missing or out of date, runs the sources through tsx, in a process that resolves
// workspaces to their sources.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const built = new URL('../dist/main.js', import.meta.url);
const source = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const checkout = new URL('../../build.mjs', import.meta.url);
const isBuilt = existsSync(built) && (!existsSync(checkout) || (await import(checkout.href)).isFresh());

/** Undefined where development packages are left out: `npm prune --omit=dev` touches the lock file, and the build only looks out of date. */
const findLoader = () => {
  try {
    return import.meta.resolve('tsx');
  } catch {
    return undefined;
  }
};
const tsx = isBuilt ? undefined : findLoader();

if (isBuilt || (tsx === undefined && existsSync(built))) {
  await import(built.href);
} else if (tsx === undefined) {
  process.stderr.write('error: This checkout is not built. Run: npm ci && npm run build\n');
  process.exitCode = 2;
} else {
  const loader = ['--conditions=source', '--import', tsx];
  const child = spawn(process.execPath, [...loader, source, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}
