// The explorer's files as the real program serves them, byte by byte, and how much a browser loads first.
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exchange, head } from '../support/raw-http.ts';
import { createWorld, type Server, startServer, type World } from '../support/real-program.ts';
import { buildExplorer, builtText } from './build.ts';

let world: World;
let server: Server;
beforeAll(async () => {
  [world] = await Promise.all([createWorld(), buildExplorer()]);
  server = await startServer(world, ['--origins', '001,002', '--workers', '1']);
});
afterAll(async () => {
  await server?.stop();
  world?.remove();
});

type Received = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer };

/** Sends the path unchanged. */
const ask = (
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  { port } = server,
): Promise<Received> =>
  new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    request.on('error', reject);
    request.end();
  });

const gzip = { 'Accept-Encoding': 'gzip, deflate, br' };
const pages = ['/', '/inspect', '/status', `/streams/0x${'0'.repeat(64)}`, `/streams/0x${'0'.repeat(64)}/at/1`];

/** The files that the page imports, directly or not: what a browser loads before anything is shown. */
const loadedFirst = (): readonly string[] => {
  const found = new Set<string>();
  const visit = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    if (!path.endsWith('.js')) return;
    for (const [, name] of builtText(path).matchAll(
      /(?:^|[;}])\s*(?:import|export)\s*(?:[\w*{}\s,$]*?from)?\s*"\.\/([^"]+)"/g,
    ))
      visit(`/assets/${name}`);
  };
  for (const [, path] of builtText('/index.html').matchAll(/<(?:script|link)[^>]*\s(?:src|href)="(\/[^"]+)"/g))
    visit(path as string); // the group always matches
  return [...found];
};

test.each(pages)('explorer: %s is the page, never cached', async (path) => {
  const { status, headers, body } = await ask(path);
  expect([status, body.toString()]).toEqual([200, builtText('/index.html')]);
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-length': String(body.length),
  });
});

test('explorer: every file that the page loads exists, with its type, immutable and compressed', async () => {
  const files = loadedFirst();
  expect(files.filter((path) => path.endsWith('.js')).length).toBeGreaterThan(0);
  for (const path of files) {
    const [plain, packed] = [await ask(path), await ask(path, gzip)];
    expect([path, plain.status, plain.body.toString()]).toEqual([path, 200, builtText(path)]);
    expect(plain.headers['content-type']).toMatch(/^(text\/(javascript|css); charset=utf-8|image\/svg\+xml)$/);
    expect(plain.headers['content-encoding']).toBeUndefined();
    if (path.startsWith('/assets/')) expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    if (plain.body.length < 8_192) continue;
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(plain.headers).toMatchObject({ vary: 'Accept-Encoding' });
    expect(gunzipSync(packed.body).equals(plain.body)).toBe(true);
    expect(packed.headers.etag).toBe(String(plain.headers.etag).replace(/"$/, '-gz"'));
  }
});

test('explorer: the content security policy allows only this server', async () => {
  for (const path of [...pages, ...loadedFirst()]) {
    const { headers } = await ask(path);
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
  }
  const text = builtText('/index.html');
  expect(text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:/i);
  expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
});

test('explorer: a file that the browser has is not sent again', async () => {
  const script = loadedFirst().find((path) => path.endsWith('.js')) ?? '';
  for (const [path, accept] of [
    ['/', {}],
    [script, {}],
    [script, gzip],
  ] as const) {
    const first = await ask(path, accept);
    const again = await ask(path, { ...accept, 'If-None-Match': String(first.headers.etag) });
    expect([again.status, again.body.length, again.headers.etag]).toEqual([304, 0, first.headers.etag]);
    expect(again.headers['cache-control']).toBe(first.headers['cache-control']);
    expect((await ask(path, { ...accept, 'If-None-Match': '"another"' })).status).toBe(200);
  }
});

test('explorer: HEAD of a file has the headers of GET; HEAD of / still lists the origins, as clients expect', async () => {
  const script = loadedFirst().find((path) => path.endsWith('.js')) ?? '';
  for (const path of ['/inspect', script]) {
    const [get, told] = [await ask(path, gzip), await ask(path, gzip, 'HEAD')];
    const { date: _, 'x-request-id': __, connection: ___, ...same } = get.headers;
    expect([told.status, told.body.length]).toEqual([200, 0]);
    expect(told.headers).toMatchObject(same);
  }
  const origins = await ask('/', {}, 'HEAD');
  expect([origins.status, origins.headers['x-cll-available-origins']]).toEqual([200, '{001,002}']);
  expect(origins.headers['cache-control']).toBe('no-store');
});

test.each([
  '/index.html',
  '/assets',
  '/assets/',
  '/.stamp',
  '/../package.json',
  '/assets/../index.html',
  '/assets/..%2f..%2fpackage.json',
  '/%2e%2e/package.json',
  '/inspect/',
  '/%69nspect',
  '/streams/0x00',
  '/streams',
  '/favicon.ico',
])('explorer: %s is not found', async (path) => {
  const { status, body } = await ask(path);
  expect([status, JSON.parse(body.toString()).code]).toEqual([404, 'route_not_found']);
});

test('explorer: any other method is rejected with the allowed ones', async () => {
  const script = loadedFirst().find((path) => path.endsWith('.js')) ?? '';
  for (const path of ['/', '/status', script]) {
    for (const method of ['POST', 'PUT', 'DELETE', 'TRACE']) {
      const { answers } = await exchange(
        server.port,
        head(`${method} ${path} HTTP/1.1`, 'Host: a', 'Connection: close'),
      );
      expect(answers).toMatchObject([{ status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } }]);
    }
    const preflight = await ask(path, {}, 'OPTIONS');
    expect([preflight.status, preflight.headers.allow]).toEqual([204, 'GET, HEAD, OPTIONS']);
  }
});

test('explorer: a signature on a request for the page is ignored; the API still requires one', async () => {
  const { userId, secret } = world;
  const signed = signRequest({ method: 'GET', target: '/', userId, timestampMs: Date.now() }, secret);
  expect((await ask('/', signed)).status).toBe(200);
  expect((await ask('/', { ...signed, 'X-Authorization-Signature-SHA256': '0'.repeat(64) })).status).toBe(200);
  expect((await ask('/api/v1/feeds')).status).toBe(400);
  expect((await ask('/api/v1/feeds', signed)).status).toBe(401);
  expect((await ask('/api/v1/nothing')).status).toBe(404);
});

test('explorer: requests for files are one route in the log and the metrics, whatever their path', async () => {
  await ask('/inspect?secret=canary-of-a-query');
  await server.printed(/"userId":null,"address":"127.0.0.1","route":"explorer","method":"GET","status":200/);
  expect(server.output()).not.toContain('canary-of-a-query');
  const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text();
  expect(metrics).toMatch(
    /^sealpost_http_server_request_duration_seconds_count\{[^}]*http_route="explorer"[^}]*\} [1-9]/m,
  );
  expect(metrics).not.toContain('http_route="/inspect"');
});

test('explorer: switched off, / answers only HEAD, and /docs names the API’s document', async () => {
  const other = await createWorld();
  const without = await startServer(other, ['--explorer', 'off', '--origins', '001']);
  try {
    const statusOf = async (path: string, method = 'GET') => (await ask(path, {}, method, without)).status;
    expect([await statusOf('/'), await statusOf('/inspect'), await statusOf('/', 'HEAD')]).toEqual([405, 404, 200]);
    expect((await ask('/', {}, 'POST', without)).headers.allow).toBe('HEAD, OPTIONS');
    const docs = await ask('/docs', {}, 'GET', without);
    expect([docs.status, docs.body.toString()]).toEqual([200, expect.stringContaining('href="/openapi.json"')]);
  } finally {
    await without.stop();
    other.remove();
  }
});

test('explorer: /docs is the page for browsers and programs alike, and HEAD answers like GET', async () => {
  const [page, docs] = [await ask('/status'), await ask('/docs', { accept: '*/*' })];
  expect([docs.status, docs.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect(docs.body.equals(page.body)).toBe(true);
  expect(docs.body.toString()).toContain('<noscript>');
  const head = await ask('/docs', {}, 'HEAD');
  expect([head.status, head.headers['content-length']]).toEqual([200, docs.headers['content-length']]);
});

test('explorer: the API’s document is compressed once, and equal when decompressed', async () => {
  const [plain, packed] = [await ask('/openapi.json'), await ask('/openapi.json', gzip)];
  expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
  expect(gunzipSync(packed.body).equals(plain.body)).toBe(true);
  expect((await ask('/openapi.json', gzip)).body.equals(packed.body)).toBe(true);
});

test('explorer: a browser loads at most 100 KB of JavaScript before the first page', () => {
  const scripts = loadedFirst().filter((path) => path.endsWith('.js'));
  const bytes = scripts.reduce((sum, path) => sum + gzipSync(builtText(path), { level: 9 }).length, 0);
  process.stdout.write(`first load of the explorer: ${(bytes / 1_000).toFixed(1)} KB of JavaScript, gzipped\n`);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(100_000);
});
