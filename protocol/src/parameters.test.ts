import { expect, test } from 'vitest';
import {
  checkRetention,
  dayMs,
  daySeconds,
  parseBoolean,
  parseDay,
  parseFeedIds,
  parseInteger,
  parseList,
  parseNames,
  parseSeconds,
} from './parameters.ts';

const notNumbers = [
  'abc',
  '1e9',
  ' 1',
  '1 ',
  '+1',
  '-1',
  '0x10',
  '1.5',
  '1_000',
  '',
  'NaN',
  'Infinity',
  '١٢٣',
  '1,000',
  '9007199254740993',
];

test('timestamp: decimal digits up to 2^32 − 1', () => {
  expect(parseSeconds('0', 'timestamp')).toBe(0);
  expect(parseSeconds('1763200000', 'timestamp')).toBe(1_763_200_000);
  expect(parseSeconds('4294967295', 'timestamp')).toBe(4_294_967_295);
  expect(() => parseSeconds('4294967296', 'timestamp')).toThrow('timestamp is "4294967296"');
});

test('timestamp: nothing is coerced', () => {
  for (const raw of notNumbers)
    expect(() => parseSeconds(raw, 'timestamp'), raw).toThrow('expected a Unix timestamp in seconds');
});

test('timestamp: milliseconds get a hint', () => {
  expect(() => parseSeconds('1763200000123', 'timestamp')).toThrow('(this looks like milliseconds: divide by 1000)');
  const hint = ' (this looks like milliseconds: divide by 1000)';
  const expected = 'a Unix timestamp in seconds, decimal digits only, up to 4294967295';
  for (const [raw, isHinted] of [
    ['abc', false],
    ['17632000001', false],
    ['176320000012', true],
    ['17632000001234', true],
    ['176320000012345', false],
    ['x176320000012', false],
    ['176320000012x', false],
  ] as const)
    expect(() => parseSeconds(raw, 'timestamp')).toThrow(
      expect.objectContaining({ message: `timestamp is "${raw}", expected ${expected}${isHinted ? hint : ''}.` }),
    );
});

test('limit: whole numbers inside the bounds', () => {
  expect(parseInteger('1', 'limit', 1, 1_000)).toBe(1);
  expect(parseInteger('1000', 'limit', 1, 1_000)).toBe(1_000);
  expect(() => parseInteger('0001', 'limit', 1, 1_000)).not.toThrow();
  for (const raw of ['0', '1001', '00001', ...notNumbers.filter((text) => text !== '1')]) {
    expect(() => parseInteger(raw, 'limit', 1, 1_000), raw).toThrow('expected a whole number from 1 to 1000');
  }
});

test('boolean: true or false, as written', () => {
  expect(parseBoolean('true', 'hidden')).toBe(true);
  expect(parseBoolean('false', 'hidden')).toBe(false);
  for (const raw of ['', '1', '0', 'yes', 'True', 'TRUE', ' true', 'null'])
    expect(() => parseBoolean(raw, 'hidden')).toThrow(`hidden is "${raw}", expected true or false.`);
});

test('date: a day has 86,400 s', () => {
  expect([daySeconds, dayMs]).toEqual([86_400, 86_400_000]);
});

test('date: a day of the calendar', () => {
  expect(parseDay('2024-02-29', 'created_after')).toBe(Date.UTC(2024, 1, 29));
  expect(parseDay('0001-01-01', 'created_after')).toBe(Date.parse('0001-01-01T00:00:00Z'));
  for (const raw of [
    '2025-02-29',
    '2025-13-01',
    '2025-00-10',
    '2025-01-32',
    '25-01-01',
    '2025-1-1',
    '2025/01/01',
    '20250101',
    '',
    '2025-01-01Z',
    ' 2025-01-01',
    '+002025-01-01',
    '+012025-01-01',
    '2025-01-01 ',
    '12025-01-01',
    '2025-01-011',
  ]) {
    expect(() => parseDay(raw, 'created_after'), raw).toThrow('expected a date, YYYY-MM-DD');
  }
});

test('list: no empty item', () => {
  expect(parseList('a,b,a', 'x')).toEqual(['a', 'b', 'a']);
  for (const raw of ['', ',', 'a,', ',a', 'a,,b']) expect(() => parseList(raw, 'x')).toThrow('without empty items');
});

test('names: a list in lower case, without empty items', () => {
  expect(parseNames('BTC,Eth', 'base_asset')).toEqual(['btc', 'eth']);
  expect(() => parseNames('BTC,', 'base_asset')).toThrow(
    'base_asset is "BTC,", expected a comma-separated list without empty items.',
  );
});

test('feed IDs: order kept, duplicates dropped in any case, the bound counts distinct ids', () => {
  const a = `0x0003${'aa'.repeat(30)}`;
  const b = `0x0003${'bb'.repeat(30)}`;
  expect(parseFeedIds(`${b},${a},${b.toUpperCase().replace('0X', '0x')}`, 'feedIDs', 2)).toEqual([b, a]);
  expect(() => parseFeedIds(`${a},${b}`, 'feedIDs', 1)).toThrow('feedIDs names 2 streams, at most 1 are allowed.');
  expect(() => parseFeedIds(`${a},${b}`, 'feedIDs', 1)).toThrow(
    expect.objectContaining({
      code: 'malformed_argument',
      details: { argument: 'feedIDs', expected: 'at most 1 feed IDs', feedIdsMax: 1 },
    }),
  );
  expect(() => parseFeedIds(`${a},0x12`, 'feedIDs', 9)).toThrow('feedIDs is "0x12"');
});

test('retention: the oldest kept second passes, the one before does not, and the text follows the setting', () => {
  const now = 1_763_200_000;
  checkRetention(now - 30 * 86_400, now, 30, 'timestamp');
  expect(() => checkRetention(now - 30 * 86_400 - 1, now, 30, 'timestamp')).toThrow(
    'Timestamp out of bounds. Timestamp must be within the last 30 days.',
  );
  expect(() => checkRetention(0, now, 7, 'timestamp')).toThrow('Timestamp must be within the last 7 days.');
  expect(() => checkRetention(0, now, 7, 'timestamp')).toThrow(
    expect.objectContaining({
      code: 'timestamp_out_of_bounds',
      details: { argument: 'timestamp', oldestTimestamp: now - 7 * 86_400 },
    }),
  );
});
