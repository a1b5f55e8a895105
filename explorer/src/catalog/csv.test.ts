import type { CatalogEntry } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { catalogEntry } from '../state/catalog-entry.fixture.ts';
import type { LiveReport } from '../state/live-prices.ts';
import { toCsv } from './csv.ts';

const feedId = `0x0003${'0'.repeat(60)}`;
const stream = (change: Partial<CatalogEntry> = {}): CatalogEntry => catalogEntry({ feedId, ...change });
const one = 10n ** 18n;
const decoded = {
  version: 3,
  price: -3_000n * one - 1n,
  bid: 9_999n * one,
  ask: 10_001n * one,
  validFromMs: 1_700_000_000_000,
  observationsMs: 1_700_000_001_250,
};
const latest = { ...decoded, decoded } as unknown as LiveReport; // the fields that a file has
const day = { first: -3_000n * one, sinceMs: 1_699_920_000_000, isToTheMinute: false, isWhole: true, points: [] };
const firstMs = day.sinceMs + 125_250;

test('csv: exact values, times of reports in UTC, lines that end with CR LF', () => {
  const [head, line, end] = toCsv([{ stream: stream(), latest, day, firstMs }]).split('\r\n');
  expect(head).toBe(
    'feed_id,name,pair,asset_name,asset_class,feed_type,attribute_type,schema,status,price,unit,bid,ask,spread_bps,valid_from,observed_at,change,change_percent,change_since',
  );
  expect(line).toBe(
    `${feedId},ETH/USD-CexPrice,ETH/USD,Ether,Crypto,Crypto,CexPrice,V3,live,-3000.000000000000000001,USD,9999,10001,2,2023-11-14T22:13:20.000Z,2023-11-14T22:13:21.250Z,-0.000000000000000001,0,2023-11-14T00:02:05.250Z`,
  );
  expect(end).toBe('');
});

test('csv: a report whose fields are not known has its times alone', () => {
  const [, line] = toCsv([{ stream: stream(), latest: { ...latest, decoded: undefined }, day, firstMs }]).split('\r\n');
  expect(line).toBe(
    `${feedId},ETH/USD-CexPrice,ETH/USD,Ether,Crypto,Crypto,CexPrice,V3,live,,USD,,,,2023-11-14T22:13:20.000Z,2023-11-14T22:13:21.250Z,,,`,
  );
});

test('csv: a stream without reports has empty fields', () => {
  const [, line] = toCsv([{ stream: stream(), latest: undefined, day, firstMs }]).split('\r\n');
  expect(line).toBe(`${feedId},ETH/USD-CexPrice,ETH/USD,Ether,Crypto,Crypto,CexPrice,V3,live,,USD,,,,,,,,`);
});

test.each([
  ['Ether, "the" coin', '"Ether, ""the"" coin"'],
  ['two\nlines', '"two\nlines"'],
  ['=HYPERLINK("http://x")', '"\'=HYPERLINK(""http://x"")"'],
  ['+1', "'+1"],
  ['-1+1', "'-1+1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\tx', "'\tx"],
  ['plain', 'plain'],
])('csv: the text %j is the field %j', (assetName, expected) => {
  const text = toCsv([{ stream: stream({ assetName }), latest: undefined, day: undefined, firstMs: undefined }]);
  expect(text).toContain(`,ETH/USD,${expected},Crypto,`);
});
