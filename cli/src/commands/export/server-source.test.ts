import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  against,
  btc,
  first,
  forbidden,
  many,
  manyCount,
  now,
  openReadingSample,
  second,
  third,
  wire,
} from '../../reading-sample.fixture.ts';

const { service, run, close } = await openReadingSample();
const folder = mkdtempSync(join(tmpdir(), 'sealpost-export-'));
afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});
let folders = 0;
const newFolder = (): string => join(folder, `out-${++folders}`);

test('a server gives what its store has: one stream, several, all that the account may read', async () => {
  const url = ['--url', service.url];
  const one = await run(['export', 'btc/usd', ...url]);
  expect(one).toEqual({
    code: 0,
    stderr: '',
    stdout: [first, second, third].map((each) => `${wire(each)}\n`).join(''),
  });
  const paged = await run(['export', many, ...url, '--from', '-29d']);
  expect(paged.stdout.trim().split('\n')).toHaveLength(manyCount);
  const all = await run(['export', '--all', ...url]);
  const streams = new Set(
    all.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).feedID),
  );
  expect([all.code, streams.size, streams.has(forbidden)]).toEqual([0, 4, false]);
  const csv = await run(['export', 'BTC/USD', 'FAST/USD', ...url, '--format', 'csv', '--from', '-2m']);
  expect(
    csv.stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => [line.split(',')[0], line.split(',').at(-3)]),
  ).toEqual([
    ['BTC/USD-Streams-CexPrice', '97012.34567890123456789'],
    ['BTC/USD-Streams-CexPrice', '97000'],
    ['BTC/USD-Streams-CexPrice', '-0.000000000000000001'],
    ['FAST/USD-Streams-CexPrice', '0.5'],
  ]);
});

test('into a folder from a server, and the same from another source is rejected', async () => {
  const out = newFolder();
  const { code, stderr } = await run(['export', btc, '--url', service.url, '--format', 'csv', '--out', out]);
  expect([code, stderr]).toEqual([0, `3 reports of 1 stream in 1 file, ${out}.\n`]);
  expect(readdirSync(out).toSorted()).toEqual(['BTC-USD-Streams-CexPrice_2025-11-15.csv', '_sealpost-export.json']);
  const other = await against(
    (_, response) => void response.writeHead(500).end(),
    (url) => run(['export', btc, '--url', url, '--format', 'csv', '--out', out]),
  );
  expect(other).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('source was http://HOST, now it is http://127'),
  });
});

test('reports of other bytes than they claim are skipped by name, and the exit code is 1', async () => {
  const { code, stdout, stderr } = await run(['export', many, '--url', service.url, '--from', '-25s', '--decoded']);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain(
    `error: The report of MANY/USD-Streams-CexPrice observed at 2025-11-15T09:46:15Z was skipped: its bytes are a report of ${btc}.\n`,
  );
  expect(stderr).toMatch(/error: 5 more problems\.\n$/);
});

test('a stream that may not be read, and --store with --url, are errors', async () => {
  const { code, stderr } = await run(['export', forbidden, '--url', service.url, '--out', newFolder()]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('stream_not_accessible')]);
  expect((await run(['export', btc, '--url', service.url, '--store', 'x'])).code).toBe(2);
});

/** A server with the page route of the specification and nothing else: no extension, no headers, no catalog. */
const bare =
  (pageMax: number, asked: string[] = []): RequestListener =>
  (request, response) => {
    const url = new URL(request.url ?? '', 'http://x');
    asked.push(url.pathname);
    const start = Number(url.searchParams.get('startTimestamp'));
    const limit = Number(url.searchParams.get('limit') ?? 10);
    if (url.pathname !== '/api/v1/reports/page') return void response.writeHead(404).end('{"error":"not found"}');
    if (limit > pageMax) return void response.writeHead(400).end('{"error":"limit is too large"}');
    const reports = [first, second, third].filter(({ observationsMs }) => observationsMs >= start * 1_000);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(`{"reports":[${reports.slice(0, limit).map(wire).join(',')}]}`);
  };

test.each([1_000, 100, 10])(
  'a server that is not ours and allows %i reports per page is read by feed ID',
  async (pageMax) => {
    const out = newFolder();
    await against(bare(pageMax), async (url) => {
      const { stdout, stderr } = await run(['export', btc, '--url', url]);
      expect([stdout, stderr]).toEqual([[first, second, third].map((each) => `${wire(each)}\n`).join(''), '']);
      expect(await run(['export', btc, '--url', url, '--format', 'csv', '--out', out])).toMatchObject({ code: 0 });
      expect(readdirSync(out)).toContain(`${btc}_2025-11-15.csv`);
      const all = await run(['export', '--all', '--url', url]);
      expect([all.code, all.stderr]).toEqual([1, expect.stringContaining('Name the streams.')]);
    });
  },
);

test('an interrupted folder is continued; a server that fails for good ends it with 3', async () => {
  const out = newFolder();
  const args = (url: string) => ['export', btc, '--url', url, '--out', out];
  let fails = true;
  await against(
    (request, response) => {
      if (fails) response.writeHead(418).end('{"error":"no"}');
      else bare(1_000)(request, response);
    },
    async (url) => {
      expect((await run(args(url))).code).toBeGreaterThan(0);
      expect(readdirSync(out)).toEqual(['_sealpost-export.json']);
      fails = false;
      expect(await run(args(url))).toMatchObject({ code: 0, stderr: expect.stringContaining('Resuming') });
    },
  );
  const [file = ''] = readdirSync(out).filter((name) => name.startsWith('0x'));
  expect(readFileSync(join(out, file), 'utf8').trim().split('\n')).toHaveLength(3);
});

test('a range that begins before what the server keeps is exported from there, with a problem', async () => {
  const { code, stdout, stderr } = await run(['export', btc, '--url', service.url, '--from', `${now - 40 * 86_400}`]);
  expect([code, stdout.trim().split('\n').length]).toEqual([1, 3]);
  expect(stderr).toMatch(
    /^error: BTC\/USD-Streams-CexPrice: the server keeps reports from 2025-10-16T\S+ on; earlier ones are missing\.\n$/,
  );
});

test('a server that left out damaged reports is told', async () => {
  await against(
    (request, response) => {
      response.setHeader('Sealpost-Missing', 'damaged');
      bare(1_000)(request, response);
    },
    async (url) => {
      const { code, stderr } = await run(['export', btc, '--url', url]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('the server left out reports that are damaged')]);
    },
  );
});
