// What the command prints and accepts, and that its curl lines send what the checks sent.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openService } from '../../../../../tests/support/running-api.ts';
import { testStream } from '../../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../../tests/support/signed-reports.ts';
import { checkTable } from '../../../conformance/table.ts';
import { against } from '../../reading-sample.fixture.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-report-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { SEALPOST_USER_ID: '11111111-2222-4333-8444-555555555555', SEALPOST_SECRET: 'the-secret' };
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

1 passed, 1 failed, 4 requests
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
  [['--junit', '/nowhere/report.xml'], '--junit: No such file: /nowhere'],
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
    const { userId, secret } = await service.addAccount(['public']);
    const only = ['--only', 'signing', '--only', 'service'];
    const { stdout } = await runCommand(
      ['conformance', service.url, ...fast, '--slow-after', '10000', '--json', ...only],
      {
        env: { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret },
      },
    );
    const failed = JSON.parse(stdout).checks.filter(({ result }: { result: string }) => result === 'failed');
    expect(failed).toEqual([]);
    expect(service.events.filter(({ status }) => status === 429)).toEqual([]);
  } finally {
    await service.close();
  }
}, 30_000);
