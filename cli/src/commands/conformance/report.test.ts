// What the command prints and accepts; and servers that are broken or mean harm: each run gives a clear result and ends.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { groupOf } from '@sealpost/conformance/check';
import { exchange } from '@sealpost/conformance/exchange';
import { createPace } from '@sealpost/conformance/pace';
import { checkTable } from '@sealpost/conformance/table';
import { afterAll, expect, test } from 'vitest';
import { createCertificate } from '../../../../tests/support/certificates.ts';
import { openService } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { readText } from '../../../../tests/support/source-tree.ts';
import { against } from '../../reading-sample.fixture.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-report-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = 'a-secret-that-must-not-show';
const env = { SEALPOST_USER_ID: '11111111-2222-4333-8444-555555555555', SEALPOST_SECRET: secret };
const fast = ['--requests-per-second', '1000', '--timeout', '2'];
const strange = '<a href="x">&amp; "quoted" \u0007 ]]></a>';
/** Everything is 200 with a page that is not JSON. */
const withPages = (...args: readonly string[]) =>
  against(
    (_, response) => void response.end(strange),
    (url) => runCommand(['conformance', url, ...fast, ...args], { env }),
  );

test('conformance: the table has groups with counts, and details of each failure', async () => {
  const { code, stdout } = await withPages('--only', 'signing.accepted', '--only', 'discovery.hidden-malformed');
  expect(code).toBe(1);
  expect(stdout.replace(/127\.0\.0\.1:\d+/g, 'HOST')).toBe(`signing 1 passed
  ✓ signing.accepted            A correctly signed request is accepted

discovery 1 failed
  ✗ discovery.hidden-malformed  A value of hidden that is not a boolean is 400
      expected:      400
      actual:        200 <a href="x">&amp; "quoted" \ufffd ]]></a>
      specification: A query argument is missing or malformed
      reproduce:     curl -i --path-as-is --globoff 'http://HOST/api/v1/discovery?hidden=maybe'

1 passed, 1 failed, 3 requests
`);
});

test('conformance: JUnit XML is well-formed whatever the server sends, to a file or to standard output', async () => {
  const file = join(folder, 'report.xml');
  const { code, stdout } = await withPages('--only', 'discovery', '--junit', file);
  expect([code, stdout.includes('discovery.entry')]).toEqual([1, true]);
  const count =
    'import sys, xml.etree.ElementTree as e; r = e.fromstring(sys.stdin.buffer.read()); print(r.get("tests"), r.get("failures"), len(r.findall(".//failure")), len(r.findall(".//testcase")))';
  const [tests, failures, ...found] = execFileSync('python3', ['-c', count], {
    input: readFileSync(file),
    encoding: 'utf8',
  })
    .trim()
    .split(' ');
  expect(Number(tests)).toBe(checkTable.filter(({ id }) => id.startsWith('discovery.')).length);
  expect(found).toEqual([failures, tests]);
  expect((await withPages('--only', 'clock.synchronized', '--junit', '-')).stdout).toMatch(
    /^<\?xml .*<\/testsuites>\n$/s,
  );
});

test.each([
  [['--only', 'nothing'], '--only has the value "nothing", expected the ID of a check or one of signing, clock, '],
  [['--feed', '0x12'], '--feed is "0x12", expected 0x and 64 hex digits'],
  [['--requests-per-second', '0'], '--requests-per-second has the value "0", expected a whole number from 1 to 1000.'],
  [['--timeout', 'long'], '--timeout has the value "long", expected a whole number from 1 to 300.'],
  [['--signers', '/nowhere/signers.json'], 'No such file: /nowhere/signers.json'],
  [['--junit', '/nowhere/report.xml'], '--junit: No such file: /nowhere/report.xml'],
  [['--junit', folder], `--junit: Not a file but a folder: ${folder}`],
])('conformance: %s is rejected before any request', async (args, message) => {
  let requests = 0;
  const { code, stderr } = await against(
    (_, response) => {
      requests += 1;
      response.end();
    },
    (url) => runCommand(['conformance', url, ...args], { env }),
  );
  expect([code, requests]).toEqual([2, 0]);
  expect(stderr).toContain(`error: ${message}`);
});

test('conformance: --list shows every check without a server or credentials', async () => {
  const { code, stdout } = await runCommand(['conformance', '--list', '--json']);
  const { checks } = JSON.parse(stdout);
  expect([code, checks.length]).toEqual([0, checkTable.length]);
  expect(
    checks.every(({ sentence, title }: { sentence: string; title: string }) => sentence !== '' && title !== ''),
  ).toBe(true);
  expect(new Set(checkTable.map(({ id }) => id)).size).toBe(checkTable.length);
  expect((await runCommand(['conformance', '--list', '--only', 'clock'])).stdout).toContain('clock.synchronized');
});

test('conformance: the document has the number of checks, every group, every option', async () => {
  const document = readText('docs/conformance.md');
  expect(document).toContain(`: ${checkTable.length} checks, `);
  const table = document.split('## What is checked')[1]?.split('## Extensions')[0] ?? '';
  const cells = [...table.matchAll(/^\| (`[^|]+`) \| /gm)].flatMap(([, cell = '']) => cell.match(/\w+/g) ?? []);
  expect(cells).toEqual([...new Set(checkTable.map(groupOf))]);
  const { stdout } = await runCommand(['conformance', '--help']);
  const flags = [...stdout.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag as string);
  expect(flags.length).toBeGreaterThan(10);
  for (const flag of flags) expect(`${document} --profiles`).toContain(flag);
});

test('conformance: an interruption ends the run with 130 and prints no report', async () => {
  const controller = new AbortController();
  const { code, stdout, stderr } = await against(
    () => controller.abort('SIGINT'), // the first request is never answered
    (url) => runCommand(['conformance', url], { env, interruption: controller.signal }),
  );
  expect([code, stdout, stderr]).toEqual([130, '', 'error: Interrupted.\n']);
});

test('conformance: the run stays within the rate limit that the headers give, whatever the option says', async () => {
  const { report, signerSets } = await createSignedReports();
  const now = Math.floor(Date.now() / 1_000);
  const feedId = secondStream(1);
  const service = await openService([testStream(feedId)], signerSets, () => Date.now(), { requestsPerSecond: 40 });
  try {
    await service.append([report(feedId, now - 1, now)]);
    const account = await service.addAccount(['public']);
    const only = ['--only', 'signing', '--only', 'service'];
    const { stdout } = await runCommand(
      ['conformance', service.url, ...fast, '--slow-after', '10000', '--json', ...only],
      {
        env: { SEALPOST_USER_ID: account.userId, SEALPOST_SECRET: account.secret },
      },
    );
    const failed = JSON.parse(stdout).checks.filter(({ result }: { result: string }) => result === 'failed');
    expect(failed).toEqual([]);
    expect(service.events.filter(({ status }) => status === 429)).toEqual([]);
  } finally {
    await service.close();
  }
});

test('conformance: a rate limit per minute that is used up skips the other checks, and blames nobody', async () => {
  let remaining = 2;
  const { code, stdout } = await against(
    (_, response) => {
      remaining -= 1;
      response.setHeader('Content-Type', 'application/json');
      const headers = { 'RateLimit-Limit': 3, 'RateLimit-Remaining': 0, 'RateLimit-Reset': 60 };
      response.writeHead(remaining < 0 ? 429 : 200, remaining > 0 ? {} : headers).end('{"feeds":[]}');
    },
    (url) => runCommand(['conformance', url, ...fast, '--json', '--only', 'discovery', '--only', 'service'], { env }),
  );
  const { checks, complete, requests } = JSON.parse(stdout);
  const row = (id: string) => checks.find((one: { id: string }) => one.id === id);
  expect([code, complete, requests]).toEqual([3, false, 2]);
  expect(row('service.rate-limit').result).toBe('passed');
  expect(row('discovery.signed').reason).toMatch(/^The rate limit allows the next request in \d+ s\.$/);
});

test('conformance: what remains of a rate limit is spread over the time until it is reset', () => {
  const pace = createPace(1_000);
  const note = (remaining: number, reset: number) =>
    pace.note('/', {
      status: 200,
      headers: { 'ratelimit-limit': '100', 'ratelimit-remaining': `${remaining}`, 'ratelimit-reset': `${reset}` },
    });
  note(80, 60);
  expect(pace.rate()).toBeCloseTo(40 / 60);
  note(100, 1);
  expect(pace.rate()).toBeCloseTo(50);
  note(80, Math.ceil(Date.now() / 1_000) + 60);
  expect(pace.rate()).toBeCloseTo(40 / 60, 1);
  note(1, 1e12);
  expect(pace.rate()).toBeCloseTo(1 / 5);
  expect(pace.refusal('/')).toBeUndefined();
  note(0, 1e12);
  expect(pace.refusal('/other')).toContain('The rate limit allows');
});

test('conformance: a server that allows almost nothing per second slows the run down by a bounded time', () => {
  const pace = createPace(1_000);
  for (const limit of ['0.001', '1e-300']) pace.note('/', { status: 200, headers: { 'ratelimit-limit': limit } });
  expect(pace.rate()).toBeCloseTo(1 / 5);
});

test('conformance: a request whose turn comes after the end of the run is skipped at once', async () => {
  const { signal } = new AbortController();
  const pace = createPace(1_000, performance.now() + 4_000);
  pace.note('/', { status: 200, headers: { 'ratelimit-limit': '0.001' } });
  await pace.turn('/', signal);
  const late = 'The time limit of the run ends before the next request may be sent.';
  await expect(pace.turn('/', signal)).rejects.toMatchObject({ name: 'SkipError', message: late });
  expect(pace.hasRefused()).toBe(true);
  await expect(createPace(1_000, performance.now() - 1).turn('/', signal)).rejects.toThrow(late);
});

test('conformance: a server whose rate limit is almost zero cannot make the run longer than its time limit', async () => {
  const { code, stdout } = await against(
    (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'RateLimit-Limit': 0.001 }).end('{"feeds":[]}');
    },
    (url) => runCommand(['conformance', url, ...fast, '--time-limit', '3', '--json', '--only', 'discovery'], { env }),
  );
  const { checks, complete } = JSON.parse(stdout);
  expect([code, complete]).toEqual([3, false]);
  expect(new Set(checks.map(({ result }: { result: string }) => result))).toEqual(new Set(['skipped']));
});

const bounds = ['--requests-per-second', '1000', '--timeout', '1', '--live-seconds', '1', '--time-limit', '30'];

const check = async (url: string, ...args: readonly string[]) => {
  const ran = await runCommand(['conformance', url, ...bounds, '--json', ...args], { env });
  expect(`${ran.stdout}${ran.stderr}`).not.toContain(secret);
  const report = JSON.parse(ran.stdout);
  type Row = { readonly id: string; readonly result: string; readonly actual?: string; readonly reason?: string };
  const rows: readonly Row[] = report.checks;
  const row = (id: string) => rows.find((one) => one.id === id);
  return { ...ran, report, row, failed: rows.filter(({ result }) => result === 'failed').map(({ id }) => id) };
};

/** Runs `act` with the address of a server that treats each connection like this. */
const againstBytes = async <T>(serve: (socket: Socket) => void, act: (url: string) => Promise<T>): Promise<T> => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await act(`http://127.0.0.1:${(server.address() as AddressInfo).port}`); // it listens on a port
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
};

const repeat = (socket: Socket, text: string, everyMs: number): void => {
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.on('close', () => clearInterval(timer));
};

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['never answers', () => {}, /no answer within 1000 ms/],
  ['resets every connection', (socket) => socket.resetAndDestroy(), /reset before an answer/],
  ['answers with garbage', (socket) => socket.end('\u0000\u0001 not HTTP at all\r\n\r\n'), /Parse Error/],
  [
    'sends endless headers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      repeat(socket, `X-More: ${'x'.repeat(1_000)}\r\n`, 1);
    },
    /Header overflow|no answer within/,
  ],
])(
  'conformance: a server that %s did not answer, and the exit code is 3',
  async (_, serve, reason) => {
    const { code, stderr, row, failed, report } = await againstBytes(serve, (url) => check(url));
    expect([code, report.complete]).toEqual([3, false]);
    expect(stderr).toMatch(/^error: 127\.0\.0\.1:\d+ /);
    expect(failed).toContain('service.answers');
    expect(row('service.answers')?.actual).toMatch(reason);
    expect([row('latest.shape')?.result, row('clock.synchronized')?.result]).toEqual(['skipped', 'skipped']);
  },
  300_000,
);

test.each<[string, string, (socket: Socket) => void, RegExp]>([
  [
    'sends a byte now and then',
    'service.answers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
      repeat(socket, ' ', 100);
    },
    /only \d+ bytes of the body within 1000 ms/,
  ],
  [
    'sends without end',
    'service.whole-answers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const fill = (): void => {
        while (socket.writable && socket.write(Buffer.alloc(1 << 20, 'x')));
      };
      socket.on('drain', fill);
      fill();
    },
    /more than 16777216 bytes/,
  ],
  [
    'breaks off its answers',
    'service.whole-answers',
    (socket) => {
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"feeds"');
    },
    /ended after 8 bytes/,
  ],
])(
  'conformance: a server that %s fails %s',
  async (_, id, serve, actual) => {
    const { code, row } = await againstBytes(serve, (url) => check(url));
    expect(code).toBe(3);
    expect(row(id)?.actual).toMatch(actual);
  },
  300_000,
);

test('conformance: redirects are not followed, and fail their check', async () => {
  const { code, row } = await against(
    (_, response) => void response.writeHead(302, { Location: 'http://127.0.0.1:9/' }).end(),
    (url) => check(url),
  );
  expect(code).toBe(1);
  expect(row('service.redirects')?.actual).toMatch(/^\d+ of \d+ answers: 302 without a body$/);
  expect(row('signing.accepted')?.result).toBe('failed');
});

test('conformance: a web page is not JSON, and what the server repeats has no secret', async () => {
  const page = `<!doctype html><title>${secret}</title>\u001b[31m`;
  const { code, row, stdout } = await against(
    (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end(page),
    (url) => check(url),
  );
  expect(code).toBe(1);
  expect(row('service.json')?.actual).toMatch(/^text\/html: <!doctype html><title>\(secret\)/);
  expect(row('discovery.anonymous')?.result).toBe('failed');
  expect(stdout).not.toContain('\u001b');
});

test('conformance: malformed feed IDs fail the check of the list, and are not sent', async () => {
  const targets: string[] = [];
  const { code, row, failed } = await against(
    ({ url = '' }, response) => {
      targets.push(url);
      const feeds = ['0x1 2\u20ac\n', '../admin', `0x${'a'.repeat(64)}`].map((id) => ({ feedID: id, feedId: id }));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ feeds }));
    },
    (url) => check(url, '--only', 'feeds', '--only', 'latest', '--only', 'discovery', '--only', 'service'),
  );
  expect(code).toBe(1);
  expect(failed).toContain('discovery.entry');
  expect(row('feeds.shape')?.actual).toContain('0x1 2');
  expect([row('feeds.readable')?.result, row('service.answers')?.result]).toEqual(['passed', 'passed']);
  expect(targets.filter((target) => target.includes('admin'))).toEqual([]);
});

test.each(['{"feeds":[]}', '<html>'])('conformance: no stream of the list %s counts as readable', async (body) => {
  const { row } = await against(
    (_, response) => void response.end(body),
    (url) => check(url, '--only', 'feeds'),
  );
  expect(row('feeds.readable')).toMatchObject({ result: 'skipped', reason: '/api/v1/feeds lists no stream.' });
});

test('conformance: values that are neither texts nor numbers fail their checks, and the run goes on', async () => {
  const feedId = `0x${'a'.repeat(64)}`;
  const entry = `{"feedId":"${feedId}","baseAsset":"\\ud800","quoteAsset":"USD","status":"live","createdAt":{"toString":1}}`;
  const other = `{"feedId":"${feedId}","baseAsset":"BTC","quoteAsset":{"toString":1},"status":{"toString":1}}`;
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const { code, stderr, row } = await against(
    ({ url = '' }, response) => {
      if (url.startsWith('/api/v1/reports'))
        return void response.end(`{"report":{"feedID":${deep},"fullReport":"0x00"}}`);
      response.end(`{"feeds":[${url.startsWith('/api/v1/feeds') ? `{"feedID":"${feedId}"}` : `${entry},${other}`}]}`);
    },
    (url) => check(url, '--only', 'discovery', '--only', 'latest'),
  );
  expect([code, stderr]).toEqual([1, '']);
  expect(row('discovery.quote-asset')?.actual).toBe(`${feedId} has {"toString":1}`);
  expect(row('discovery.created')?.result).toBe('failed');
});

/** Filters by dates as the specification says; anything but a day is 400. */
const listByDate =
  (entry: Readonly<Record<string, string>>): RequestListener =>
  ({ url = '' }, response) => {
    const query = [...new URL(url, 'http://a').searchParams];
    if (query.some(([, day]) => !/^\d{4}-\d{2}-\d{2}$/.test(day))) return void response.writeHead(400).end('{}');
    const isListed = query.every(([name, day]) => {
      const [field, side] = name.startsWith('created_')
        ? ['createdAt', name.slice('created_'.length)]
        : ['expectedDecommissionAt', name.slice('expected_decommission_'.length)];
      const at = entry[field ?? ''] ?? '';
      return side === 'before' ? at < day : at > `${day}T24`;
    });
    response.end(JSON.stringify({ feeds: isListed ? [entry] : [] }));
  };

test('conformance: dates that stand for "none" and "never" fail no check', async () => {
  const dates = { createdAt: '0001-01-01T00:00:00Z', expectedDecommissionAt: '9999-12-31T00:00:00Z' };
  const { row } = await against(listByDate({ feedId: `0x${'a'.repeat(64)}`, ...dates }), (url) =>
    check(url, '--only', 'discovery.created', '--only', 'discovery.expected-decommission'),
  );
  expect(row('discovery.created')).toMatchObject({ result: 'passed' });
  expect(row('discovery.expected-decommission')).toMatchObject({ result: 'passed' });
});

test('conformance: a request that Node refuses to send gets no answer', async () => {
  const request = { method: 'GET', target: '/a b', signed: false, headers: {} } as const;
  const bounds = { deadlineMs: 1_000, bytesMax: 1, signal: new AbortController().signal };
  await expect(exchange(new URL('http://127.0.0.1:9'), request, {}, bounds)).rejects.toMatchObject({
    name: 'NoAnswerError',
    code: 'ERR_UNESCAPED_CHARACTERS',
  });
});

test('conformance: the reason of a skipped check has no control characters of the server', async () => {
  const { stdout } = await against(
    (_, response) => void response.writeHead(403).end('\u001b[31mred\u0007'),
    (url) => runCommand(['conformance', url, ...fast, '--only', 'latest'], { env }),
  );
  expect(stdout).toContain('/api/v1/feeds returned 403 \ufffd[31mred\ufffd)');
});

test('conformance: a self-signed certificate is an error that says what to do', async () => {
  const server = createTlsServer(createCertificate('localhost'), (_, response) => void response.end('{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  try {
    const { code, stderr, row } = await check(`https://127.0.0.1:${port}`);
    expect(code).toBe(3);
    expect(stderr).toMatch(/has an invalid certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. .*NODE_EXTRA_CA_CERTS/);
    expect(row('service.answers')?.result).toBe('failed');
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
