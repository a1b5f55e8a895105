import type { CatalogEntry } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { distinctionsOf } from './names.ts';

const stream = (
  id: string,
  baseAsset: string,
  attributeType: string,
  schemaVersion: string,
  feedType = 'Crypto',
): CatalogEntry =>
  ({
    feedId: `0x${id.padStart(64, '0')}`,
    baseAsset,
    quoteAsset: 'USD',
    attributeType,
    schemaVersion,
    feedType,
  }) as CatalogEntry; // what names use

test('names: streams of one pair are told apart by what differs, the others need nothing', () => {
  const streams = [
    stream('1', 'BTC', 'CexPrice', 'V3'),
    stream('2', 'BTC', 'DexPrice', 'V3'),
    stream('3', 'BTC', 'CexPrice', 'V2'),
    stream('4', 'ETH', 'CexPrice', 'V3'),
  ];
  expect([...distinctionsOf(streams).values()]).toEqual(['CexPrice · V3', 'DexPrice · V3', 'CexPrice · V2']);
});

test('names: as little as tells them apart', () => {
  const streams = [stream('1', 'BTC', 'CexPrice', 'V3'), stream('2', 'BTC', 'TopOfBook', 'V13', 'Other')];
  expect([...distinctionsOf(streams).values()]).toEqual(['CexPrice', 'TopOfBook']);
});

test('names: streams that differ in nothing else are told apart by their feed IDs', () => {
  const streams = [stream('abc123', 'BTC', 'CexPrice', 'V3'), stream('abc124', 'BTC', 'CexPrice', 'V3')];
  expect([...distinctionsOf(streams).values()]).toEqual(['…abc123', '…abc124']);
});
