import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError, errorOf } from '@sealpost/protocol';
import { afterEach, expect, test } from 'vitest';
import { answerFile, type FindFile, openExplorer, type ServedFile } from './explorer.ts';
import { openShedding } from './shedding-listener.fixture.ts';
import { matchRoute } from './target.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const folderWith = (files: Readonly<Record<string, string | Buffer>>): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-public-'));
  folders.push(folder);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
};

const fail = (error: unknown): never => {
  throw error;
};

const page = '<!doctype html><title>page</title>';
const open = (files: Readonly<Record<string, string>> = {}): FindFile =>
  openExplorer(folderWith({ 'index.html': page, 'assets/main-1a2b.js': 'run()', ...files }), fail);
const bodyOf = (file: ServedFile | undefined): string | undefined => file?.whole.body?.toString();

const feedId = `0x0003${'aB'.repeat(30)}`;

test.each(['/', '/inspect', '/status', `/streams/${feedId}`, `/streams/${feedId}/at/1763200000`])(
  'explorer: %s is an address of the page',
  (path) => {
    expect(bodyOf(open()(path))).toBe(page);
  },
);

test.each([
  '/index.html',
  '/inspect/',
  '/Inspect',
  '/streams',
  '/streams/',
  `/streams/${feedId}/`,
  `/streams/${feedId}0`,
  `/streams/${feedId.slice(2)}`,
  `/streams/${feedId}/at`,
  `/streams/${feedId}/at/`,
  `/streams/${feedId}/at/12345678901`,
  `/streams/${feedId}/at/-1`,
  `/streams/${feedId}/at/1\n`,
  '/assets',
  '/assets/',
  '/assets/main-1a2b.js/',
  '/assets/../assets/main-1a2b.js',
  '/./assets/main-1a2b.js',
  '/assets/main%2d1a2b.js',
  '/%61ssets/main-1a2b.js',
  '/ASSETS/main-1a2b.js',
  '/.stamp',
  '/../package.json',
  '/constructor',
  '',
])('explorer: %j is not found', (path) => {
  expect(open({ '.stamp': 'x' })(path)).toBeUndefined();
});

test('explorer: a file is found by its exact path, with its type, and for good where its name has its hash', () => {
  const find = open({ 'icon.svg': '<svg/>', 'assets/look-9f.css': 'a{}', 'assets/unknown-1.xyz': '?' });
  const typeAndCache = (path: string) => {
    const { contentType, cacheControl } = find(path)?.whole ?? {};
    return [contentType, cacheControl];
  };
  const forGood = 'public, max-age=31536000, immutable';
  expect(typeAndCache('/')).toEqual(['text/html; charset=utf-8', 'no-cache']);
  expect(typeAndCache('/icon.svg')).toEqual(['image/svg+xml', 'no-cache']);
  expect(typeAndCache('/assets/main-1a2b.js')).toEqual(['text/javascript; charset=utf-8', forGood]);
  expect(typeAndCache('/assets/look-9f.css')).toEqual(['text/css; charset=utf-8', forGood]);
  expect(typeAndCache('/assets/unknown-1.xyz')).toEqual(['application/octet-stream', forGood]);
});

test('explorer: an unchanged file is not sent again, and plain and compressed files have different tags', () => {
  const { whole, ...rest } = open({ 'large.txt': 'large'.repeat(2_000) })('/large.txt') as ServedFile; // just written
  const answer = (acceptsGzip: boolean, ifNoneMatch?: string) => {
    const { status, tag, body } = answerFile({ whole, ...rest }, acceptsGzip, ifNoneMatch);
    return [status, tag, body === undefined];
  };
  const tag = String(whole.tag);
  expect(tag).toMatch(/^[\w-]{27}$/);
  expect(answer(false)).toEqual([200, tag, false]);
  expect(answer(false, '"other"')).toEqual([200, tag, false]);
  for (const known of [`"${tag}"`, `W/"${tag}"`, `"other", "${tag}-gz"`, '*']) {
    expect(answer(false, known)).toEqual([304, tag, true]);
    expect(answer(true, known)).toEqual([304, `${tag}-gz`, true]);
  }
});

test('explorer: a small file goes out as it is, and has one tag', () => {
  const file = open()('/') as ServedFile; // every build has it
  expect(file.whole.packed).toBeUndefined();
  expect(answerFile(file, true, `"${file.whole.tag}"`)).toMatchObject({ status: 304, tag: file.whole.tag });
});

test('explorer: different content has a different tag', () => {
  const tagOf = (content: string) => open({ 'a.txt': content })('/a.txt')?.whole.tag;
  expect(tagOf('one')).toBe(tagOf('one'));
  expect(tagOf('one')).not.toBe(tagOf('two'));
});

test('explorer: links are not followed', () => {
  const folder = folderWith({ 'index.html': page });
  symlinkSync('/etc/hostname', join(folder, 'leak.txt'));
  symlinkSync('/etc', join(folder, 'etc'));
  const find = openExplorer(folder, fail);
  expect([find('/leak.txt'), find('/etc/hostname')]).toEqual([undefined, undefined]);
});

test('explorer: without a build the page says how to make one, and a warning is logged', () => {
  const troubles: unknown[] = [];
  const find = openExplorer(join(folderWith({}), 'missing'), (error) => void troubles.push(error));
  expect(troubles).toEqual([expect.objectContaining({ code: 'ENOENT' })]);
  for (const path of ['/', '/inspect', `/streams/${feedId}`]) {
    expect(find(path)?.whole).toMatchObject({ status: 404, contentType: 'text/plain; charset=utf-8' });
    expect(bodyOf(find(path))).toContain('npm run build');
    expect(answerFile(find(path) as ServedFile, true, '*').status).toBe(404); // just found
  }
  expect(find('/assets/main-1a2b.js')).toBeUndefined();
});

test('explorer: a folder that is too large to be a build is not loaded', () => {
  const troubles: unknown[] = [];
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`${i}.txt`, '']));
  for (const files of [many, { 'index.html': Buffer.alloc(16 * 2 ** 20 + 1) }]) {
    const find = openExplorer(folderWith(files), (error) => void troubles.push(error));
    expect(find('/')?.whole.status).toBe(404);
  }
  expect(troubles).toHaveLength(2);
});

test('explorer: a route comes before a file of the same path, and methods are those of both', () => {
  const find = open({ time: 'not the clock', 'api/v1/feeds': 'not the feeds' });
  expect(matchRoute('GET', { path: '/time', query: '' }, find)).toMatchObject({ name: 'time' });
  expect(matchRoute('GET', { path: '/api/v1/feeds', query: '' }, find)).toMatchObject({ name: 'feeds' });
  expect(matchRoute('HEAD', { path: '/', query: '' }, find)).toMatchObject({ name: 'origins' });
  expect(matchRoute('GET', { path: '/', query: '' }, find)).toHaveProperty('file');
  expect(matchRoute('HEAD', { path: '/inspect', query: '' }, find)).toHaveProperty('file');
  const allow = 'GET, HEAD, OPTIONS';
  for (const path of ['/', '/inspect', '/assets/main-1a2b.js']) {
    expect(matchRoute('OPTIONS', { path, query: '' }, find)).toEqual({ allow });
    for (const method of ['POST', 'get', 'DELETE'])
      expect(() => matchRoute(method, { path, query: '' }, find)).toThrow(
        new ApiError('method_not_allowed', `This path answers ${allow}.`, { allow }),
      );
  }
});

const browser = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
const program = { headers: { accept: '*/*' } };

test('explorer: a browser at an address that nothing answers gets the page with 404, a program an error', () => {
  const ask = (path: string, isBrowser: boolean, find: FindFile | undefined) =>
    matchRoute('GET', { path, query: '' }, find, isBrowser ? browser : program);
  for (const path of ['/stream', '/Status', `/streams/${feedId}0`, '/..', '/%2e', '//status', '/index.html']) {
    expect(ask(path, true, open())).toMatchObject({ file: { whole: { status: 404, cacheControl: 'no-store' } } });
    expect(() => ask(path, false, open())).toThrow(errorOf('route_not_found'));
  }
  expect(() => ask('/api/v1/report', true, open())).toThrow(errorOf('route_not_found'));
  expect(() => matchRoute('POST', { path: '/stream', query: '' }, open(), browser)).toThrow(errorOf('route_not_found'));
  const notBuilt = openExplorer(join(folderWith({}), 'missing'), () => {});
  for (const find of [undefined, notBuilt])
    expect(() => ask('/stream', true, find)).toThrow(errorOf('route_not_found'));
});

test.each([
  ['/status/', '/status'],
  ['/docs/', '/docs'],
  ['/docs//', '/docs'],
  ['/streams', '/'],
  ['/streams/', '/'],
  [`/streams/${feedId}/`, `/streams/${feedId}`],
])('explorer: a browser at %s is sent to %s, with its query', (path, location) => {
  for (const [query, to] of [
    ['', location],
    ['range=1d', `${location}?range=1d`],
  ] as const)
    expect(matchRoute('GET', { path, query }, open(), browser)).toMatchObject({
      file: { whole: { status: 308, headers: expect.arrayContaining(['Location', to]) } },
    });
});

test('explorer: its files are served while requests are shed, up to the limit of the address', async () => {
  const { listener } = await openShedding(open());
  const statusOf = async (path: string) => (await fetch(`${listener.url}${path}`)).status;
  try {
    const files = ['/', '/?q=eth', '/inspect', '/assets/main-1a2b.js'];
    expect(await Promise.all(files.map(statusOf))).toEqual([200, 200, 200, 200]);
    const others = ['/api/v1/feeds', '/api/v1/reports/latest', '/nothing'];
    expect(await Promise.all(others.map(statusOf))).toEqual([503, 503, 404]);
    // Ten a second from one address; a page load is fewer.
    const more = ['/', '/', '/', '/', '/', '/', '/nothing'];
    expect((await Promise.all(more.map(statusOf))).toSorted()).toEqual([200, 200, 200, 200, 200, 429, 429]);
  } finally {
    await listener.close(0);
  }
});
