import { expect, test } from 'vitest';
import { distinguishStreams, explainMatch, matchStreams, type NamedStream } from './stream-names.ts';

const entry = (pair: string, attributeType: string, change: Partial<NamedStream> = {}): NamedStream => {
  const [baseAsset, quoteAsset] = pair.split('/') as [string, string]; // a pair has one slash
  const feedId = `0x0003${Buffer.from(`${pair}${attributeType}`).toString('hex').padEnd(60, '0').slice(0, 60)}`;
  return {
    feedId,
    name: `${pair}-Streams-${attributeType}`,
    baseAsset,
    quoteAsset,
    attributeType,
    networkType: 'mainnet',
    status: 'live',
    ...change,
  };
};

const cex = entry('BTC/USD', 'CexPrice');
const book = entry('BTC/USD', 'TopOfBook', { feedId: `0x000d${'b'.repeat(60)}` });
const link = entry('LINK/USD', 'CexPrice');
const steth = entry('wstETH/ETH', 'ExchangeRate');
const catalog = [cex, book, link, steth];

test('stream names: a pair, a full name and a feed ID each find the stream, in any case', () => {
  const one = (stream: NamedStream) => ({ found: 'one', stream });
  for (const name of ['LINK/USD', 'link/usd', ' Link/Usd ', link.name, link.name.toUpperCase()])
    expect(matchStreams(name, catalog)).toEqual(one(link));
  expect(matchStreams('WSTETH/ETH', catalog)).toEqual(one(steth));
  expect(matchStreams('btc/usd-streams-cexprice', catalog)).toEqual(one(cex));
  expect(matchStreams(book.feedId.toUpperCase().replace('0X', '0x'), catalog)).toEqual(one(book));
});

test('stream names: a pair with several streams lists them and how they differ', () => {
  const match = matchStreams('btc/usd', catalog);
  expect(match).toEqual({ found: 'several', streams: [cex, book] });
  expect(distinguishStreams([cex, book])).toEqual([
    { name: cex.name, feedId: cex.feedId, differs: { attributeType: 'CexPrice', schemaVersion: 'V3' } },
    { name: book.name, feedId: book.feedId, differs: { attributeType: 'TopOfBook', schemaVersion: 'V13' } },
  ]);
  if (match.found === 'several')
    expect(explainMatch('btc/usd', match)).toBe(
      [
        '"btc/usd" matches 2 streams. Give a full name or a feed ID:',
        `  BTC/USD-Streams-CexPrice  ${cex.feedId}  (attributeType CexPrice, schemaVersion V3)`,
        `  BTC/USD-Streams-TopOfBook  ${book.feedId}  (attributeType TopOfBook, schemaVersion V13)`,
      ].join('\n'),
    );
});

test('stream names: two streams of one full name are listed with how they differ, or only their feed IDs', () => {
  const testnet = { ...cex, feedId: `0x0003${'7'.repeat(60)}`, networkType: 'testnet' };
  expect(matchStreams(cex.name, [cex, testnet])).toEqual({ found: 'several', streams: [cex, testnet] });
  expect(distinguishStreams([cex, testnet]).map(({ differs }) => differs)).toEqual([
    { networkType: 'mainnet' },
    { networkType: 'testnet' },
  ]);
  const twin = { ...cex, feedId: `0x0003${'8'.repeat(60)}` };
  expect(distinguishStreams([cex, twin]).map(({ differs }) => differs)).toEqual([{}, {}]);
});

test('stream names: another stream takes precedence over a decommissioned one, which is found if it is the only one', () => {
  const ended = entry('LINK/USD', 'OldPrice', { status: 'decommissioned' });
  expect(matchStreams('LINK/USD', [ended, link])).toEqual({ found: 'one', stream: link });
  expect(matchStreams('LINK/USD', [ended])).toEqual({ found: 'one', stream: ended });
  expect(matchStreams(ended.name, [ended, link])).toEqual({ found: 'one', stream: ended });
  const testing = entry('LINK/USD', 'TopOfBook', { status: 'testing' });
  expect(matchStreams('LINK/USD', [ended, link, testing])).toEqual({ found: 'several', streams: [link, testing] });
});

test('stream names: a hidden stream makes no pair ambiguous, and takes precedence over a decommissioned one', () => {
  const hidden = entry('LINK/USD', 'TopOfBook', { hidden: true });
  expect(matchStreams('LINK/USD', [hidden, link])).toEqual({ found: 'one', stream: link });
  expect(matchStreams(hidden.name, [hidden, link])).toEqual({ found: 'one', stream: hidden });
  const ended = { ...link, status: 'decommissioned' };
  expect(matchStreams('LINK/USD', [ended, hidden])).toEqual({ found: 'one', stream: hidden });
});

test('stream names: an unknown name gets similar ones, if any', () => {
  const near = (name: string) => {
    const match = matchStreams(name, catalog);
    return match.found === 'none' ? match.near.map((stream) => stream.name) : match;
  };
  expect(near('LNK/USD')).toEqual([link.name]);
  expect(near('link-usd')).toEqual([link.name]);
  expect(near('BTC')).toEqual([cex.name, book.name]);
  expect(near('link/usd-streams-cexprise')).toEqual([link.name]);
  for (const name of ['', ' ', '/', '0x12', 'QQQQ/ZZZZ', 'x'.repeat(1_000_000)]) expect(near(name)).toEqual([]);
  expect(explainMatch('LNK/USD', { found: 'none', near: [link] })).toBe(
    'No stream is named "LNK/USD". Similar: LINK/USD-Streams-CexPrice.',
  );
  const evil = { ...link, name: 'LINK/USD\nerror: other\x1b[2J' };
  expect(explainMatch('LNK/USD', { found: 'none', near: [evil] })).toContain(' Similar: LINK/USD error: other [2J.');
  expect(explainMatch('X', { found: 'several', streams: [evil, link] }).split('\n')).toHaveLength(3);
  expect(explainMatch('QQ', { found: 'none', near: [] })).toBe('No stream is named "QQ".');
});

test('stream names: entries of another server may have only a feed ID and a name', () => {
  const bare = { feedId: link.feedId, name: 'LINK/USD-RefPrice-DS-Premium-Global-003' };
  expect(matchStreams('link/usd', [bare])).toEqual({ found: 'one', stream: bare });
  expect(matchStreams('LINK', [{ feedId: link.feedId, name: 'LINK' }])).toMatchObject({ found: 'one' });
});

test('stream names: a message lists at most ten streams', () => {
  const many = Array.from({ length: 14 }, (_, i) => entry('BTC/USD', `Kind${i}`));
  const lines = explainMatch('BTC/USD', { found: 'several', streams: many }).split('\n');
  expect(lines).toHaveLength(12);
  expect(lines.at(-1)).toBe('  and 4 more');
});
