import { ApiError, parseQuery } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream, testStream } from '../../../tests/support/samples.ts';
import {
  changeEntitlements,
  parseAccountName,
  parseNewEntitlement,
  parseRateLimits,
  unknownFeeds,
} from './account-arguments.ts';
import { createStreamOrder, isListed, parseEntitlement, readableByAccount, readableStreams } from './entitlements.ts';

const [crypto, forex, hidden, unknown] = [secondStream(1), secondStream(2), secondStream(3), secondStream(9)];
const streams = new Map(
  [
    testStream(crypto, { name: 'B', baseAsset: 'BTC' }),
    testStream(forex, { name: 'A', assetClass: 'Forex' }),
    testStream(hidden, { name: 'H', baseAsset: 'BTC', hidden: true }),
  ].map((stream) => [stream.feedId, stream]),
);

test('entitlements: public, feed and filter are parsed, anything else is rejected', () => {
  expect(parseEntitlement('public')).toEqual({ kind: 'public' });
  expect(parseEntitlement(`feed:${crypto.toUpperCase().replace('0X', '0x')}`)).toEqual({
    kind: 'feed',
    feedId: crypto,
  });
  expect(parseEntitlement('filter:asset_class=Crypto,Forex&base_asset=BTC')).toMatchObject({
    kind: 'filter',
    filter: { asset_class: ['crypto', 'forex'], base_asset: ['btc'] },
  });
  for (const text of ['', 'Public', 'public ', '*', 'feed:', 'feed:0x12', 'filter:', crypto, `stream:${crypto}`])
    expect(() => parseEntitlement(text), text).toThrow(/expected/);
  expect(() => parseEntitlement('filter:asset_class=')).toThrow();
  for (const text of ['', 'filter:', 'xfilter:status=live', `xfeed:${crypto}`])
    expect(() => parseEntitlement(text), text).toThrow(
      `entitlement is "${text}", expected public, feed:FEED_ID or filter:QUERY such as filter:asset_class=Crypto.`,
    );
  expect(() => parseEntitlement('feed:0x12')).toThrow('entitlement is "0x12", expected 0x and 64 hex digits.');
});

test('entitlements: who may read what, and hidden streams by id only', () => {
  const matrix: readonly (readonly [readonly string[], readonly string[]])[] = [
    [[], []],
    [['public'], [crypto, forex]],
    [[`feed:${crypto}`], [crypto]],
    [[`feed:${hidden}`], [hidden]],
    [[`feed:${unknown}`], []],
    [['filter:asset_class=crypto'], [crypto]],
    [['filter:base_asset=BTC'], [crypto]],
    [['filter:base_asset=BTC&hidden=true'], [crypto]],
    [['filter:asset_class=Crypto&base_asset=EUR'], []],
    [['filter:asset_class=nothing'], []],
    [
      ['filter:asset_class=Forex', `feed:${hidden}`],
      [forex, hidden],
    ],
    [
      ['public', `feed:${hidden}`, 'public'],
      [crypto, forex, hidden],
    ],
  ];
  for (const [entitlements, expected] of matrix)
    expect([...readableStreams(entitlements, streams)].sort(), entitlements.join(' ')).toEqual(expected);
});

test('entitlements: stored ones that cannot be parsed are a failure of ours, with the account and the command', () => {
  const userId = '123e4567-e89b-42d3-a456-426614174000';
  expect([...readableByAccount({ userId, entitlements: ['public'] }, streams)]).toEqual([crypto, forex]);
  expect(() => readableByAccount({ userId, entitlements: ['public', 'all'] }, streams)).toThrow(
    expect.objectContaining({
      name: 'Error',
      message: `The entitlements stored for account ${userId} are invalid. Set them again with: sealpost account entitle.`,
      cause: expect.any(ApiError),
    }),
  );
});

test('entitlements: the catalog lists public streams to all, and hidden ones to those who ask and may read them', () => {
  const inOrder = createStreamOrder();
  const names = (query: string, entitlements?: readonly string[]) => {
    const readable = entitlements && readableStreams(entitlements, streams);
    const filter = parseQuery('discovery', query);
    return inOrder(streams).flatMap((stream) => (isListed(stream, filter, readable) ? [stream.name] : []));
  };
  expect(inOrder(streams)).toBe(inOrder(streams));
  expect(names('')).toEqual(['A', 'B']);
  expect(names('', [])).toEqual(['A', 'B']);
  expect(names('hidden=true')).toEqual(['A', 'B']);
  expect(names('hidden=true', ['public'])).toEqual(['A', 'B']);
  expect(names('', [`feed:${hidden}`])).toEqual(['A', 'B']);
  expect(names('hidden=true', [`feed:${hidden}`])).toEqual(['A', 'B', 'H']);
  expect(names('hidden=true&asset_class=Forex', [`feed:${hidden}`])).toEqual(['A']);
});

test('entitlements: a filter that an operator gives names only what filters know, since anything else would be ignored', () => {
  expect(parseNewEntitlement('filter:asset_class=Crypto&status=live')).toBe('filter:asset_class=Crypto&status=live');
  expect(parseNewEntitlement(`feed:0x${crypto.slice(2).toUpperCase()}`)).toBe(`feed:${crypto}`);
  for (const text of [
    'filter:asset_clas=Crypto',
    'filter:hidden=true',
    'filter:&',
    'filter:Crypto',
    'filter:a=b&status=live',
  ])
    expect(() => parseNewEntitlement(text), text).toThrow('expected a filter by some of base_asset, quote_asset');
});

test('entitlements: changes keep order, drop repeats, and reject removing what is absent', () => {
  const current = ['public', `feed:${crypto}`];
  expect(changeEntitlements(current, { add: ['public', `feed:${hidden}`] })).toEqual([...current, `feed:${hidden}`]);
  expect(changeEntitlements(current, { remove: ['public'], add: ['filter:status=live'] })).toEqual([
    `feed:${crypto}`,
    'filter:status=live',
  ]);
  expect(changeEntitlements(current, { set: [] })).toEqual([]);
  expect(() => changeEntitlements(current, { remove: ['filter:status=live'] })).toThrow(
    'filter:status=live is not an entitlement of the account. List them with: sealpost account show.',
  );
  const many = Array.from({ length: 1_001 }, (_, i) => `feed:${secondStream(i)}`);
  expect(() => changeEntitlements([], { add: many })).toThrow('An account has at most 1000 entitlements, not 1001.');
  expect(unknownFeeds([...current, `feed:${unknown}`], streams)).toEqual([unknown]);
});

test('entitlements: limits name routes that are limited, once each', () => {
  expect(parseRateLimits(['*=20', 'reportPage=0'])).toEqual({ '*': 20, reportPage: 0 });
  for (const raw of [
    'reportPage',
    'page=1',
    'time=1',
    'feeds=-1',
    'feeds=1.5',
    'feeds=1000001',
    '__proto__=1',
    'toString=1',
  ])
    expect(() => parseRateLimits([raw]), raw).toThrow('expected ROUTE=N once for a route');
  expect(() => parseRateLimits(['feeds=1', 'feeds=2'])).toThrow('limit is "feeds=2"');
});

test('entitlements: a name is one line and cannot be mistaken for a user ID', () => {
  expect(parseAccountName('  Acme, Inc. ✓ ')).toBe('Acme, Inc. ✓');
  const uuid = '123E4567-e89b-42d3-a456-426614174000';
  for (const raw of ['', '  ', 'a\nb', '\u001b[31mred', 'x'.repeat(101), uuid])
    expect(() => parseAccountName(raw), raw).toThrow('expected one line of 1 to 100 characters');
});
