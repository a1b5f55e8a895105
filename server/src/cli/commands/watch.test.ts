import type { RequestListener } from 'node:http';
import { parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream } from '../../../../tests/support/signed-reports.ts';
import { createPaint } from '../paint.ts';
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

test('watch: a newest report that cannot be decoded does not end it; live reports show the problem', async ({
  onTestFinished,
}) => {
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
