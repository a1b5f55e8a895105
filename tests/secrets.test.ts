// Canaries: a secret, the key that seals it and the ingest token, through the real program; then everything it printed, answered and
// stored is searched for them. Also that what an operator changes reaches a running server.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exchange, head } from './support/raw-http.ts';
import {
  createWorld,
  type Finished,
  fetchSigned,
  runCommand,
  type Server,
  startServer,
  type World,
} from './support/real-program.ts';

const token = `token-${randomBytes(24).toString('base64url')}`;
let world: World;
let serving: Server;
let created: { readonly userId: string; readonly secret: string; readonly secretId: string };
/** Everything that came back or was printed, by where. The two commands that hand a secret out are not among them. */
const told = new Map<string, string>();
const keep = (where: string, text: string): void => void told.set(`${told.size} ${where}`, text);

const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> =>
  runCommand([...args, ...(args[0] === 'report' ? [] : ['--store', world.store])], world.folder, env);
const runKept = async (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> => {
  const finished = await run(args, env);
  keep(args.join(' '), `${finished.stdout}${finished.stderr}`);
  return finished;
};

beforeAll(async () => {
  world = await createWorld();
  const made = await run([
    'account',
    'create',
    '--name',
    'acme',
    '--entitle',
    'public',
    '--key-file',
    world.keyFile,
    '--json',
  ]);
  created = JSON.parse(made.stdout);
  // The most that the log can tell.
  serving = await startServer(world, ['--log-level', 'debug', '--requests-per-second', '0'], {
    SEALPOST_INGEST_TOKEN: token,
  });
});
afterAll(async () => {
  await serving.stop();
  world.remove();
});

const latest = () => `/api/v1/reports/latest?feedID=${world.feedId}`;

test('secrets: good, bad and malformed requests are answered without repeating a secret', async () => {
  const { userId, secret } = created;
  const send = async (target: string, headers: Record<string, string>, base = serving.url, init: RequestInit = {}) => {
    const response = await fetch(`${base}${target}`, { ...init, headers });
    keep(`${response.status} ${target}`, `${JSON.stringify([...response.headers])}${await response.text()}`);
    return response.status;
  };
  const signed = signRequest({ method: 'GET', target: latest(), userId, timestampMs: Date.now() }, secret);
  const names = Object.keys(signed);
  expect(await send(latest(), signed)).toBe(200);
  expect(await send('/api/v1/feeds', signed)).toBe(401);
  for (const name of names) expect(await send(latest(), { ...signed, [name]: secret })).toBe(400);
  expect(await send(latest(), { ...signed, Authorization: `Bearer ${secret}` })).toBe(400);
  expect(await send(latest(), { Authorization: userId })).toBe(400);
  expect(await send(`/${secret}`, {})).toBe(404);
  expect(await send(`/api/v1/discovery?secret=${secret}`, {})).toBe(200);
  expect(await send(`/api/v1/discovery?base_asset=${secret}`, {})).toBe(200);
  expect(await send('/time', { 'X-Secret': secret, Cookie: secret, Origin: secret, 'If-None-Match': secret })).toBe(
    200,
  );
  const broken = await exchange(serving.port, head(`GET /time HTTP/1.1`, `Authorization : ${secret}`));
  keep('broken request', JSON.stringify(broken));
  expect(broken.answers.map(({ status }) => status)).toEqual([400]);

  const post = { method: 'POST', body: '{}\n' };
  expect(await send('/ingest', { Authorization: `Bearer ${token}` }, serving.opsUrl, post)).toBe(200);
  expect(await send('/ingest', { Authorization: token }, serving.opsUrl, post)).toBe(401);
  expect(await send(`/ingest?token=${token}`, {}, serving.opsUrl, post)).toBeGreaterThanOrEqual(400);
  expect(await send(`/${token}`, {}, serving.opsUrl)).toBe(404);
  for (const path of ['/metrics', '/readyz', '/livez']) await send(path, {}, serving.opsUrl);
});

test('secrets: an argument that is refused is repeated to whoever sent it, and to nobody else', async () => {
  const { secret } = created;
  const response = await fetchSigned(serving.url, `/api/v1/reports/latest?feedID=${secret}`, created);
  expect([response.status, (await response.json()).code]).toEqual([400, 'malformed_argument']);
});

test('secrets: commands, failing ones too, and the shown settings have none', async () => {
  const { userId, secret } = created;
  const key = { SEALPOST_KEY: world.key, SEALPOST_INGEST_TOKEN: token };
  const reader = { SEALPOST_URL: serving.url, SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
  const results = await Promise.all([
    runKept(['config'], key),
    runKept(['account', 'list', '--json']),
    runKept(['audit', 'list', '--json']),
    runKept(['report', 'latest', world.feedId], reader),
    runKept(['report', 'latest', world.feedId], { ...reader, SEALPOST_USER_ID: secret }),
    runKept(['config'], { SEALPOST_KEY: `${world.key}00`, SEALPOST_INGEST_TOKEN: token }),
    runKept(['serve'], { ...key, SEALPOST_INGEST_TOKEN: `${token} with a space` }),
    runKept(['secret', 'revoke', 'acme', 'nonsense']),
  ]);
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 2, 2, 2, expect.any(Number)]);
  expect(results[0]?.stdout).toContain('(set)');
  expect(results.at(-1)?.code).not.toBe(0);
});

const serveWith = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  runKept(['serve', '--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0', ...args], env);

test('secrets: a server whose key is missing, wrong or open to others does not start, and says why', async () => {
  const file = (name: string, mode: number): string => {
    const path = join(world.folder, name);
    writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { mode });
    return path;
  };
  const [missing, wrong, wrongVariable, open] = await Promise.all([
    serveWith(['--key-file', join(world.folder, 'nowhere')]),
    serveWith(['--key-file', file('other.key', 0o600)]),
    serveWith([], { SEALPOST_KEY: randomBytes(32).toString('base64') }),
    serveWith(['--key-file', file('open.key', 0o644)]),
  ]);
  expect([missing.code, missing.stderr]).toEqual([
    2,
    expect.stringMatching(/^error: No key-encryption key in .+ sealpost init --store .+ --key-file .+\.\n$/),
  ]);
  for (const { code, stderr } of [wrong, wrongVariable])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: [^\n]*sealed with[^\n]*\n$/)]);
  expect([open.code, open.stderr]).toEqual([2, expect.stringMatching(/^error: The key file .+ chmod 600 .+\n$/)]);
});

/** A running server looks for changes several times a second. */
const soon = { interval: 20 };

test('secrets: what an operator changes reaches a running server, without a restart', async () => {
  const status = (as: { readonly userId: string; readonly secret: string }) => async () =>
    (await fetchSigned(serving.url, latest(), as)).status;
  const change = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run([...args]);
    expect([code, stderr], args.join(' ')).toEqual([0, '']);
    return stdout;
  };
  const old = status(created);
  expect(await old()).toBe(200);

  const added = JSON.parse(await change('secret', 'add', 'acme', '--key-file', world.keyFile, '--json'));
  const renewed = status({ userId: created.userId, secret: added.secret });
  await expect.poll(renewed, soon).toBe(200);
  expect(await old()).toBe(200);

  await change('secret', 'revoke', 'acme', created.secretId);
  await expect.poll(old, soon).toBe(401);
  expect(await renewed()).toBe(200);

  await change('account', 'entitle', 'acme', '--remove', 'public');
  await expect.poll(renewed, soon).toBe(401);
  await change('account', 'entitle', 'acme', '--add', `feed:${world.feedId}`);
  await expect.poll(renewed, soon).toBe(200);

  await change('account', 'disable', 'acme');
  await expect.poll(renewed, soon).toBe(401);
  expect(await status(world)()).toBe(200);
  canaries.set('the second secret', [Buffer.from(added.secret)]);
});

/** What is looked for, in every form that it could be written in. */
const canaries = new Map<string, readonly Buffer[]>();

const formsOf = (text: string): readonly Buffer[] => {
  const bytes = Buffer.from(text);
  return [bytes, Buffer.from(bytes.toString('base64').replace(/.{0,2}=*$/, '')), Buffer.from(bytes.toString('hex'))];
};

const listFiles = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());

test('secrets: no log line, answer, metric or file has any of them', async () => {
  const { code } = await serving.stop();
  expect(code).toBe(0);
  keep('the log', serving.output());
  for (const [name, secret] of [
    ['the first secret', world.secret],
    ['the created secret', created.secret],
    ['the token', token],
  ] as const)
    canaries.set(name, formsOf(secret));
  const key = Buffer.from(world.key, 'hex');
  canaries.set('the key', [key, Buffer.from(world.key), Buffer.from(key.toString('base64'))]);

  const places = new Map([...told].map(([where, text]) => [where, Buffer.from(text)]));
  for (const path of listFiles(world.folder)) if (path !== world.keyFile) places.set(path, readFileSync(path));
  const found = [...places].flatMap(([where, bytes]) =>
    [...canaries]
      .filter(([, forms]) => forms.some((form) => bytes.includes(form)))
      .map(([name]) => `${name} in ${where}`),
  );
  expect(found).toEqual([]);
  // What may be told is found, so the search works: the user in the log, the account in the store, the key in its file.
  expect([...places].filter(([, bytes]) => bytes.includes(created.userId)).map(([where]) => where)).toEqual(
    expect.arrayContaining([expect.stringContaining('the log'), expect.stringContaining(world.store)]),
  );
  expect(readFileSync(world.keyFile).includes(world.key)).toBe(true);
});
