import { parseCatalog, schemaVersionOf, timeResolutionOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSpecStream, parseSpecName } from './scenario/stream-specs.ts';
import { createCatalog, createStreams } from './streams.ts';

const catalog = createCatalog('testnet');
const namesWhere = (holds: (stream: (typeof catalog)[number]) => boolean) =>
  catalog.filter(holds).map(({ name }) => name);

test('the catalog reads back from its own JSON and is in catalog order', () => {
  expect(parseCatalog(JSON.parse(JSON.stringify({ feeds: catalog })))).toEqual(catalog);
  expect(catalog.map(({ name }) => name)).toEqual(catalog.map(({ name }) => name).sort());
});

test('every schema version from 2 to 13 has a stream, all in seconds', () => {
  const versions = new Set(catalog.map(({ feedId }) => schemaVersionOf(feedId)));
  expect([...versions].sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  expect(catalog.every(({ feedId }) => timeResolutionOf(feedId) === 'seconds')).toBe(true);
});

test('version 14 has a kind, but no stream of the catalog', () => {
  expect(
    schemaVersionOf(createSpecStream('testnet', parseSpecName('ETH/USD-Streams-FuturesPrice'), 0).stream.feedId),
  ).toBe(14);
});

test('one stream is tested, one hidden, one to be decommissioned, one decommissioned', () => {
  expect(namesWhere(({ status }) => status === 'testing')).toEqual(['HYPE/USD-Streams-CexPrice']);
  expect(namesWhere(({ hidden }) => hidden)).toEqual(['SUI/USD-Streams-CexPrice']);
  expect(namesWhere((stream) => stream.expectedDecommissionAt !== null)).toEqual(['LTC/USD-Streams-CexPrice']);
  expect(namesWhere(({ status }) => status === 'decommissioned')).toEqual(['FTM/USD-Streams-CexPrice']);
});

test('at least eight public crypto streams report every second', () => {
  const busy = createStreams('testnet').filter(
    ({ stream, intervalSeconds }) =>
      stream.attributeType === 'CexPrice' && stream.status === 'live' && !stream.hidden && intervalSeconds === 1,
  );
  expect(busy.length).toBeGreaterThanOrEqual(8);
});

test('the networks share names but no feed ID', () => {
  const mainnet = createCatalog('mainnet');
  expect(mainnet.map(({ name }) => name)).toEqual(catalog.map(({ name }) => name));
  const feedIds = new Set([...catalog, ...mainnet].map(({ feedId }) => feedId));
  expect(feedIds.size).toBe(2 * catalog.length);
});

test('feed IDs do not change from release to release', () => {
  const eth = catalog.find(({ name }) => name === 'ETH/USD-Streams-CexPrice');
  expect(eth?.feedId).toBe('0x0003095611cfff324f217d74e8da272a1f8119c6b824478ede9d341f1769c9ce');
});
