import type { RequestListener } from 'node:http';
import { parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { createPaint } from '../formats.ts';
import { against } from '../reading-sample.fixture.ts';
import { runCommand } from '../sample-session.fixture.ts';
import type { Session } from '../session.ts';
import { type Row, renderBoard } from './watch.ts';

const rows = Array.from(
  { length: 30 },
  (_, i): Row => ({
    name: `wstETH/ETH-Streams-ExchangeRate-${i}`,
    price: {
      feedID: parseFeedId(secondStream(1)),
      observationsTimestamp: 90,
      validFromTimestamp: 90,
      price: '97012.3456789',
      bid: '97012.3456788',
      ask: '97012.3456790',
    },
    reports: 4,
    gaps: 0,
  }),
);

const draw = (columns: number, height: number): readonly string[] => {
  const session = { paint: createPaint({}, {}), nowMs: () => 100_000, terminalSize: () => ({ columns, rows: height }) };
  // The two keys of a session that the table needs.
  return renderBoard(session as unknown as Session, rows, 'live')
    .replaceAll('\x1b[K', '')
    .split('\n');
};

test('watch: the table has the columns and rows that fit a terminal', () => {
  expect(draw(200, 60)[0]).toMatch(/stream +price +bid +ask +age +reports +gaps$/);
  for (const [columns, height] of [
    [80, 24],
    [60, 10],
    [100, 40],
  ] as const) {
    const lines = draw(columns, height);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns);
    expect(lines.length).toBeLessThanOrEqual(height);
  }
  expect(draw(80, 24)[0]).toMatch(/stream +price +bid +age$|stream +price +age$/);
  expect(draw(80, 24).at(-2)).toBe('live  10 more below.  Ctrl-C to quit.');
  expect(draw(20, 2)[0]).toMatch(/stream +price +age$/); // narrower than anything: what matters most
});

test('watch: a newest report that cannot be decoded does not end it', async ({ onTestFinished }) => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const feedID = secondStream(1);
  const strange = { feedID, validFromTimestamp: 1, observationsTimestamp: 1, fullReport: '0x00' };
  const refuse: Parameters<RequestListener>[1][] = [];
  const answer: RequestListener = ({ url = '' }, response) => {
    if (url.startsWith('/api/v1/reports/latest')) {
      response.end(JSON.stringify({ reports: [strange] }));
      // Once the answer is there, and was read.
      setTimeout(() => void refuse.pop()?.writeHead(401).end('{"error":"No.","code":"unauthorized"}'), 100);
    } else if (url.startsWith('/api/v1/ws')) refuse.push(response);
    else response.end(JSON.stringify({ feeds: [{ feedId: feedID, feedID, name: 'A/B' }] }));
  };
  const env = { SEALPOST_USER_ID: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f', SEALPOST_SECRET: 'secret' };
  const shown: string[] = [];
  const { code } = await against(answer, (url) =>
    runCommand(['watch', '--url', url], { env: { ...env, SEALPOST_URL: url }, terminal: (text) => shown.push(text) }),
  );
  expect([code, unhandled]).toEqual([1, []]);
  expect(shown.at(-1)).toBe('\x1b[?25h\x1b[?1049l');
});

test('watch: reports that cannot be decoded are named once in a row, and the ones after them are shown', async () => {
  const { report } = await createSignedReports();
  const feedID = secondStream(1);
  const second = 1_763_200_000;
  const lineOf = (at: number, fullReport?: string): string => {
    const hex = `0x${Buffer.from(report(feedID, at, at).fullReport).toString('hex')}`;
    const one = { feedID, validFromTimestamp: at, observationsTimestamp: at, fullReport: fullReport ?? hex };
    return `data: ${JSON.stringify({ report: one })}\n\n`;
  };
  const events = (isTable: boolean) => [
    lineOf(second),
    lineOf(second + 1, '0x00'),
    lineOf(second + 2, '0x'),
    lineOf(second + 3),
    lineOf(second + 4, '0x00'),
    ...(isTable ? [] : [lineOf(second + 5)]),
  ];
  let isTable = false;
  const answer: RequestListener = ({ url = '' }, response) => {
    if (url.startsWith('/api/v1/reports/stream'))
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(events(isTable).join(''));
    else if (url.startsWith('/api/v1/ws')) response.writeHead(404).end('{"error":"None.","code":"route_not_found"}');
    else if (url.startsWith('/api/v1/reports')) response.end('{"reports":[]}');
    else response.end(JSON.stringify({ feeds: [{ feedId: feedID, feedID, name: 'A/B' }] }));
  };
  const env = { SEALPOST_USER_ID: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f', SEALPOST_SECRET: 'secret' };
  for (isTable of [false, true]) {
    const controller = new AbortController();
    const shown: string[] = [];
    const terminal = (text: string): void => {
      shown.push(text);
      if (text.includes(isTable ? '(malformed_report)' : `${second + 5}`)) controller.abort('SIGINT');
    };
    const args = isTable ? [] : ['--json'];
    const { code, stderr } = await against(answer, (url) =>
      runCommand(['watch', '--url', url, ...args], { env, terminal, interruption: controller.signal }),
    );
    const named = (at: string) =>
      `warning: Reports of A/B from ${at} on are skipped: they cannot be decoded (malformed_report).\n`;
    expect([code, stderr]).toEqual([
      130,
      isTable ? '' : `${named('2025-11-15T09:46:41Z')}${named('2025-11-15T09:46:44Z')}`,
    ]);
    if (isTable) expect(shown.at(-2)).toMatch(/A\/B +\(malformed_report\) +– +– .* 5 +0/);
    else expect(shown.map((line) => JSON.parse(line).observationsTimestamp)).toEqual([second, second + 3, second + 5]);
  }
});

test('watch: an interruption ends it with its exit code, also where the same key press ended its reader', async () => {
  const controller = new AbortController();
  const answer: RequestListener = ({ url = '' }, response) => {
    if (url.startsWith('/api/v1/ws')) controller.abort('SIGINT');
    response.end(JSON.stringify({ feeds: [{ feedId: secondStream(1), feedID: secondStream(1), name: 'A/B' }] }));
  };
  const env = { SEALPOST_USER_ID: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f', SEALPOST_SECRET: 'secret' };
  const { code } = await against(answer, (url) =>
    runCommand(['watch', '--url', url], { env, isUnread: true, interruption: controller.signal }),
  );
  expect(code).toBe(130);
});
