import { expect, test } from 'vitest';
import { firstDateMs, readSeries } from './series.ts';

const start = Date.parse('2026-03-13T14:30:00Z');

test('series: lines are read as they are, in the order of their times; the columns may be in any order', () => {
  const csv =
    '\uFEFFprice,stream,time,bid\r\n"4200.123456789012345678",ETH/USD,2026-03-13T14:30:02Z,\r\n\r\n1.5,BTC/USD,10s,1.4\r\n-3,ETH/USD,1773412201.5,\r\n';
  expect(readSeries(csv, start)).toEqual([
    { where: 'line 5', ms: start + 1_500, stream: 'ETH/USD', price: '-3', options: {} },
    { where: 'line 2', ms: start + 2_000, stream: 'ETH/USD', price: '4200.123456789012345678', options: {} },
    { where: 'line 4', ms: start + 10_000, stream: 'BTC/USD', price: '1.5', options: { bid: '1.4' } },
  ]);
  expect(firstDateMs(csv)).toBe(start + 1_500);
  expect(firstDateMs('time,stream,price\n10s,A/B,1\n')).toBeUndefined();
});

test.each([
  ['', 'line 1: a column is missing, expected the columns time,stream,price and optionally bid,ask.'],
  ['time,stream,prize\n', 'line 1: "prize" is no column, or there twice, expected the columns time,stream,price and'],
  ['time,stream,price\n', 'The series has 0 rows, expected 1 to 100000.'],
  ['time,stream,price\n0s,A/B,1\n1s,A/B\n', 'line 3: there are 2 values, expected 3: time,stream,price.'],
  ['time,stream,price\nsoon,A/B,1\n', 'line 2: time is "soon", expected a Date, a date such as'],
  ['time,stream,price\n1s,A/B,"1 200"\n', 'line 2: price is "1 200", expected a decimal'],
  ['time,stream,price\n1s,A/B,\n', 'line 2: price is missing, expected a decimal'],
  ['time,stream,price\n1s,,1\n', 'line 2: stream is missing, expected a pair'],
  ['time,stream,price,ask\n1s,A/B,1,x\n', 'line 2: ask is "x", expected a decimal'],
  ['time,stream,price\n1s,A/B,1\n1000ms,a/b,2\n', 'line 3: a/b has a price at this time in line 2, too. Delete one.'],
])('series: an error names the line: %j', (csv, message) => {
  expect(() => readSeries(csv, start)).toThrow(message);
});
