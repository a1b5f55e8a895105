// nginx with a cache in front, which ignores `Authorization`: what an account is answered is never given to another, and hidden streams stay hidden.
// The control answers without Cache-Control, and leaks.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import { findDebianProgram } from '../support/debian-programs.ts';
import { freePort } from '../support/free-port.ts';
import { countOf, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { createRandom } from '../support/random.ts';
import { createWorld, type Server, startServer, type World } from '../support/real-program.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const rounds = countOf(3, 1_000);
const hidden = secondStream(2);
const second = Math.floor(Date.now() / 1_000) - 20;
const alice = { userId: crypto.randomUUID(), secret: 'a-secret-of-alice' };
let world: World;
let server: Server;

beforeAll(async () => {
  world = await createWorld();
  const store = await openStore(world.store, 'write');
  await store.admin.update('stream', [hidden], () => [testStream(hidden, { hidden: true })], act);
  const { report } = await createSignedReports();
  await store.reports.append([report(hidden, second, second)]);
  const createdAt = '2026-01-01T00:00:00.000000Z';
  const sealed = createSecretBox(Buffer.from(world.key, 'hex')).seal(alice.userId, alice.secret);
  const account = {
    userId: alice.userId,
    name: 'alice',
    createdAt,
    disabledAt: null,
    secrets: [{ id: 'one', sealed, createdAt, revokedAt: null }],
    entitlements: ['public', `feed:${hidden}`],
    rateLimits: { '*': 0 },
  };
  await store.admin.update('account', [alice.userId], () => [account], act);
  await store.close();
  const unlimited = ['--anonymous-requests-per-second', '0', '--failures-per-second', '0', '--skew-max-ms', '60000'];
  server = await startServer(world, [...unlimited, '--log-level', 'silent']);
});
afterAll(async () => {
  await server.stop();
  world.remove();
});

/** nginx as an operator would add a cache to it: everything that does not forbid it is kept for a minute. */
const startNginx = async (path: string, name: string, upstream: number) => {
  const [folder, port] = [join(world.folder, name), await freePort()];
  mkdirSync(folder);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (one) => `${one}_temp_path ${folder}/${one};`,
  );
  const user = process.getuid?.() === 0 ? 'user root;' : ''; // its own user could not write to our folder
  const config = `${user} daemon off; pid ${folder}/nginx.pid; error_log stderr; worker_processes 1;
events {}
http { access_log off; ${temporary.join(' ')}
  proxy_cache_path ${folder}/cache keys_zone=all:1m;
  server {
    listen 127.0.0.1:${port};
    merge_slashes off;
    location / {
      proxy_pass http://127.0.0.1:${upstream};
      proxy_cache all;
      proxy_cache_valid any 1m;
      add_header X-Cache $upstream_cache_status always;
    }
  }
}`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  const child = spawn(path, ['-c', join(folder, 'nginx.conf'), '-e', 'stderr'], { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  await expect
    .poll(() =>
      fetch(`${url}/time`).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(200);
  return { url, stop: () => child.kill('SIGTERM') };
};

type Who = 'alice' | 'bob' | 'anonymous';
const ask = async (url: string, who: Who, target: string) => {
  const account = who === 'alice' ? alice : world;
  const { userId, secret } = account;
  const auth = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
  const response = await fetch(`${url}${target}`, { headers: who === 'anonymous' ? {} : auth });
  const text = await response.text();
  const headerOf = (name: string): string => response.headers.get(name) ?? '';
  return {
    status: response.status,
    text,
    cache: headerOf('x-cache'),
    control: headerOf('cache-control'),
    vary: headerOf('vary'),
  };
};

const people: readonly Who[] = ['alice', 'bob', 'anonymous'];
const targets = (): readonly string[] => [
  '/api/v1/discovery',
  '/api/v1/discovery?hidden=true',
  '/api/v1/feeds',
  `/api/v1/reports/latest?feedID=${hidden}`,
  `/api/v1/reports?feedID=${hidden}&timestamp=${second}`,
  `/api/v1/reports?feedID=${world.feedId}&timestamp=${Math.floor(Date.now() / 1_000) - 8}`,
  '/api/v1/reports?feedID=nonsense',
];

/** What of an answer is not as D24 says. */
const wrongOf = (who: Who, target: string, answer: Awaited<ReturnType<typeof ask>>): readonly string[] => {
  const { status, text, cache, control, vary } = answer;
  const isOpen = who === 'anonymous' && status === 200;
  const isOneReport = status === 200 && /\/reports\?/.test(target);
  const expected = isOpen ? 'public, max-age=300' : isOneReport ? 'private, no-cache' : 'no-store';
  return [
    ...(control === expected ? [] : [`Cache-Control: ${control}, not ${expected}`]),
    ...(isOpen && !/\bauthorization\b/i.test(vary) ? [`Vary: ${vary}`] : []),
    ...(!isOpen && cache === 'HIT' ? ['answered from the cache'] : []),
    // Whoever is not alice has the ID only where it was part of the question.
    ...(who !== 'alice' && !target.includes(hidden) && text.includes(hidden) ? ['has the hidden stream'] : []),
    ...(who !== 'alice' && target.includes(hidden) && status === 200 ? ['reads the hidden stream'] : []),
  ];
};

test(`caches: ${rounds} rounds of alice, bob and an anonymous caller through a cache of nginx leak nothing`, async ({
  skip,
}) => {
  const found = findDebianProgram('nginx');
  if (!('path' in found)) return skip(found.missing);
  const nginx = await startNginx(found.path, 'cache', server.port);
  const roll = createRandom(seedOf());
  const wrong = new Set<string>();
  const counts = { answers: 0, 'from the cache, to anonymous callers': 0, 'hidden streams that alice saw': 0 };
  for (let round = 0; round < rounds; round++) {
    const all = targets();
    const order = people.flatMap((who) => all.map((target) => ({ who, target, at: roll(1_000_000) })));
    for (const { who, target } of order.sort((a, b) => a.at - b.at)) {
      const answer = await ask(nginx.url, who, target);
      counts.answers += 1;
      if (answer.cache === 'HIT') counts['from the cache, to anonymous callers'] += 1;
      if (who === 'alice' && target.endsWith('hidden=true') && answer.text.includes(hidden))
        counts['hidden streams that alice saw'] += 1;
      for (const one of wrongOf(who, target, answer)) wrong.add(`${who} ${target}: ${answer.status}, ${one}`);
    }
  }
  nginx.stop();
  tally({ ...counts, 'not as promised': wrong.size });
  expect([...wrong]).toEqual([]);
  expect(counts['hidden streams that alice saw']).toBe(rounds);
  expect(counts['from the cache, to anonymous callers']).toBeGreaterThan(0); // it does cache
}, 3_600_000);

test('caches: the control, which answers without Cache-Control, gives bob what alice was answered', async ({
  skip,
}) => {
  const found = findDebianProgram('nginx');
  if (!('path' in found)) return skip(found.missing);
  const careless = createServer(({ headers }, response) => {
    response.end(headers.authorization === alice.userId ? hidden : 'nothing hidden');
  });
  await new Promise<void>((resolve) => careless.listen(0, '127.0.0.1', resolve));
  const nginx = await startNginx(found.path, 'careless', (careless.address() as AddressInfo).port); // it listens on a port
  const [, bob] = [await ask(nginx.url, 'alice', '/api/v1/feeds'), await ask(nginx.url, 'bob', '/api/v1/feeds')];
  nginx.stop();
  careless.close();
  tallyControl({ 'leaked to bob': bob.text === hidden ? 1 : 0 });
  expect([bob.cache, bob.text]).toEqual(['HIT', hidden]);
});
