import { parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream } from '../../../tests/signed-reports.ts';
import { createPaint } from './paint.ts';
import type { Session } from './session.ts';
import { type Row, renderBoard } from './watch-command.ts';

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
  expect(draw(80, 24).at(-2)).toBe('live  10 more below.  Ctrl-C ends.');
  expect(draw(20, 2)[0]).toMatch(/stream +price +age$/); // narrower than anything: what matters most
});
