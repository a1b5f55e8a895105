import type { RequestListener } from 'node:http';
import { afterAll, describe, expect, test } from 'vitest';
import {
  against,
  btc,
  eth,
  first,
  forbidden,
  hexOf,
  many,
  manyCount,
  now,
  nowMs,
  openReadingSample,
  type RunOptions,
  second,
  silent,
  third,
  wire,
} from '../reading-sample.fixture.ts';

const { service, alice, run, close } = await openReadingSample();
afterAll(close);

describe('report latest and at', () => {
  test('people get a table with the exact price, found by name in any case', async () => {
    const ran = await run(['report', 'at', 'btc/usd-streams-cexprice', '--timestamp', String(now - 55)]);
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    expect(ran.stdout).toMatch(/^time \(UTC\) +price +bid +ask +valid for +age\n/);
    expect(ran.stdout.split('\n')[1]?.split(/\s{2,}/)).toEqual([
      '2025-11-15T09:45:49Z',
      '97012.34567890123456789',
      '97012.34567890123456789',
      '97012.34567890123456789',
      '10 s',
      '00:51',
    ]);
  });

  test('the smallest negative price and a window of milliseconds are exact too', async () => {
    const { stdout } = await run(['report', 'latest', btc]);
    expect(stdout).toContain('-0.000000000000000001');
    const ms = await run(['report', 'latest', 'FAST/USD-Streams-CexPrice']);
    expect(ms.stdout.split('\n')[1]).toBe('2025-11-15T09:46:40.023Z    0.5  0.5  0.5     250 ms  00:00');
  });

  test('--json is the report as the API gives it, --raw its signed bytes', async () => {
    expect((await run(['report', 'latest', btc, '--json'])).stdout).toBe(`${wire(third)}\n`);
    expect((await run(['report', 'latest', btc, '--raw'])).stdout).toBe(`${hexOf(third)}\n`);
    expect(await run(['report', 'latest', btc, '--raw', '--json'])).toMatchObject({ code: 2 });
  });

  test.each([
    [
      now - 30,
      'No report is valid at this time: it falls into a gap. (request ID) The previous report is valid to 2025-11-15T09:45:59Z. The next report is valid from 2025-11-15T09:46:20Z.',
    ],
    [
      now,
      'No report is valid at this time yet: it is after the newest one. (request ID) The previous report is valid to 2025-11-15T09:46:29Z.',
    ],
    [
      now - 90,
      'No report is valid at this time: it is before the oldest one kept. (request ID) The next report is valid from 2025-11-15T09:45:40Z.',
    ],
  ])('a miss at %i is explained, exit code 1', async (timestamp, text) => {
    const ran = await run(['report', 'at', btc, '--timestamp', String(timestamp)]);
    expect(ran).toEqual({ code: 1, stdout: '', stderr: `error: report_not_found: ${text}\n` });
  });

  test('a hidden stream is found by name by accounts that may read it', async () => {
    const { code, stderr } = await run(['report', 'latest', 'NEW/USD-Streams-CexPrice']);
    expect([code, stderr]).toEqual([1, 'error: report_not_found: The stream has no report yet. (request ID)\n']);
  });
});

describe('report bulk', () => {
  test('reports come in the order requested, each with its stream', async () => {
    const feeds = ['ETH/USD-Streams-CexPrice', 'BTC/USD-Streams-CexPrice'];
    const ran = await run(['report', 'bulk', ...feeds, '--timestamp', String(now - 45)]);
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    const cells = ran.stdout.split('\n').map((line) => line.split(/\s{2,}/).slice(0, 3));
    expect(cells.slice(1, 3)).toEqual([
      ['ETH/USD-Streams-CexPrice', '2025-11-15T09:45:59Z', '1'],
      ['BTC/USD-Streams-CexPrice', '2025-11-15T09:45:59Z', '97000'],
    ]);
  });

  test('streams without data are listed with the reason, and the exit code is 1', async () => {
    const feeds = ['BTC/USD-Streams-CexPrice', eth, 'NEW/USD-Streams-CexPrice'];
    const ran = await run(['report', 'bulk', ...feeds, '--timestamp', String(now - 55), '--json']);
    const missing = `{"missing":[{"feedID":"${eth}","reason":"before_first"},{"feedID":"${silent}","reason":"no_reports"}]}`;
    expect(ran).toEqual({
      code: 1,
      stdout: `${wire(first)}\n${missing}\n`,
      stderr: `warning: no report of ${eth}: the time is before its oldest report.\nwarning: no report of NEW/USD-Streams-CexPrice: it has no reports.\n`,
    });
    const unread = await run(['report', 'bulk', ...feeds, '--timestamp', String(now - 55)], { isUnread: true });
    expect(unread.code).toBe(1);
  });
});

describe('report page', () => {
  const page = (...args: string[]) => run(['report', 'page', ...args]);

  test('a page says how to continue', async () => {
    const ran = await page(btc, '--from', '-1m', '--limit', '2');
    expect([ran.code, ran.stdout.split('\n').length, ran.stderr]).toEqual([
      0,
      4,
      `More reports follow. Continue with --from ${now - 40}, or use --all.\n`,
    ]);
    expect((await page(btc, '--from', '-1m', '--limit', '2', '--json')).stdout).toBe(
      `${wire(first)}\n${wire(second)}\n`,
    );
  });

  test('--to ends it, the moment included', async () => {
    const ran = await page(btc, '--from', '-1m', '--to', String(now - 41), '--json');
    expect(ran).toEqual({ code: 0, stdout: `${wire(first)}\n${wire(second)}\n`, stderr: '' });
    expect(await page(btc, '--from', '-5s')).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: ${btc} has no reports in this time range.\n`,
    });
  });

  test('--all follows to the end of data, every report once', async () => {
    const { code, stdout } = await page(many, '--from', '-1h', '--all', '--json');
    const observed = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).observationsTimestamp);
    expect(code).toBe(0);
    expect(observed).toEqual(Array.from({ length: manyCount }, (_, i) => now - manyCount + i));
    const table = await page(many, '--from', '-1h', '--all');
    expect(table.stdout.match(/price/g)?.length).toBe(1);
    expect(table.stdout.trim().split('\n').length).toBe(manyCount + 1);
  });

  test.each([
    [['--from', '-1m', '--all', '--limit', '5'], '--limit cannot be combined with --all.'],
    [['--from', '-1m', '--limit', '1001'], '--limit has the value "1001", expected a whole number from 1 to 1000.'],
    [['--from', 'now', '--to', '-1m'], `--to (${now - 60}) is before --from (${now}).`],
  ])('%j is wrong usage', async (args, text) => {
    expect(await page(btc, ...args)).toEqual({ code: 2, stdout: '', stderr: `error: ${text}\n` });
  });
});

describe('failures of the server and the network', () => {
  const latest = (feed: string, options: RunOptions & { url?: string } = {}) =>
    run(['report', 'latest', feed, ...(options.url ? ['--url', options.url] : [])], options);

  test('a wrong secret, an inaccessible stream and an old time are reported with code, request ID and advice', async () => {
    const ran = await latest(btc, { as: { ...alice, secret: 'another' } });
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toMatch(
      /^error: unauthorized: .* \(request ID\) Check the user ID and secret; the account may be disabled\.\n$/,
    );
    expect((await latest(forbidden)).stderr).toMatch(
      /^error: stream_not_accessible: .* See the streams .*: sealpost doctor http:\/\/HOST\.\n$/,
    );
    expect((await run(['report', 'at', btc, '--timestamp', '-40d'])).stderr).toBe(
      'error: timestamp_out_of_bounds: Timestamp out of bounds. Timestamp must be within the last 30 days. (request ID) Request a later time.\n',
    );
  });

  test('a pair names its stream, and several streams of one pair are listed', async () => {
    expect((await run(['report', 'latest', 'btc/usd', '--raw'])).stdout).toBe(`${hexOf(third)}\n`);
    const { code, stderr } = await latest('TEST/USD');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^error: "TEST\/USD" matches 6 streams\. Give a full name or a feed ID:\n {2}BTC\/USD-Streams-/,
    );
    expect(stderr).toContain(`  EUR/USD-Streams-ForexPrice  ${forbidden}`);
  });

  test('a name that is not in the catalog is wrong usage', async () => {
    expect(await latest('XYZ/ABC')).toMatchObject({
      code: 2,
      stderr: 'error: No stream is named "XYZ/ABC". List streams with: sealpost stream list --url http://HOST.\n',
    });
    expect(await latest('0x12')).toMatchObject({ code: 2 });
  });

  test('a closed port, an unknown name and a server without TLS are exit code 3', async () => {
    const url = await against(
      () => {},
      async (address) => address,
    );
    const [closed, unknown, plain] = await Promise.all(
      [url, 'http://nowhere.invalid', service.url.replace('http:', 'https:')].map((one) => latest(btc, { url: one })),
    );
    expect([closed?.code, closed?.stderr.replace(/127\S+/, 'IT')]).toEqual([
      3,
      'error: IT refused the connection (ECONNREFUSED). Start the server, or check host and port.\n',
    ]);
    expect(unknown).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('could not be resolved'),
    });
    expect(plain).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('Use http://, or the TLS port.'),
    });
  });

  test('another server’s page, a malformed report and a redirect are not accepted as answers', async () => {
    const page = await against(
      (_, response) => response.end('<html>'),
      (url) => latest(btc, { url }),
    );
    expect(page).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('returned 200 with a body that is not a Sealpost response.'),
    });
    const shape = '{"report":{"feedID":"0x","fullReport":3}}';
    expect(
      (
        await against(
          (_, response) => response.end(shape),
          (url) => latest(btc, { url }),
        )
      ).code,
    ).toBe(3);
    const redirect: RequestListener = (_, response) =>
      response.writeHead(302, { Location: 'http://elsewhere.invalid/' }).end();
    expect((await against(redirect, (url) => latest(btc, { url }))).stderr).toContain(
      'redirects to http://elsewhere.invalid/ (302). Use that address, if you trust it.',
    );
  });

  test('an interruption ends the wait for an answer', async () => {
    const controller = new AbortController();
    const stopped = await against(
      () => controller.abort('SIGINT'),
      (url) => latest(btc, { url, interruption: controller.signal }),
    );
    expect(stopped).toEqual({ code: 130, stdout: '', stderr: 'error: Interrupted.\n' });
  });

  test('the command waits for Retry-After and retries', async () => {
    let calls = 0;
    const busy: RequestListener = (_, response) => {
      calls += 1;
      if (calls < 3) response.writeHead(429, { 'Retry-After': '0' }).end('{}');
      else response.end(`{"report":${wire(third)}}`);
    };
    const ran = await against(busy, (url) => run(['report', 'latest', btc, '--raw', '--url', url]));
    expect([ran.stdout, calls]).toEqual([`${hexOf(third)}\n`, 3]);
  });

  test('a wrong clock is corrected, with a warning', async () => {
    const ran = await run(['report', 'latest', btc, '--raw'], { nowMs: nowMs - 8_000 });
    expect(ran).toEqual({
      code: 0,
      stdout: `${hexOf(third)}\n`,
      stderr:
        'warning: The clock of this machine is 8000 ms behind the server’s. Requests are signed with the server’s time; synchronize the clock.\n',
    });
  });
});

describe('sign', () => {
  const target = '/api/v1/feeds?x={1}"\\';

  test('the default is a curl config file, with the target unchanged', async () => {
    const { code, stdout } = await run(['sign', 'GET', target]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(
        `^path-as-is\ngloboff\nurl = "http://HOST/api/v1/feeds\\?x=\\{1\\}\\\\"\\\\\\\\"\nheader = "Authorization: ${alice.userId}"\nheader = "X-Authorization-Timestamp: ${nowMs}"\nheader = "X-Authorization-Signature-SHA256: [0-9a-f]{64}"\n$`,
      ),
    );
    expect((await run(['sign', 'HEAD', '/'])).stdout).toContain('globoff\nhead\nurl = "http://HOST/"\n');
    expect((await run(['sign', 'POST', '/'])).stdout).toContain('globoff\nrequest = "POST"\nurl');
  });

  test('get means GET', async () => {
    const args = ['/api/v1/feeds', '--json'];
    expect((await run(['sign', 'get', ...args])).stdout).toBe((await run(['sign', 'GET', ...args])).stdout);
  });

  test('the server accepts what --headers and --json print', async () => {
    const lines = (await run(['sign', 'GET', '/api/v1/feeds', '--headers'])).stdout.trim().split('\n');
    const fromLines = Object.fromEntries(lines.map((line) => line.split(': ') as [string, string]));
    const { method, headers } = JSON.parse((await run(['sign', 'GET', '/api/v1/feeds', '--json'])).stdout);
    expect([method, fromLines]).toEqual(['GET', headers]);
    expect((await service.call('/api/v1/feeds', { as: null, headers })).status).toBe(200);
  });

  test.each([
    [['G3T', '/'], 'METHOD is "G3T", expected letters only'],
    [['GET', 'api'], 'TARGET must start with /'],
    [['GET', '/a b'], 'TARGET must start with /'],
    [['GET', '/a#b'], 'TARGET must start with /'],
    [['GET', '/\n'], 'TARGET must start with /'],
    [['GET', '/', '--json', '--headers'], 'cannot be combined'],
  ])('%j is wrong usage', async (args, text) => {
    const ran = await run(['sign', ...args]);
    expect([ran.code, ran.stdout]).toEqual([2, '']);
    expect(ran.stderr).toContain(text);
  });
});

describe('watch', () => {
  test('the table on a terminal shows the newest price of each stream at once, before any live report', async () => {
    const controller = new AbortController();
    const terminal = (text: string): void => {
      // Streams that last reported an age ago are filled in; one without any report has none.
      if (text.includes('-0.000000000000000001')) controller.abort('SIGINT');
    };
    const ran = await run(['watch', 'BTC/USD', silent], { terminal, interruption: controller.signal });
    expect([ran.code, ran.stderr]).toEqual([130, '']);
    const last = ran.stdout.split('\x1b[H').at(-1) ?? '';
    expect(last).toMatch(/^.*BTC\/USD-Streams-CexPrice +-0\.000000000000000001 .* 11 s +0 +0/m);
    expect(last).toMatch(/NEW\/USD-Streams-CexPrice +– +– +– +– +0 +0/);
  });
});
