import { expect, test } from 'vitest';
import { readAlertAddress } from './alert-address.ts';

const feedId = `0x0003${'ab'.repeat(30)}`;

test('alert address: stream and level are read; what is malformed is left out and named', () => {
  const read = (query: string) => readAlertAddress(new URLSearchParams(query));
  expect(read('')).toEqual({ feedId: '', level: '', problems: [] });
  expect(read(`feed=${feedId.toUpperCase().replace('X', 'x')}&level=-0.5`)).toEqual({
    feedId,
    level: '-0.5',
    problems: [],
  });
  const wrong = read('feed=BTC&level=high');
  expect([wrong.feedId, wrong.level, wrong.problems.map(({ text }) => text)]).toEqual([
    '',
    '',
    ['feed must be a feed ID: 0x and 64 hex digits.', 'level must be a price, such as 64120.55.'],
  ]);
});
