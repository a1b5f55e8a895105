import { expect, test } from 'vitest';
import {
  cleanOutput,
  createPaint,
  formatBytes,
  formatDuration,
  formatMoment,
  formatNumberOf,
  formatSecond,
  renderPairs,
  renderTable,
  toJsonLine,
  withoutControls,
} from './formats.ts';
import { createProgress, renderProgress } from './progress.ts';

const plain = createPaint({}, {});

test('formats: sizes carry the largest unit that fits', () => {
  expect([0, 999, 1_000, 1_234_567, 5e13].map(formatBytes)).toEqual([
    '0 bytes',
    '999 bytes',
    '1.0 kB',
    '1.2 MB',
    '50.0 TB',
  ]);
});

test('formats: times, durations and counts', () => {
  expect(formatMoment(1_763_200_000_999)).toBe('2025-11-15T09:46:40Z');
  expect([59, 61, 3_661].map(formatDuration)).toEqual(['00:59', '01:01', '1:01:01']);
  expect([formatNumberOf(1, 'report'), formatNumberOf(1_234, 'report')]).toEqual(['1 report', '1,234 reports']);
});

test('formats: a table has aligned columns and no spaces at the end of its lines', () => {
  const columns = [{ title: 'name' }, { title: 'count', align: 'right' }, { title: 'note' }] as const;
  const rows = [
    ['a', '1', ''],
    ['longer', '1,000', 'x'],
  ];
  expect(renderTable(columns, rows, plain)).toBe('name    count  note\na           1\nlonger  1,000  x\n');
  expect(
    renderPairs([
      ['a', '1'],
      ['long', '2'],
    ]),
  ).toBe('a     1\nlong  2\n');
});

test('paint: colors are for terminals, and NO_COLOR turns them off', () => {
  const red = (isTTY: boolean, env: NodeJS.ProcessEnv) => createPaint({ isTTY }, env).red('x');
  expect(red(true, {})).toBe('\x1b[31mx\x1b[39m');
  expect([red(false, {}), red(true, { NO_COLOR: '1' }), red(true, { TERM: 'dumb' })]).toEqual(['x', 'x', 'x']);
});

test('progress: the bar shows fraction, count, rate and time left', () => {
  expect(renderProgress({ fraction: 0.5, count: 1_500, label: 'lines  1.2 MB' }, 3_000)).toBe(
    `${'█'.repeat(15)}${'░'.repeat(15)}  50 %  1,500 lines  1.2 MB  500/s  00:03 left`,
  );
  expect(renderProgress({ fraction: undefined, count: 10, label: 'lines  2.0 kB' }, 1_000)).toBe(
    '10 lines  2.0 kB  10/s',
  );
});

test('progress: nothing is drawn without a terminal, and never more than its width', () => {
  const drawn: string[] = [];
  const stream = { write: (text: string) => drawn.push(text) };
  const advance = { fraction: 1, count: 1, label: 'reports' };
  createProgress(stream).update(advance);
  expect(drawn).toEqual([]);
  const bar = createProgress({ ...stream, isTTY: true, columns: 11 });
  bar.update(advance);
  bar.update(advance);
  bar.end();
  expect(drawn).toEqual([`\r\x1b[K${'█'.repeat(10)}`, '\r\x1b[K']);
});

test('formats: untrusted text cannot control the terminal or add a line to a table', () => {
  expect(withoutControls('a\x1b[2J\r\x9b31m\u202eb\x7f\n\tc')).toBe('a\ufffd[2J\ufffd\ufffd31m\ufffdb\ufffd\n\tc');
  expect(renderTable([{ title: 'name' }], [['x\x1b]0;title\x07\ny']], plain)).toBe(
    'name\nx\ufffd]0;title\ufffd\ufffdy\n',
  );
  expect(renderPairs([['name', 'x\x1b[1A\ny']])).toBe('name  x\ufffd[1A\ufffdy\n');
});

test('formats: output has the control sequences of this program and no others', () => {
  const own = [
    '\r\x1b[K███',
    '\x1b[Ha\x1b[K\nb\x1b[1mc\x1b[0m\x1b[K\n\x1b[J',
    '\x1b[?1049h\x1b[?25l',
    '\x1b[?25h\x1b[?1049l',
  ];
  expect(own.map(cleanOutput)).toEqual(own);
  expect(cleanOutput('evil\x1b[H\x1b[2J\x1b]0;t\x07 \x1b[5A\r\x1b[Kx\x7f\x9b1m\u202e\n')).toBe(
    'evil\ufffd[H\ufffd[2J\ufffd]0;t\ufffd \ufffd[5A\ufffd\ufffd[Kx\ufffd\ufffd1m\ufffd\n',
  );
});

test('formats: JSON also escapes DEL, the C1 controls and bidirectional controls', () => {
  const name = 'a\x1b[2J\x7f\x9b31m\u2028\u202e\u2066é';
  const line = toJsonLine({ name });
  expect(line).toBe('{"name":"a\\u001b[2J\\u007f\\u009b31m\\u2028\\u202e\\u2066é"}\n');
  expect(JSON.parse(line)).toEqual({ name });
});

test('formats: a table may have more rows than a call has arguments', () => {
  const rows = Array.from({ length: 300_000 }, () => ['1']);
  expect(renderTable([{ title: 'n' }], rows, plain)).toHaveLength(600_002);
});

test('formats: a second beyond the last date stays a number', () => {
  expect([0, 8.64e12, 8.64e12 + 1, Number.MAX_SAFE_INTEGER].map(formatSecond)).toEqual([
    '1970-01-01T00:00:00Z',
    '+275760-09-13T00:00:00Z',
    '8640000000001',
    '9007199254740991',
  ]);
});
