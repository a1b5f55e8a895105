import type { CatalogEntry } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { searchComparable } from './compare.tsx';
import { pictureFileName } from './picture-file.ts';

const stream = (baseAsset: string, assetName: string): CatalogEntry =>
  ({
    feedId: `0x${baseAsset}`,
    name: `${baseAsset}/USD-Streams-CexPrice`,
    baseAsset,
    quoteAsset: 'USD',
    assetName,
  }) as CatalogEntry; // what the search reads

const streams = [stream('BTC', 'Bitcoin'), stream('ETH', 'Ether'), stream('WBTC', 'Wrapped Bitcoin')];

test('compare: streams match by all words of their names', () => {
  expect(searchComparable(streams, 'bitcoin WRAPPED').map(({ baseAsset }) => baseAsset)).toEqual(['WBTC']);
  expect(searchComparable(streams, ' ').length).toBe(3);
  expect(searchComparable(streams, 'gold')).toEqual([]);
});

test('compare: at most eight are listed', () => {
  const many = Array.from({ length: 2_000 }, (_, i) => stream(`A${i}`, 'Asset'));
  expect(searchComparable(many, 'asset')).toHaveLength(8);
});

test('picture: the file is named after stream and range', () => {
  expect(pictureFileName('AVAX/USD', 1_763_200_000, 1_763_203_600.4)).toBe(
    'AVAX-USD_2025-11-15T094640Z_2025-11-15T104640Z.png',
  );
  expect(pictureFileName('../', 0, 1)).toBe('chart_1970-01-01T000000Z_1970-01-01T000001Z.png');
});
