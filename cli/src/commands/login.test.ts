import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { against, btc, hexOf, openReadingSample, third } from '../reading-sample.fixture.ts';
import type { Ran } from '../sample-session.fixture.ts';

const { service, alice, run, close } = await openReadingSample();
let home = mkdtempSync(join(tmpdir(), 'sealpost-home-'));
const homes = [home];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'sealpost-home-'));
  homes.push(home);
});
afterAll(async () => {
  await close();
  for (const folder of homes) rmSync(folder, { recursive: true, force: true });
});

const file = () => join(home, '.config/sealpost/profiles.json');
const env = (more: NodeJS.ProcessEnv = {}) => ({ HOME: home, ...more });
const login = (args: readonly string[] = [], stdin = `${alice.secret}\n`) =>
  run(['login', service.url, '--user-id', alice.userId, ...args], { env: env(), stdin });
const latest = (args: readonly string[] = [], options: { env?: NodeJS.ProcessEnv; cwd?: string } = {}) =>
  run(['report', 'latest', btc, '--raw', ...args], { env: env(), ...options });
const found = { code: 0, stdout: `${hexOf(third)}\n`, stderr: '' };

describe('login', () => {
  test('accepted credentials are saved with mode 0600, and used by default', async () => {
    const ran = await login();
    expect(ran).toEqual({
      code: 0,
      stdout: `Signed in to http://HOST: 5 streams readable. Saved as profile default in ${file()}.\n`,
      stderr: '',
    });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, '.config/sealpost')).mode & 0o777).toBe(0o700);
    expect(await latest()).toEqual(found);
    expect(await latest(['--url', service.url.replace('127.0.0.1', 'localhost')])).toEqual(found);
  });

  test('what the server rejects is not saved', async () => {
    expect(await login([], 'wrong\n')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: Sign-in failed. Check the user ID and secret; the account may be disabled. Nothing was saved.\n',
    });
    expect(await login([], '')).toMatchObject({ code: 2 });
    expect((await run(['login', service.url], { env: env(), stdin: 'x' })).stderr).toContain('--user-id UUID');
    expect((await run(['login', service.url, '--user-id', 'me'], { env: env(), stdin: 'x' })).stderr).toBe(
      'error: The user ID is not a UUID.\n',
    );
    expect(() => statSync(file())).toThrow();
  });

  test('a file that someone else created gets no secret', async () => {
    const [shared, trap] = [join(home, 'shared.json'), join(home, 'trap')];
    writeFileSync(trap, '');
    symlinkSync(trap, `${shared}.${process.pid}`);
    expect((await login(['--profiles', shared])).code).toBe(0);
    expect(readFileSync(trap, 'utf8')).toBe('');
    expect([statSync(shared).mode & 0o777, readFileSync(shared, 'utf8').includes(alice.secret)]).toEqual([0o600, true]);
  });

  test('what other commands change while it asks the server stays changed', async () => {
    await login(['--profile', 'revoked']);
    await login(['--profile', 'kept']);
    const args = ['--user-id', alice.userId, '--profile', 'slow'];
    const during: (Ran | undefined)[] = [];
    const ran = await against(
      async (_, response) => {
        during.push(await run(['logout', '--profile', 'revoked'], { env: env() }));
        during.push(await login(['--profile', 'added']));
        response.setHeader('Content-Type', 'application/json').end('{"feeds":[]}');
      },
      (url) => run(['login', url, ...args], { env: env(), stdin: `${alice.secret}\n` }),
    );
    expect([ran.code, ran.stderr, during.map((one) => one?.code)]).toEqual([0, '', [0, 0]]);
    expect(Object.keys(JSON.parse(readFileSync(file(), 'utf8')))).toEqual(['kept', 'added', 'slow']);
  });

  test('of several at once each is saved', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const rans = await Promise.all(names.map((name) => login(['--profile', name])));
    expect(rans.map(({ code, stderr }) => [code, stderr])).toEqual(names.map(() => [0, '']));
    expect(Object.keys(JSON.parse(readFileSync(file(), 'utf8'))).sort()).toEqual(names);
    const outs = await Promise.all(names.slice(1).map((name) => run(['logout', '--profile', name], { env: env() })));
    expect(outs.map(({ code, stderr }) => [code, stderr])).toEqual(names.slice(1).map(() => [0, '']));
    expect(Object.keys(JSON.parse(readFileSync(file(), 'utf8')))).toEqual(['a']);
  });

  test('no file of someone else gets the secret, whatever a link in the place of the lock leads to', async () => {
    const [shared, trap] = [join(home, 'shared.json'), join(home, 'trap')];
    writeFileSync(trap, '');
    symlinkSync(trap, `${shared}.lock`);
    expect((await login(['--profiles', shared])).code).toBe(0);
    expect([existsSync(`${shared}.lock`), readFileSync(trap, 'utf8')]).toEqual([false, '']);
  });

  test('several profiles live in one file; a link to it stays one; list and show have no secret', async () => {
    mkdirSync(join(home, '.config/sealpost'), { recursive: true });
    writeFileSync(join(home, 'real.json'), '{"other": {"userId": "x"}}', { mode: 0o600 });
    symlinkSync(join(home, 'real.json'), file());
    expect((await login(['--profile', 'main'])).code).toBe(0);
    expect(Object.keys(JSON.parse(readFileSync(join(home, 'real.json'), 'utf8')))).toEqual(['other', 'main']);
    expect(await latest(['--profile', 'main'])).toEqual(found);
    const shown = JSON.parse((await run(['profile', 'show', 'main', '--json'], { env: env() })).stdout);
    expect(shown).toEqual({ name: 'main', url: 'http://HOST', userId: alice.userId, file: file(), secret: '(set)' });
    expect((await run(['logout', '--profile', 'other'], { env: env() })).code).toBe(0);
    expect((await run(['profile', 'list'], { env: env() })).stdout).toMatch(
      /^main {2}http:\/\/HOST {2}[0-9a-f-]{36} /m,
    );
    for (const name of ['default', 'toString', '__proto__'])
      expect((await run(['logout', '--profile', name], { env: env() })).stderr).toContain(
        `There is no profile ${name}`,
      );
  });

  test('a file that other users can read is neither used nor written', async () => {
    mkdirSync(join(home, '.config/sealpost'), { recursive: true });
    writeFileSync(file(), '{}', { mode: 0o644 });
    for (const ran of [await login(), await latest()])
      expect(ran).toMatchObject({
        code: 2,
        stderr: `error: ${file()} contains a secret but is accessible to other users. Run: chmod 600 ${file()}\n`,
      });
  });

  test('variables and flags precede a saved profile, which is never sent to another server', async () => {
    await login();
    const other = { SEALPOST_USER_ID: alice.userId, SEALPOST_SECRET: 'wrong' };
    expect((await latest(['--url', service.url], { env: env(other) })).stderr).toContain('unauthorized');
    const elsewhere = await latest(['--url', 'http://127.0.0.1:9']);
    expect(elsewhere).toMatchObject({
      code: 2,
      stderr:
        'error: No credentials. Save them with: sealpost login URL. Or set SEALPOST_USER_ID and SEALPOST_SECRET.\n',
    });
    expect((await latest([], { env: env({ SEALPOST_URL: 'http://127.0.0.1:9' }) })).code).toBe(2);
  });

  test('XDG_CONFIG_HOME says where the file is', async () => {
    const xdg = { XDG_CONFIG_HOME: join(home, 'xdg') };
    const args = ['login', service.url, '--user-id', alice.userId, '--json'];
    const ran = await run(args, { env: env(xdg), stdin: alice.secret });
    expect(JSON.parse(ran.stdout)).toMatchObject({ file: join(home, 'xdg/sealpost/profiles.json'), streams: 5 });
    expect(await latest([], { env: env(xdg) })).toEqual(found);
  });
});

describe('the demo’s profile', () => {
  const demo = (profile: object = {}) => {
    mkdirSync(join(home, 'data'));
    writeFileSync(join(home, 'data/demo.json'), '{}', { mode: 0o600 });
    const own = { url: service.url, userId: alice.userId, secret: alice.secret, ...profile };
    writeFileSync(join(home, 'data/profiles.json'), JSON.stringify({ demo: own }), { mode: 0o600 });
  };
  const told = 'Using profile demo from ./data, http://HOST.\n';

  test('it is used, with a note, if nothing else is configured and ./data is the demo’s', async () => {
    demo();
    expect(await latest([], { cwd: home })).toEqual({ ...found, stderr: told });
    expect(await latest(['--profile', 'demo'], { cwd: home })).toEqual(found);
    const checked = await run(['doctor'], { env: env(), cwd: home });
    expect([checked.code, checked.stderr]).toEqual([0, '']);
    expect(checked.stdout).toContain('Using profile demo from ./data.');
    expect((await run(['profile', 'list'], { env: env(), cwd: home })).stdout).toMatch(/^demo /m);
  });

  test('it is not used for another server, after a login, or in a folder without a demo', async () => {
    demo({ secret: 'wrong' });
    expect((await latest(['--url', 'http://127.0.0.1:9'], { cwd: home })).stderr).toContain('No credentials.');
    await login();
    expect(await latest([], { cwd: home })).toEqual(found);
    await run(['logout'], { env: env() });
    rmSync(join(home, 'data/demo.json'));
    expect((await latest([], { cwd: home })).stderr).toContain('No credentials.');
  });
});
