// A stream of the catalog, for tests.
import type { CatalogEntry } from '@sealpost/protocol';

export const catalogEntry = (change: Partial<CatalogEntry> = {}): CatalogEntry => ({
  feedId: `0x0003${'0'.repeat(60)}`,
  name: 'ETH/USD-CexPrice',
  assetName: 'Ether',
  baseAsset: 'ETH',
  quoteAsset: 'USD',
  assetClass: 'Crypto',
  feedType: 'Crypto',
  attributeType: 'CexPrice',
  marketHours: '24/7',
  schemaVersion: 'V3',
  serviceLevel: 'standard',
  networkType: 'testnet',
  status: 'live',
  createdAt: '2024-03-10T12:00:00.000000Z',
  expectedDecommissionAt: null,
  decommissionedAt: null,
  ...change,
});
