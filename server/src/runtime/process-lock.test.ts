import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { execArgvForModules, urlForProcess } from '../../../tests/support/module-for-process.ts';

const [processes, rounds] = [4, 12];

/** Tries to take each lock at the same moments as the others do, and prints which ones it got; keeps them until the end. */
const program = `
  import { setTimeout } from 'node:timers/promises';
  import { acquireLock } from ${JSON.stringify(urlForProcess('server/src/runtime/process-lock.ts'))};
  const [folder] = process.argv.slice(1);
  const got = [];
  process.stdout.write('ready ');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const startMs = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000;
  for (let i = 0; i < ${rounds}; i++) {
    await setTimeout(startMs + i * 100 - 10 - Date.now());
    while (Date.now() < startMs + i * 100);
    const taking = acquireLock(folder + '/' + i + '/lock', () => new Error('taken'));
    await taking.then(() => got.push(i), () => {});
  }
  console.log(JSON.stringify(got));
  process.stdin.once('end', () => process.exit());`;

test('lock: of several processes that find the lock of a dead one, one gets it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-lock-'));
  for (let i = 0; i < rounds; i++) {
    mkdirSync(join(folder, String(i)));
    writeFileSync(join(folder, String(i), 'lock'), JSON.stringify({ pid: 2 ** 22 + 1, token: 'x' }));
  }
  const args = [...execArgvForModules, '--input-type=module', '--eval', program, folder];
  const children = Array.from({ length: processes }, () =>
    spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const outputs = children.map(({ stdout }) => text(stdout));
  await Promise.all(children.map(({ stdout }) => new Promise((resolve) => stdout.once('data', resolve))));
  for (const { stdin } of children) stdin.write('go\n');
  await Promise.all(
    children.map(
      ({ stdout }) =>
        new Promise<void>((resolve) => stdout.on('data', (chunk) => String(chunk).includes(']') && resolve())),
    ),
  );
  for (const { stdin } of children) stdin.end();
  const got = (await Promise.all(outputs)).flatMap((output) => JSON.parse(output.replace('ready ', '')) as number[]); // as printed above
  expect(got.sort((a, b) => a - b)).toEqual(Array.from({ length: rounds }, (_, i) => i));
  for (let i = 0; i < rounds; i++) expect(readdirSync(join(folder, String(i)))).toEqual(['lock']);
  rmSync(folder, { recursive: true });
});
