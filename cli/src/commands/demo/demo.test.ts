import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSignInCodes } from '@sealpost/server/access/sign-in-code';
import { openStore } from '@sealpost/server/store/open';
import { afterAll, expect, test } from 'vitest';
import { against } from '../../reading-sample.fixture.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import { createQuietLog } from './demo.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-demo-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('demo: the error about a port in use has the command for free ports in the same folder', async () => {
  const dir = join(folder, 'taken');
  const ran = await against(
    () => {},
    async (url) => {
      const { port } = new URL(url);
      return {
        port,
        ...(await runCommand(['demo', '--port', port, '--dir', dir], { env: { SEALPOST_EXPLORER: 'off' } })),
      };
    },
  );
  expect(ran).toMatchObject({
    code: 3,
    stdout: '',
    // A busy machine says before that it is still starting.
    stderr: expect.stringContaining(
      `error: Port ${ran.port} is in use by another program. Stop it, or use free ports: sealpost demo --port 0 --dir ${dir}.\n`,
    ),
  });
  expect((await runCommand(['demo', '--port', '65535'])).code).toBe(2); // the private listener needs the next one
});

test('demo: a second one in the same folder shows the URL of the first', async () => {
  const dir = join(folder, 'running');
  const store = await openStore(`lmdb:${dir}`, 'write');
  const second = async (url: string) => {
    writeFileSync(join(dir, 'profiles.json'), JSON.stringify({ demo: { url, userId: 'x', secret: 'y' } }), {
      mode: 0o600,
    });
    return runCommand(['demo', '--port', '0', '--dir', dir]);
  };
  try {
    const url = await against(
      (_, response) => response.end('{}'),
      async (address) => {
        expect(await second(address)).toMatchObject({
          code: 3,
          stderr: `error: A demo is already running in ${dir}: ${address}. Use it, or stop it first.\n`,
        });
        return address;
      },
    );
    expect((await second(url)).stderr).toMatch(/^error: Process \d+ is already writing to the store/); // nothing listens there now
  } finally {
    await store.close();
  }
});

test('demo: --link prints a sign-in link with a new code for the demo running in the folder, and no secret', async () => {
  const dir = join(folder, 'linked');
  mkdirSync(dir, { recursive: true });
  const link = (...args: string[]) => runCommand(['demo', '--link', '--dir', dir, ...args]);
  const none = `error: No demo is running in ${dir}. Start one with: sealpost demo --dir ${dir}.\n`;
  expect(await link()).toEqual({ code: 3, stdout: '', stderr: none });
  const url = await against(
    (_, response) => response.end('{}'),
    async (address) => {
      const profile = { demo: { url: address, userId: 'x', secret: 'the-secret' } };
      writeFileSync(join(dir, 'profiles.json'), JSON.stringify(profile), { mode: 0o600 });
      const codes = createSignInCodes('the-secret', () => Date.now());
      const [first, second] = [(await link()).stdout, JSON.parse((await link('--json')).stdout).link as string];
      for (const text of [first.trim(), second]) {
        expect(text.startsWith(`${address}/#sign-in=`)).toBe(true);
        expect(text).not.toContain('the-secret');
        expect(codes.take(text.split('=')[1] ?? '')).toBe(true);
      }
      return address;
    },
  );
  expect(url).toMatch(/^http/);
  expect(await link()).toEqual({ code: 3, stdout: '', stderr: none }); // nothing listens there now
});

test('demo: help shows the level and the store that it uses', async () => {
  const help = (await runCommand(['demo', '--help'])).stdout.replace(/\s+/g, ' ');
  expect(help).toContain('($SEALPOST_LOG_LEVEL, default: warn)');
  expect(help).toContain('--origins <ids>');
  expect(help).toContain('($SEALPOST_STORE, default: the folder of --dir)');
});

test('demo: slow commits are reported once, everything else unchanged', () => {
  const lines: string[] = [];
  const write = createQuietLog((line) => lines.push(line));
  const slow = '{"level":"warn","event":"committed","durationMs":1600,"slow":true}\n';
  const others = [
    '{"level":"warn","event":"warning","code":"x"}\n',
    '{"event":"suppressed","of":"refused","count":3}\n',
  ];
  for (const line of [slow, slow, ...others, slow, '{"event":"suppressed","of":"committed","count":9}\n']) write(line);
  expect(lines).toEqual([
    'warning: slow disk: a commit took more than 1 s. Use --log-level warn to see each one.\n',
    ...others,
  ]);
});
