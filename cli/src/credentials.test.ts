import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openPrefixProxy } from '../../tests/support/proxies/prefix-proxy.ts';
import { readWsUrl } from './credentials.ts';
import { against, btc, hexOf, openReadingSample, third } from './reading-sample.fixture.ts';

const { service, alice, folder, file, run, close } = await openReadingSample();
afterAll(close);

describe('credentials', () => {
  const latest = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    run(['report', 'latest', btc, '--raw', ...args], { env });
  const profile = (changes: object = {}) => ({
    url: service.url,
    userId: alice.userId,
    secret: alice.secret,
    ...changes,
  });
  const profiles = (name: string, content: object, mode = 0o600) => file(name, JSON.stringify(content), mode);

  test('without any, the command says which are missing', async () => {
    expect(await latest({})).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'error: No credentials. Save them with: sealpost login URL. Or set SEALPOST_USER_ID and SEALPOST_SECRET.\n',
    });
    expect((await latest({ SEALPOST_USER_ID: alice.userId })).stderr).toContain(
      'SEALPOST_USER_ID is set, but SEALPOST_SECRET is not. Set both.',
    );
  });

  test('a secret in place of the user ID is not repeated', async () => {
    const ran = await latest({ SEALPOST_USER_ID: alice.secret, SEALPOST_SECRET: alice.userId });
    expect(ran).toMatchObject({ code: 2, stderr: 'error: SEALPOST_USER_ID is not a UUID.\n' });
  });

  test('a profile has url and user, from a file or the one at home; its secret may be in a separate file', async () => {
    file('secret', `${alice.secret}\n`);
    const path = profiles('p.json', { a: profile(), b: profile({ secret: undefined, secretFile: 'secret' }) });
    for (const name of ['a', 'b'])
      expect(await latest({}, '--profile', name, '--profiles', path)).toMatchObject({
        code: 0,
        stdout: `${hexOf(third)}\n`,
      });
    mkdirSync(join(folder, '.config/sealpost'), { recursive: true });
    profiles('.config/sealpost/profiles.json', { main: profile() });
    expect((await latest({ HOME: folder }, '--profile', 'main')).code).toBe(0);
  });

  test.each([0o640, 0o604, 0o644])('a file that other users can read is rejected: mode %o', async (mode) => {
    const path = profiles('open.json', { a: profile() }, mode);
    expect(await latest({}, '--profile', 'a', '--profiles', path)).toMatchObject({
      code: 2,
      stderr: `error: ${path} contains a secret but is accessible to other users. Run: chmod 600 ${path}\n`,
    });
    file('open-secret', alice.secret, mode);
    const beside = profiles('closed.json', { a: profile({ secret: undefined, secretFile: 'open-secret' }) });
    expect((await latest({}, '--profile', 'a', '--profiles', beside)).stderr).toContain(
      'open-secret contains a secret but is accessible',
    );
  });

  test('the error about a broken, incomplete or unknown profile does not quote it', async () => {
    const broken = file('broken.json', `{"a": {"secret": "${alice.secret}" oops`);
    expect((await latest({}, '--profile', 'a', '--profiles', broken)).stderr).toContain('is not JSON');
    const path = profiles('q.json', {
      a: profile({ secretFile: 'x' }),
      b: profile({ userId: 7 }),
      c: profile({ more: 'x' }),
    });
    for (const name of ['a', 'b', 'c'])
      expect((await latest({}, '--profile', name, '--profiles', path)).stderr).toContain(
        'is incomplete or has unknown fields',
      );
    expect((await latest({}, '--profile', '__proto__', '--profiles', path)).stderr).toContain(
      'has no profile __proto__. It has: a, b, c.',
    );
    expect((await latest({}, '--profile', 'a', '--profiles', join(folder, 'none.json'))).code).toBe(2);
  });

  test('the profile default signs nothing for another server: neither for follow nor for a read', async () => {
    const home = join(folder, 'elsewhere');
    mkdirSync(join(home, '.config/sealpost'), { recursive: true });
    profiles('elsewhere/.config/sealpost/profiles.json', { default: profile() });
    const asked: string[] = [];
    const answer: Parameters<typeof against>[0] = ({ headers }, response) => {
      asked.push(
        ...Object.values(headers)
          .filter((value) => value === alice.userId)
          .map(String),
      );
      response.writeHead(401).end('{"error":"No.","code":"unauthorized"}');
    };
    const told = await against(answer, async (url) => {
      const commands = [
        ['follow', url, '--store', join(home, 'copy')],
        ['report', 'latest', btc, '--url', url],
      ];
      const ran: string[] = [];
      for (const args of commands) ran.push((await run(args, { env: { HOME: home } })).stderr);
      return ran;
    });
    expect(asked).toEqual([]);
    for (const text of told) expect(text).toContain('No credentials.');
  });

  test('an address without a scheme uses http for this machine', async () => {
    for (const host of ['localhost', '127.0.0.1'])
      expect(
        (await run(['report', 'latest', btc, '--raw', '--url', `${host}:${new URL(service.url).port}`])).code,
      ).toBe(0);
    const remote = await run(['report', 'latest', btc, '--url', 'nowhere.invalid']);
    expect([remote.code, remote.stderr.startsWith('error: nowhere.invalid could not be resolved')]).toEqual([3, true]);
  });

  test('a server behind a proxy may have a path, which is part of what credentials are saved for', async () => {
    const proxy = await openPrefixProxy(service.url, '/streams');
    try {
      for (const url of [proxy.url, `${proxy.url}/`])
        expect(await run(['report', 'latest', btc, '--raw', '--url', url])).toMatchObject({ code: 0, stderr: '' });
      const signed = await run(['sign', 'GET', '/api/v1/feeds', '--json', '--url', proxy.url]);
      expect(JSON.parse(signed.stdout).url).toBe(`${proxy.url}/api/v1/feeds`);
      mkdirSync(join(folder, 'xdg/sealpost'), { recursive: true });
      profiles('xdg/sealpost/profiles.json', { default: profile({ url: proxy.url }) });
      const env = { XDG_CONFIG_HOME: join(folder, 'xdg') };
      expect((await latest(env, '--url', proxy.url)).code).toBe(0);
      const other = await latest(env, '--url', `${proxy.url}/x`);
      expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('No credentials.')]);
    } finally {
      await proxy.close();
    }
  });

  test.each(['ftp://host', 'http://host/api/v1', 'http://user:pass@host', 'http://host?x', 'host'])(
    'the address %s is wrong usage',
    async (url) => {
      expect(await run(['report', 'latest', btc, '--url', url])).toMatchObject({
        code: 2,
        stderr:
          'error: --url is not a server URL, expected scheme, host, port and perhaps a path, such as http://127.0.0.1:7401.\n',
      });
    },
  );
});

describe('WebSockets on another host', () => {
  const url = new URL('https://api.example.org');
  const read = (
    options: { wsUrl?: string },
    env: NodeJS.ProcessEnv = {},
    user: { url?: string; wsUrl?: string } = {},
  ) => readWsUrl({ env }, options, url, user);

  test('the flag precedes the profile, the profile precedes the variable; without any there is none', () => {
    const env = { SEALPOST_WS_URL: 'wss://c.test' };
    const user = { wsUrl: 'https://b.test' };
    expect(read({ wsUrl: 'wss://a.test:8443' }, env, user)).toBe('https://a.test:8443');
    expect(read({}, env, user)).toBe('https://b.test');
    expect(read({}, env)).toBe('https://c.test');
    expect(read({})).toBeUndefined();
  });

  test('those of a profile and of the variables apply only to their server', () => {
    expect(read({}, {}, { url: 'https://other.test', wsUrl: 'wss://b.test' })).toBeUndefined();
    expect(read({}, { SEALPOST_URL: 'https://other.test', SEALPOST_WS_URL: 'wss://c.test' })).toBeUndefined();
    expect(read({}, { SEALPOST_URL: 'https://api.example.org/', SEALPOST_WS_URL: 'wss://c.test' })).toBe(
      'https://c.test',
    );
  });

  test('watch opens its WebSocket there and asks the server for the rest', async () => {
    const asked: string[] = [];
    const refuse: Parameters<typeof against>[0] = ({ url: target = '' }, response) => {
      asked.push(target);
      response.writeHead(401).end('{"error":"No.","code":"unauthorized"}');
    };
    const ran = await against(refuse, (wsUrl) => run(['watch', btc, '--ws-url', wsUrl.replace('http', 'ws')]));
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('No. Check the user ID and secret') });
    expect(asked).toEqual([`/api/v1/ws?feedIDs=${btc}`]);
  });

  test('an invalid address is rejected by name', async () => {
    expect(await run(['watch', '--ws-url', 'wss://ws.example.org/api/v1/ws'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--ws-url is not a server URL'),
    });
  });
});
