// The deployment kit: what its files name exists, programs that are at hand accept them, and proxies set up by them keep signatures intact.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsTable } from '../server/src/config/config.ts';
import { answerMaxMs } from '../server/src/http/pipeline.ts';
import { createPageCheck } from '../server/src/ops/ops.ts';
import { createCertificate } from './support/certificates.ts';
import { findDebianProgram, type ProgramName } from './support/debian-programs.ts';
import { openEvents, openSocket } from './support/live-clients.ts';
import { deployedProxies, nginxFrame, startDeployedProxy } from './support/proxies/deployed-proxy.ts';
import { createWorld, type Server, startServer, type World } from './support/real-program.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';
import { listFiles, readJson, readText, root } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-deploy-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

/** The path of a program; without one the test that asks is skipped. */
const findProgram = (name: ProgramName, skip: (why: string) => never): string => {
  const found = findDebianProgram(name);
  return 'path' in found ? found.path : skip(found.missing);
};

/** Runs a program to its end; a failure is thrown with what it said. */
const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };
const dashboard = readJson('deploy/grafana/sealpost.json') as { readonly panels: readonly Panel[] };
const alerts = readText('deploy/prometheus/alerts.yaml');
const alertExpressions = [...alerts.matchAll(/^ +expr: (?:\|\n((?: {10}.*\n)+)|(.+)\n)/gm)].map(
  ([, block, line]) => block ?? line ?? '',
);
const expressions = [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...alertExpressions,
];

/** Metric → its labels; a histogram by the three names it is asked for. */
const metrics = new Map<string, readonly string[]>(
  [...readText('docs/metrics.md').matchAll(/^\| `(\w+)` +\| (\w+) +\| ([^|]*?) *\|/gm)].flatMap(
    ([, name = '', type, labels = '']): readonly (readonly [string, readonly string[]])[] => {
      const own = [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label as string);
      return type === 'histogram'
        ? ['_bucket', '_sum', '_count'].map((end) => [name + end, [...own, 'le']])
        : [[name, own]];
    },
  ),
);
// Prometheus itself.
const foreign = new Map<string, readonly string[]>([['up', []]]);
const known = new Map([...metrics, ...foreign]);
const given = ['job', 'instance'];

/** What an expression selects, and what it groups by. */
const takeApart = (expression: string) => {
  const plain = expression.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]/g, '');
  const groups = [...plain.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */));
  const rest = plain.replaceAll(/\b(?:by|without) \([^)]*\)/g, '').replaceAll(/\boffset \w+/g, '');
  const selected = [...rest.matchAll(/(?<![\w.])([a-z_]\w*)(\{[^}]*\})?(?!\w|\s*\()/g)].filter(
    ([, name = '']) => !['and', 'or', 'unless'].includes(name),
  );
  const outside = selected.filter(({ index }) => !/\{[^}]*$/.test(rest.slice(0, index)));
  return {
    groups,
    selectors: outside.map(([, name = '', labels = '']) => ({
      name,
      labels: [...labels.matchAll(/(\w+) *(?:=~|!~|!=|=)/g)].map(([, label]) => label as string),
    })),
  };
};

test('deploy: dashboard and alerts ask for metrics and labels that exist', () => {
  expect(expressions.length).toBeGreaterThan(35);
  expect(metrics.size).toBeGreaterThan(40);
  for (const expression of expressions) {
    const { selectors, groups } = takeApart(expression);
    expect(selectors.length, expression).toBeGreaterThan(0);
    for (const { name, labels } of selectors) {
      expect([...known.keys()], expression).toContain(name);
      for (const label of [...labels, ...groups]) expect([...(known.get(name) ?? []), ...given], name).toContain(label);
    }
  }
});

test('deploy: the documents say what to do about every alert', () => {
  const names = [...alerts.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name);
  const section = /^## Monitor\n.*?^## /ms.exec(readText('docs/operating.md'))?.[0] ?? '';
  const documented = [...section.matchAll(/^\| `(\w+)` +\| \S/gm)].map(([, name]) => name);
  expect(documented.toSorted()).toEqual(names.toSorted());
  expect(names.length).toBeGreaterThan(20);
});

test('deploy: the image is built on one release of Node, pinned by digest', () => {
  const dockerfile = readText('deploy/Dockerfile');
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/m);
  expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].filter(([, image]) => image !== `$${'{NODE_IMAGE}'}`)).toEqual([]);
});

test('deploy: a metric that does not exist would be found', () => {
  const { selectors } = takeApart('sum by (le) (rate(no_such_total{reason="x"}[5m])) / up > 0.5');
  expect(selectors).toEqual([
    { name: 'no_such_total', labels: ['reason'] },
    { name: 'up', labels: [] },
  ]);
});

test('deploy: the dashboard shows everything that there is to see of requests, reports and the store', () => {
  const shown = new Set(expressions.flatMap((expression) => takeApart(expression).selectors.map(({ name }) => name)));
  const families = [...shown].map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));
  const section = readText('docs/metrics.md').split('## Process')[0] ?? '';
  const documented = [...section.matchAll(/^\| `(\w+)` +\|/gm)].map(([, name]) => name as string);
  expect(documented.length).toBeGreaterThan(10);
  for (const name of documented) expect(families).toContain(name);
});

test('deploy: every setting that the files give is one', () => {
  const variables = [...Object.values(settingsTable).map(({ env }) => env as string), 'SEALPOST_CONFIG'];
  const files = listFiles('').filter((path) => /^(deploy|cli\/systemd)\//.test(path) && !path.endsWith('.md'));
  const named = files.flatMap((path) => readText(path).match(/\bSEALPOST_[A-Z_]+/g) ?? []);
  expect(named.length).toBeGreaterThan(8);
  for (const variable of named) expect(variables).toContain(variable);
  for (const path of ['deploy/nginx.conf', 'deploy/haproxy.cfg', 'deploy/Caddyfile'])
    for (const [, name] of readText(path).matchAll(/`(trusted\w+)`/g))
      expect(settingsTable).toHaveProperty(name as string);
});

test('deploy: the private listener answers for every name that the files give it', () => {
  const check = createPageCheck([]);
  const files = listFiles('').filter((path) => path.startsWith('deploy/'));
  const hosts = files.flatMap((path) => [...readText(path).matchAll(/([\w.-]+):740[23]\b/g)].map(([host]) => host));
  expect(hosts).toContain('node2:7402');
  expect(hosts.filter((host) => check({ host }) !== undefined)).toEqual([]);
});

test('deploy: every command that the files run is one', () => {
  const commands = [...readText('docs/cli.md').matchAll(/^### `sealpost ([a-z ]+[a-z])/gm)].map(
    ([, name]) => name as string,
  );
  const compose = [...readText('deploy/compose.yaml').matchAll(/<<: \*sealpost\n {4}command: \[(.+)\]/g)];
  const image = [...readText('deploy/Dockerfile').matchAll(/^CMD \["(.+)"\]/gm)];
  const unit = [...readText('cli/systemd/sealpost.service').matchAll(/exec sealpost (\w+)/g)];
  const named = [...compose, ...image, ...unit].map(([, words = '']) => words.replaceAll(', ', ' '));
  expect(named).toEqual(['store migrate', 'serve', 'serve']);
  for (const name of named) expect(commands).toContain(name);
});

test('deploy: whoever stops a node waits longer than it drains', () => {
  const drainSeconds = Number(settingsTable.drainMs.defaultText) / 1_000;
  const unit = Number(/^TimeoutStopSec=(\d+)$/m.exec(readText('cli/systemd/sealpost.service'))?.[1]);
  const container = Number(/stop_grace_period: (\d+)s/.exec(readText('deploy/compose.yaml'))?.[1]);
  for (const seconds of [unit, container]) expect(seconds).toBeGreaterThanOrEqual(drainSeconds + 5);
});

/** What the files and the guide give proxies to wait for an answer, in seconds; live connections, which get something every 10 s, have another. */
const answerTimeouts = (path: string): readonly number[] => {
  const live = /^ *location ~[^}]*\}$/gm;
  const pattern = /\b(?:proxy_read_timeout|response_header_timeout|timeout (?:server|client)) (\d+)s\b/g;
  return [...readText(path).replaceAll(live, '').matchAll(pattern)].map(([, seconds]) => Number(seconds));
};

test('deploy: proxies wait longer than a node takes to answer, so that its 503 arrives with its code', () => {
  const files = ['deploy/nginx.conf', 'deploy/haproxy.cfg', 'deploy/Caddyfile', 'docs/operating.md'];
  expect(files.map((path) => answerTimeouts(path).length)).toEqual([1, 2, 1, 2]);
  // Deadlines are looked after once a second, and an answer takes a moment.
  for (const path of files)
    for (const seconds of answerTimeouts(path)) expect(seconds, path).toBeGreaterThanOrEqual(answerMaxMs / 1_000 + 5);
});

test('deploy: nodes believe the balancer of the compose file, and it knows their addresses', () => {
  const compose = readText('deploy/compose.yaml');
  const addressOf = (service: string) =>
    new RegExp(`^  ${service}:\\n(?:    .*\\n)*?        ipv4_address: ([\\d.]+)$`, 'm').exec(compose)?.[1];
  expect(/SEALPOST_TRUSTED_PROXIES: (.+)/.exec(compose)?.[1]).toBe(addressOf('balancer'));
  const hosts = [...(/extra_hosts: (.+)/.exec(compose)?.[1] ?? '').matchAll(/(node\d):([\d.]+)/g)];
  expect(hosts.map(([, name]) => name)).toEqual(['node1', 'node2']);
  for (const [, name = '', address] of hosts) expect(addressOf(name)).toBe(address);
});

test('deploy: every file that the compose file mounts is there', () => {
  const compose = readText('deploy/compose.yaml');
  const mounted = [...compose.matchAll(/\.\/([\w./-]+):\//g)].map(([, path]) => path as string);
  expect(mounted.length).toBeGreaterThan(6);
  for (const path of mounted) expect(existsSync(join(root, 'deploy', path)), path).toBe(true);
});

test('deploy: YAML is indented by two spaces, without tabs, and names no key twice in a row of siblings', () => {
  for (const path of listFiles('.yaml').filter((name) => name.startsWith('deploy/'))) {
    const seen = new Map<string, Set<string>>();
    for (const line of readText(path).split('\n')) {
      const [, indent = '', dash = '', key] = /^( *)(- )?(?:([\w.-]+|<<):(?: |$))?/.exec(line) ?? [];
      if (line.trim() === '' || line.trim().startsWith('#')) continue;
      expect(line, path).not.toContain('\t');
      expect(indent.length % 2, `${path}: ${line}`).toBe(0);
      const depth = indent.length + dash.length;
      for (const place of seen.keys())
        if (Number(place) > depth || (dash !== '' && Number(place) === depth)) seen.delete(place);
      if (key === undefined) continue;
      const siblings = seen.get(String(depth)) ?? new Set();
      expect(siblings.has(key), `${path}: ${line}`).toBe(false);
      seen.set(String(depth), siblings.add(key));
    }
  }
});

test('deploy: promtool accepts the rules and what Prometheus is told', ({ skip }) => {
  const promtool = findProgram('promtool', skip);
  expect(run(promtool, ['check', 'config', join(root, 'deploy/prometheus/prometheus.yaml')])).toContain('rules found');
});

test('deploy: nginx accepts the file as it is, with TLS', ({ skip }) => {
  const nginx = findProgram('nginx', skip);
  const { cert, key } = createCertificate('streams.example.com');
  const text = readText('deploy/nginx.conf')
    .replaceAll(/\bnode([12]):/g, '127.0.0.$1:')
    .replace(/\/etc\/ssl\/\S+\.pem/, write('tls.pem', cert))
    .replace(/\/etc\/ssl\/\S+\.key/, write('tls.key', key));
  run(nginx, ['-t', '-e', 'stderr', '-c', write('nginx-tls.conf', nginxFrame(text, folder))]);
});

test('deploy: systemd knows every option of the unit, and finds little to attack', ({ skip }) => {
  const analyze = findProgram('systemd-analyze', skip);
  const unit = join(root, 'cli/systemd/sealpost.service');
  // Its warnings about options that it does not know come with exit code 0.
  execFileSync('sh', [
    '-c',
    `said=$("${analyze}" verify --man=no "${unit}" 2>&1) && ! echo "$said" | grep sealpost.service`,
  ]);
  run(analyze, ['security', '--offline=true', '--threshold=20', unit]);
});

let world: World;
let server: Server;
const token = 'token-of-the-tests';

beforeAll(async () => {
  world = await createWorld();
  const settings = ['--trusted-proxies', '127.0.0.1', '--ahead-max-ms', '6000000', '--verifier-threads', '1'];
  server = await startServer(world, [...settings, '--anonymous-requests-per-second', '1'], {
    SEALPOST_INGEST_TOKEN: token,
  });
});
afterAll(async () => {
  await server?.stop();
  world?.remove();
});

/** A GET of a target as it is written; fetch would tidy it up. */
const statusOf = (url: string, target: string, headers = {}, localAddress = '127.0.0.1'): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const request = get({ hostname, port, path: target, headers, localAddress, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    request.once('error', reject);
  });

const signedStatus = (url: string, target: string): Promise<number> =>
  statusOf(
    url,
    target,
    signRequest({ method: 'GET', target, userId: world.userId, timestampMs: Date.now() }, world.secret),
  );

const ids = (count: number): string => Array.from({ length: count }, (_, i) => secondStream(i + 1)).join(',');
const targets = (): readonly string[] => [
  `/api/v1/reports/latest?feedID=${world.feedId}`,
  '//api/v1/feeds',
  '/api/v1/feeds?',
  ...['a%2Cb', 'a%2cb', 'a,b', 'a+b', 'a%20b', 'a;b', '%E2%82%AC', 'a//b', '../b', 'a=b&x=a'].map(
    (value) => `/api/v1/feeds?x=${value}`,
  ),
  `/api/v1/reports/bulk?timestamp=${Math.floor(Date.now() / 1_000) - 5}&feedIDs=${ids(100)}`,
  `/api/v1/reports/bulk?timestamp=${Math.floor(Date.now() / 1_000) - 5}&feedIDs=${ids(220)}`,
  '/api/v1/%66eeds',
  '/api/v1//feeds',
];

let seconds = Math.floor(Date.now() / 1_000) + 10;

const ingestNext = async (): Promise<void> => {
  seconds += 1;
  const { report } = await createSignedReports();
  const fullReport = `0x${Buffer.from(report(world.feedId, seconds, seconds).fullReport).toString('hex')}`;
  const headers = { Authorization: `Bearer ${token}` };
  const body = JSON.stringify({ fullReport });
  const answer = await fetch(`${server.opsUrl}/ingest`, { method: 'POST', headers, body });
  expect(await answer.text()).toContain('"stored"');
};

for (const [n, proxy] of deployedProxies.entries()) {
  test(`deploy: signed requests, sockets and event streams pass ${proxy.program} as it is configured`, async ({
    skip,
  }) => {
    const path = findProgram(proxy.program, skip);
    const { url, child } = await startDeployedProxy(proxy, path, folder, server);
    try {
      for (const target of targets())
        expect(await signedStatus(url, target), target).toBe(await signedStatus(server.url, target));
      expect(await signedStatus(url, '//api/v1/feeds?x=a%2cb')).toBe(200);
      // Whoever says that he is somebody else is still himself; others are not held back by him.
      const anonymous = (from: string, said: string) =>
        statusOf(url, '/api/v1/discovery', { 'X-Forwarded-For': said }, from);
      const many = await Promise.all(Array.from({ length: 8 }, (_, i) => anonymous(`127.1.${n}.5`, `192.0.2.${i}`)));
      expect(many).toContain(429);
      expect(await anonymous(`127.1.${n}.6`, `127.1.${n}.5`)).toBe(200);
      const feed = `?feedIDs=${world.feedId}`;
      const socket = await openSocket(url, `/api/v1/ws${feed}`, world);
      const events = await openEvents(url, `/api/v1/reports/stream${feed}`, world);
      await ingestNext();
      await expect.poll(() => socket.reports().at(-1)?.observationsTimestamp).toBe(seconds);
      await expect.poll(() => events.reports().at(-1)?.observationsTimestamp).toBe(seconds);
      socket.webSocket.close();
      events.close();
    } finally {
      child.kill('SIGTERM');
    }
  });
}

/** Starts proxies in front of the server; clients connect to the first, and each forwards to the next. */
const startChain = async (names: readonly ProgramName[], skip: (why: string) => never) => {
  const stops: (() => void)[] = [];
  let next = server.url;
  for (const name of names.toReversed()) {
    const proxy = deployedProxies.find(({ program }) => program === name);
    if (proxy === undefined) throw new Error(`No ${name} in deploy/.`);
    const target = { port: Number(new URL(next).port), opsUrl: server.opsUrl };
    const { url, child } = await startDeployedProxy(proxy, findProgram(name, skip), folder, target);
    stops.push(() => child.kill('SIGTERM'));
    next = url;
  }
  return { url: next, stop: () => stops.map((stop) => stop()) };
};

const chains = [
  ['haproxy', 'nginx'],
  ['nginx', 'haproxy'],
] as const;

for (const [n, names] of chains.entries()) {
  test(`deploy: through ${names.join(' and ')}, each client has limits of its own, whoever it says that it is`, async ({
    skip,
  }) => {
    const { url, stop } = await startChain(names, skip);
    try {
      const anonymous = (from: string, said: string) =>
        statusOf(url, '/api/v1/discovery', { 'X-Forwarded-For': said }, from);
      const many = await Promise.all(Array.from({ length: 8 }, (_, i) => anonymous(`127.2.${n}.5`, `192.0.2.${i}`)));
      expect(many).toContain(429);
      expect(await anonymous(`127.2.${n}.6`, `127.2.${n}.5`)).toBe(200);
      expect(await anonymous(`127.2.${n}.7`, `127.2.${n}.5, 127.0.0.1`)).toBe(200);
    } finally {
      stop();
    }
  });
}
