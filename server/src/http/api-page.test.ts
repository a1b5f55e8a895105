import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { errorTable, formOf, type Route, routes, signatureOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createOpenApi } from '../../../protocol/src/openapi.ts';
import { apiPagePolicy, renderApiPage } from './api-page.ts';

const serverUrl = 'https://reports.example';
const document = createOpenApi({ serverUrl });
const page = renderApiPage(document, { serverUrl });
const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id as string);
const links = [...page.matchAll(/href="([^"]+)"/g)].map(([, target]) => target as string);
const textOf = (html: string) =>
  html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
const codeIn = (html: string, label: string) =>
  textOf(new RegExp(`<figcaption>${label}</figcaption><pre[^>]*><code>([^]*?)</code>`).exec(html)?.[1] ?? '');
const articleOf = (id: string) => new RegExp(`<article id="${id}">[^]*?</article>`).exec(page)?.[0] ?? '';

/** The article of a path, whichever form of it is asked for. */
const articleAt = (path: string) =>
  articleOf(Object.entries<Route>(routes).find(([, route]) => route.path === path)?.[0] ?? '');

test('api page: every operation has a unique anchor', () => {
  for (const item of Object.values(document.paths)) {
    for (const { operationId } of Object.values(item)) expect(ids).toContain(operationId);
  }
  expect(new Set(ids).size).toBe(ids.length);
});

test('api page: every link stays on the page or leads to the document', () => {
  expect(links.length).toBeGreaterThan(100);
  for (const link of links) expect(link === '/openapi.json' || ids.includes(link.slice(1)), link).toBe(true);
});

test('api page: nothing runs and nothing is fetched', () => {
  expect(page).not.toMatch(/<(script|link|img|iframe|object|form|base)\b|\ssrc=|\sstyle=|\son\w+=|@import|url\(/i);
});

test('api page: the content policy allows its one style and nothing else', () => {
  const styles = [...page.matchAll(/<style>([^<]*)<\/style>/g)].map(([, text]) => text as string);
  expect(styles).toHaveLength(1);
  const hash = createHash('sha256').update(String(styles[0])).digest('base64');
  expect(apiPagePolicy).toBe(
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
});

test('api page: input is escaped', () => {
  const hostile = renderApiPage(document, { serverUrl: 'https://x"><script>alert(1)</script>' });
  expect(hostile).not.toContain('<script>');
  expect(hostile).toContain('https://x&quot;&gt;&lt;script&gt;');
});

test('api page: every parameter, answer and error code is listed', () => {
  for (const [, { path, query, answers }] of Object.entries(routes)) {
    const article = articleAt(path);
    for (const argument of Object.keys(query)) expect(article).toContain(`<code>${argument}</code>`);
    for (const status of Object.keys(answers)) expect(article).toContain(`>${status}</dt>`);
  }
  for (const code of Object.keys(errorTable)) expect(ids).toContain(`error-${code}`);
  for (const name of Object.keys(document.components.schemas)) expect(ids).toContain(`body-${name}`);
});

test('api page: every example has the parameters that its route requires, and a signature where needed', () => {
  const plain = Object.entries<Route>(routes).filter(([, route]) => formOf(route) === undefined);
  for (const [name, { method, path, auth, query }] of plain) {
    const example = codeIn(articleOf(name), 'Example');
    const required = Object.entries(query).filter(([, row]) => 'required' in row);
    for (const [argument] of required) expect(example, name).toMatch(new RegExp(`[?&]${argument}=`));
    expect(example).toMatch(
      auth === 'none' ? /^curl https:/m : new RegExp(`^sealpost sign ${method} .*\\| curl `, 'm'),
    );
    expect(example).toContain(path);
  }
});

test('api page: every example is a shell program', () => {
  for (const name of Object.keys(routes)) {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: codeIn(articleOf(name), 'Example') });
    expect(status, String(stderr)).toBe(0);
  }
});

const user = '4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d';
const secret = 'sealpost-vector-secret';

/** Runs a signing example whose request goes nowhere and whose headers are printed, one per line. */
const runs: Readonly<Record<string, (code: string) => string>> = {
  Shell: (code) => run('bash', `user=${user} secret=${secret}\ncurl() { cat; }\n${code}`),
  TypeScript: (code) => {
    const print = "for (const header of Object.entries(headers)) console.log(header.join(': '))";
    const fetch = `const fetch = (url, { headers }) => { ${print} };`;
    return run('node', `const user = '${user}', secret = '${secret}'; ${fetch}\n${code}`, ['--input-type=module', '-']);
  },
  Python: (code) => {
    const print = 'print("\\n".join(f"{name}: {value}" for name, value in headers.items()))';
    return run(
      'python3',
      `user, secret = "${user}", "${secret}"\n${code.split('\n').slice(0, -1).join('\n')}\n${print}`,
    );
  },
};
const run = (command: string, input: string, args: readonly string[] = []): string =>
  execFileSync(command, args, { input, encoding: 'utf8' });
const tools: Readonly<Record<string, string>> = { Shell: 'perl', TypeScript: 'node', Python: 'python3' };

test('api page: examples pass the secret to no program as an argument, which other users could read', () => {
  const programs = ['openssl', 'perl', 'cut', 'date'];
  const spies = programs
    .map((name) => `${name}() { printf '%s\\n' "${name} $*" >&2; command ${name} "$@"; }`)
    .join('\n');
  const input = `user=${user} secret=${secret}\ncurl() { cat >/dev/null; }\n${spies}\n${codeIn(page, 'Shell')}`;
  const { status, stderr } = spawnSync('bash', [], { input, encoding: 'utf8' });
  expect([status, stderr.split('\n').length > 4, stderr.includes(secret)]).toEqual([0, true, false]);
});

for (const [label, runExample] of Object.entries(runs)) {
  const isThere = spawnSync(String(tools[label]), ['--help'], { stdio: 'ignore' }).error === undefined;
  test.skipIf(!isThere)(`api page: the six lines of ${label} sign as the protocol does`, () => {
    const code = codeIn(page, label);
    expect(code.split('\n').length).toBeLessThanOrEqual(6);
    const headers = new Map(
      runExample(code)
        .trim()
        .split('\n')
        .map((line) => line.split(': ') as [string, string]),
    );
    const timestampMs = Number(headers.get('X-Authorization-Timestamp'));
    expect(headers.get('X-Authorization-Timestamp')).toMatch(/^[0-9]{13}$/);
    expect(headers.get('Authorization')).toBe(user);
    expect(headers.get('X-Authorization-Signature-SHA256')).toBe(
      signatureOf({ method: 'GET', target: '/api/v1/feeds', userId: user, timestampMs }, secret),
    );
  });
}
