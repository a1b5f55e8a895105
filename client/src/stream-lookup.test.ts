import { expect, test } from 'vitest';
import { errorBody, type Scripted, scriptedFetch } from '../../tests/support/scripted-fetch.ts';
import { createClient } from './client.ts';
import { SealpostError } from './errors.ts';
import { readOptions } from './options.ts';
import { createRequester } from './request/requester.ts';
import { createStreamLookup } from './stream-lookup.ts';

const idOf = (n: number) => `0x0003${n.toString(16).padStart(60, '0')}`;
const entry = (n: number, pair: string, attributeType = 'CexPrice', change: object = {}) => ({
  feedId: idOf(n),
  name: `${pair}-Streams-${attributeType}`,
  baseAsset: pair.split('/')[0],
  quoteAsset: pair.split('/')[1],
  attributeType,
  status: 'live',
  ...change,
});
const catalog = [entry(1, 'LINK/USD'), entry(2, 'BTC/USD'), entry(3, 'BTC/USD', 'TopOfBook')];

const keys = { userId: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f', secret: 'secret' };
type Listing = (isHidden: boolean) => Scripted;

const open = (listing: Listing, options: object = keys) => {
  let nowMs = 0;
  const { fetch, asked } = scriptedFetch(({ url }) => listing(url.includes('hidden=true')));
  const settings = readOptions({ baseUrl: 'http://a.test', fetch, retries: 0, ...options });
  const requester = createRequester(settings);
  const isSigned = settings.signer !== undefined;
  const lookup = createStreamLookup({ requester, isSigned, timeoutMs: 1_000, monotonicMs: () => nowMs });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { lookup, asked, pass };
};
const listed =
  (feeds: readonly object[], hidden: readonly object[] = []): Listing =>
  (isHidden) => ({ status: 200, body: { feeds: isHidden ? [...feeds, ...hidden] : feeds } });
const errorOf = (call: Promise<unknown>): Promise<SealpostError> =>
  call.then(
    () => expect.unreachable(),
    (error: unknown) => (error instanceof SealpostError ? error : expect.unreachable(String(error))),
  );

test('lookup: a pair and a full name are found in any case, and the catalog is read once for many names', async () => {
  const { lookup, asked } = open(listed(catalog));
  expect(await lookup.one('link/usd')).toBe(idOf(1));
  expect(await lookup.one('BTC/USD-Streams-TopOfBook')).toBe(idOf(3));
  expect(await lookup.all(['LINK/USD', idOf(9), 'btc/usd-streams-cexprice', idOf(1)])).toEqual([
    idOf(1),
    idOf(9),
    idOf(2),
  ]);
  expect(asked.map(({ url }) => url)).toEqual([
    'http://a.test/api/v1/discovery',
    'http://a.test/api/v1/discovery?hidden=true',
  ]);
});

test('lookup: a feed ID needs no request, and an invalid one is an error at once', async () => {
  const { lookup, asked } = open(listed(catalog));
  expect(await lookup.one(idOf(7).toUpperCase().replace('0X', '0x'))).toBe(idOf(7));
  for (const wrong of ['0x12', '', ' ', 7 as never, undefined as never, 'x'.repeat(201)]) // what a caller without types may pass
    expect((await errorOf(lookup.one(wrong))).code).toBe('malformed_argument');
  expect(asked).toHaveLength(0);
});

test('lookup: several matches are an error that lists them and how they differ', async () => {
  const { lookup } = open(listed(catalog));
  const error = await errorOf(lookup.one('BTC/USD'));
  expect(error).toMatchObject({ code: 'ambiguous_stream', retryable: false });
  expect(error.message).toContain(`BTC/USD-Streams-TopOfBook  ${idOf(3)}  (attributeType TopOfBook)`);
  expect(error.details.streams).toEqual([
    { name: 'BTC/USD-Streams-CexPrice', feedId: idOf(2), differs: { attributeType: 'CexPrice' } },
    { name: 'BTC/USD-Streams-TopOfBook', feedId: idOf(3), differs: { attributeType: 'TopOfBook' } },
  ]);
});

test('lookup: no match is an error that suggests near names', async () => {
  const { lookup } = open(listed(catalog));
  const error = await errorOf(lookup.one('LNK/USD'));
  expect([error.code, error.message]).toEqual([
    'unknown_stream',
    'No stream is named "LNK/USD". Similar: LINK/USD-Streams-CexPrice.',
  ]);
  expect(error.details.similar).toEqual([{ name: 'LINK/USD-Streams-CexPrice', feedId: idOf(1) }]);
});

test('lookup: for an unknown name the catalog is read again, at most every ten seconds', async () => {
  let feeds = catalog;
  const { lookup, asked, pass } = open((isHidden) => listed(feeds)(isHidden), {});
  expect((await errorOf(lookup.one('SOL/USD'))).code).toBe('unknown_stream');
  feeds = [...catalog, entry(4, 'SOL/USD')];
  pass(9_000);
  expect((await errorOf(lookup.one('SOL/USD'))).code).toBe('unknown_stream');
  expect(asked).toHaveLength(1);
  pass(2_000);
  expect(await lookup.one('SOL/USD')).toBe(idOf(4));
  expect(asked).toHaveLength(2);
});

test('lookup: a name is looked up again after ten minutes, and at once if its stream is decommissioned', async () => {
  let feeds = [entry(1, 'LINK/USD')];
  const { lookup, asked, pass } = open((isHidden) => listed(feeds)(isHidden), {});
  expect(await lookup.one('LINK/USD')).toBe(idOf(1));
  feeds = [entry(1, 'LINK/USD', 'CexPrice', { status: 'decommissioned' })];
  pass(599_999);
  expect(await lookup.one('LINK/USD')).toBe(idOf(1));
  expect(asked).toHaveLength(1);
  pass(1);
  expect(await lookup.one('LINK/USD')).toBe(idOf(1)); // ended, and the only one
  feeds = [...feeds, entry(5, 'LINK/USD', 'TopOfBook')];
  pass(10_000);
  expect(await lookup.one('LINK/USD')).toBe(idOf(5));
  expect(asked).toHaveLength(3);
});

test('lookup: hidden streams of the account are found, and make no name ambiguous', async () => {
  const hidden = [entry(8, 'LINK/USD', 'Secret'), entry(9, 'SUI/USD')];
  const { lookup } = open(listed(catalog, hidden));
  expect(await lookup.one('SUI/USD')).toBe(idOf(9));
  expect(await lookup.one('LINK/USD')).toBe(idOf(1));
  expect(await lookup.one('LINK/USD-Streams-Secret')).toBe(idOf(8));
  expect(await lookup.entry('SUI/USD')).not.toHaveProperty('hidden');
});

test('lookup: a server that rejects hidden has no hidden streams; one that fails is an error', async () => {
  const { lookup } = open((isHidden) => (isHidden ? { status: 400, body: {} } : listed(catalog)(false)));
  expect(await lookup.one('LINK/USD')).toBe(idOf(1));
  const failing = open((isHidden) =>
    isHidden ? { status: 503, body: errorBody('store_unavailable') } : listed(catalog)(false),
  );
  expect((await errorOf(failing.lookup.one('LINK/USD'))).code).toBe('store_unavailable');
  expect((await errorOf(open(() => ({ status: 200, body: {} })).lookup.one('X/Y'))).code).toBe('unexpected_answer');
});

test('lookup: concurrent lookups share one read, and aborting one does not end it for the others', async () => {
  let answer: (() => void) | undefined;
  const fetch = () =>
    new Promise<Response>((resolve) => {
      answer = () => resolve(new Response(JSON.stringify({ feeds: catalog })));
    });
  const requester = createRequester(readOptions({ baseUrl: 'http://a.test', fetch }));
  const lookup = createStreamLookup({ requester, isSigned: false, timeoutMs: 1_000, monotonicMs: () => 0 });
  const controller = new AbortController();
  const [first, second] = [lookup.one('LINK/USD', { signal: controller.signal }), lookup.one('link/usd')];
  const third = lookup.one('LINK/USD', { timeoutMs: 1 });
  controller.abort();
  expect((await errorOf(first)).code).toBe('aborted');
  expect((await errorOf(third)).code).toBe('timeout');
  answer?.();
  expect(await second).toBe(idOf(1));
});

test('lookup: every call takes a name where it takes a feed ID', async () => {
  const report = { feedID: idOf(1), validFromTimestamp: 7, observationsTimestamp: 7, fullReport: '0x00' };
  const { fetch, asked } = scriptedFetch(({ url }) => {
    if (url.includes('discovery')) return { status: 200, body: { feeds: catalog } };
    if (/\/(page|bulk)\?|feedIDs=/.test(url))
      return { status: 200, body: { reports: [report] }, headers: { Link: '<>' } };
    if (url.includes('coverage')) return { status: 200, body: { gaps: [] } };
    return { status: 200, body: url.includes('candles') ? { candles: [] } : { report } };
  });
  const client = createClient({ baseUrl: 'http://a.test', ...keys, fetch });
  await client.latest('link/usd');
  await client.latestMany(['link/usd']);
  await client.at('link/usd', 7, { timeoutMs: 5_000 });
  await client.bulk(['link/usd'], 7);
  await client.page('link/usd', 7);
  for await (const _ of client.pages('link/usd', { from: 7, to: 7 })) break;
  await client.coverage('link/usd', { from: 1, to: 7 });
  await client.candles('link/usd', { from: 1, to: 7, resolution: 60 });
  expect((await client.findStream('link/usd')).feedId).toBe(idOf(1));
  const targets = asked.map(({ url }) => url).filter((url) => !url.includes('discovery'));
  expect(targets).toHaveLength(8);
  for (const target of targets) expect(target).toContain(idOf(1));
  expect(asked).toHaveLength(10);
});
