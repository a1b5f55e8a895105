import { expect, test } from 'vitest';
import { routes } from './api.ts';
import { bodies } from './bodies.ts';
import {
  compareStreams,
  formatDate,
  matchesFilter,
  moveStream,
  parseCatalog,
  parseStream,
  type Stream,
  statusTransitions,
  toCatalogEntry,
} from './catalog.ts';
import { parseQuery } from './query.ts';
import vectors from './vectors/discovery.json' with { type: 'json' };

const streams = parseCatalog(vectors);
const [stream] = streams as [Stream, ...Stream[]]; // the file has streams

test.each(vectors.cases)('discovery vector: $name', ({ query, names, error, argument }) => {
  const listed = () => {
    const filter = parseQuery('discovery', query);
    return streams
      .filter((one) => !one.hidden && matchesFilter(filter, one))
      .sort(compareStreams)
      .map(({ name }) => name);
  };
  if (error === undefined) expect(listed()).toEqual(names);
  else
    expect(listed).toThrow(
      expect.objectContaining({ code: error, ...(argument && { details: expect.objectContaining({ argument }) }) }),
    );
});

test('discovery: all fourteen parameters, each used by a vector', () => {
  const parameters = Object.keys(routes.discovery.query);
  expect(parameters).toHaveLength(14);
  for (const parameter of parameters)
    expect(
      vectors.cases.some(({ query }) => query.includes(parameter)),
      parameter,
    ).toBe(true);
});

test('catalog entry: the documented keys in the documented order, never the hidden flag', () => {
  expect(Object.keys(toCatalogEntry({ ...stream, hidden: true }))).toEqual(Object.keys(bodies.CatalogEntry.properties));
  expect(toCatalogEntry(stream).schemaVersion).toBe('V3');
});

test('catalog entry: reads back as the stream it shows', () => {
  for (const one of streams) expect(parseStream({ ...toCatalogEntry(one), hidden: one.hidden })).toEqual(one);
});

test('catalog: listed by name, then by feed ID', () => {
  const twin = { ...stream, feedId: `0x0003${'f'.repeat(60)}` as typeof stream.feedId }; // 32 bytes
  expect([twin, stream].sort(compareStreams)).toEqual([stream, twin]);
  expect(compareStreams(stream, stream)).toBe(0);
});

test('catalog: dates are normalized to microseconds', () => {
  const at = (createdAt: unknown) => parseStream({ ...stream, createdAt }).createdAt;
  expect(at('2025-01-31T12:00:00Z')).toBe('2025-01-31T12:00:00.000000Z');
  expect(at('2025-01-31T12:00:00.1234Z')).toBe('2025-01-31T12:00:00.123400Z');
  expect(formatDate(Date.UTC(2025, 0, 31))).toBe('2025-01-31T00:00:00.000000Z');
  for (const wrong of [
    '2025-02-30T00:00:00Z',
    '2025-01-31',
    '2025-01-31T12:00:00',
    '2025-01-31T12:00:00+02:00',
    '2025-01-31T25:00:00Z',
    1,
    null,
    undefined,
  ]) {
    expect(() => at(wrong)).toThrow('stream.createdAt');
  }
});

test('catalog: each mistake in a file is reported with its place', () => {
  const wrong = (change: object) => () => parseCatalog([stream, { ...stream, ...change }]);
  expect(() => parseCatalog({})).toThrow('catalog is {}, expected a list of streams, or {"feeds": [ … ]}.');
  expect(() => parseCatalog([7])).toThrow('catalog[0] is 7, expected an object.');
  expect(wrong({ feedId: '0x1' })).toThrow('catalog[1].feedId is "0x1"');
  expect(wrong({ name: '' })).toThrow('catalog[1].name is "", expected a text.');
  expect(wrong({ schemaVersion: 'V4' })).toThrow('catalog[1].schemaVersion is "V4", expected V3, as in the feed ID.');
  expect(wrong({ status: 'paused' })).toThrow('expected testing or live or decommissioned');
  expect(wrong({ networkType: 'devnet' })).toThrow('expected mainnet or testnet');
  expect(wrong({ hidden: 'no' })).toThrow('catalog[1].hidden is "no"');
  expect(wrong({ status: 'decommissioned' })).toThrow('expected a date exactly when the status is decommissioned');
  expect(wrong({ decommissionedAt: '2025-01-01T00:00:00Z' })).toThrow('expected a date exactly when');
  expect(wrong({})).toThrow(expect.objectContaining({ code: 'repeated_argument' }));
});

test('status: testing → live → decommissioned, and no other move', () => {
  const testing: Stream = { ...stream, status: 'testing' };
  const live = moveStream(testing, 'live', 0);
  const gone = moveStream(live, 'decommissioned', Date.UTC(2026, 0, 2));
  expect(live).toMatchObject({ status: 'live', decommissionedAt: null });
  expect(gone).toMatchObject({ status: 'decommissioned', decommissionedAt: '2026-01-02T00:00:00.000000Z' });
  const moves = { testing, live, decommissioned: gone };
  for (const from of Object.values(moves)) {
    const statuses = Object.keys(moves) as Stream['status'][]; // its own keys
    for (const to of statuses) {
      const allowed: readonly string[] = statusTransitions[from.status];
      if (!allowed.includes(to)) expect(() => moveStream(from, to, 0)).toThrow(/^status is|permanent/);
    }
  }
  expect(() => moveStream(gone, 'live', 0)).toThrow('BTC/USD-Streams-CexPrice is decommissioned, which is permanent.');
});
