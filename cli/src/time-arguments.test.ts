import { expect, test } from 'vitest';
import { parseSpan, parseTime } from './time-arguments.ts';

const now = 1_763_200_000;

test('time arguments: every form is read as whole seconds', () => {
  const forms = [
    '1763200000',
    'now',
    '-1h',
    '+30s',
    '-2d',
    '-15m',
    '2025-11-15T09:46:40Z',
    '2025-11-15T10:46:40.9+01:00',
    '2024-02-29t23:59:59z',
  ];
  expect(forms.map((raw) => parseTime('--from', raw, now))).toEqual([
    now,
    now,
    now - 3_600,
    now + 30,
    now - 172_800,
    now - 900,
    now,
    now,
    1_709_251_199,
  ]);
});

test('time arguments: anything else is rejected with the option and the accepted forms', () => {
  for (const raw of [
    '',
    'yesterday',
    '1h',
    '-1w',
    '1.5',
    '2025-11-15',
    '2025-13-40T00:00:00Z',
    '2025-11-31T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2025-11-15T24:00:00Z',
    '1763200000000',
    '-99999999d',
  ])
    expect(() => parseTime('--to', raw, now), raw).toThrow(
      `--to has the value "${raw}", expected Unix seconds, an RFC 3339 date such as 2025-01-31T12:00:00Z, now, or a relative time such as -1h or +30s.`,
    );
});

test('time arguments: a range takes missing ends from the whole; its end is not before its start', () => {
  const whole = { from: 10, to: 20 };
  expect(parseSpan({}, whole, now)).toEqual(whole);
  expect(parseSpan({ from: '15' }, whole, now)).toEqual({ from: 15, to: 20 });
  expect(() => parseSpan({ from: '21' }, whole, now)).toThrow('--to (20) is before --from (21).');
});
