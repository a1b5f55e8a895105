#!/usr/bin/env node
// Runs the built command. In a checkout whose build is missing or out of date, runs the sources through tsx, in a process that resolves
// workspaces to their sources.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const built = new URL('../dist/cli.js', import.meta.url);
const source = fileURLToPath(new URL('../src/cli.ts', import.meta.url));
const checkout = new URL('../../build.mjs', import.meta.url);
const isBuilt = existsSync(built) && (!existsSync(checkout) || (await import(checkout.href)).isFresh());

if (isBuilt) {
  await import(built.href);
} else {
  const loader = ['--conditions=source', '--import', import.meta.resolve('tsx')];
  const child = spawn(process.execPath, [...loader, source, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}
