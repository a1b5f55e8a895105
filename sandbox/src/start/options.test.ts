import { describe, expect, test } from 'vitest';
import { SandboxError } from './embedded.ts';
import { readOptions, type SandboxOptions } from './options.ts';

const now = Date.parse('2026-03-13T14:30:00.700Z');
const read = (options: unknown) => readOptions(options as SandboxOptions, now); // wrong ones too
const names = (options: unknown) => read(options).streams.map(({ stream }) => stream.name);

test('options: a pair is the crypto price of it, and any name of the catalog works', () => {
  expect(names({ streams: ['ETH/USD', 'btc/usd', 'AAPL/USD-Streams-EquityPrice'], simulated: ['LINK/USD'] })).toEqual([
    'ETH/USD-Streams-CexPrice',
    'BTC/USD-Streams-CexPrice',
    'AAPL/USD-Streams-EquityPrice',
    'LINK/USD-Streams-CexPrice',
  ]);
});

test('options: a stream of your own has your feed ID, or one by its schema that is always the same', () => {
  const feedId = `0x0003${'aB'.repeat(30)}`;
  const [own, made, rwa] = read({
    streams: [{ name: 'ETH/USD', feedId }, { name: 'FOO/USD' }, { name: 'BAR/USD', schema: 11 }],
  }).streams;
  expect(own?.stream).toMatchObject({
    feedId: feedId.toLowerCase(),
    name: 'ETH/USD-Streams-Sandbox',
    baseAsset: 'ETH',
  });
  expect(made?.stream.feedId).toBe(read({ streams: [{ name: 'FOO/USD' }] }).streams[0]?.stream.feedId);
  expect(made?.stream.feedId).toMatch(/^0x0003[0-9a-f]{60}$/);
  expect(rwa?.stream.feedId).toMatch(/^0x000b/);
});

test('options: every stream is live, also one that the catalog has decommissioned or hides', () => {
  for (const { stream } of read({ streams: ['FTM/USD', 'SUI/USD'] }).streams)
    expect(stream).toMatchObject({ status: 'live', hidden: false, decommissionedAt: null });
});

test('options: time starts at a whole second, now or at a date, an ISO text or Unix seconds', () => {
  const startOf = (at: unknown) => new Date(read({ streams: ['ETH/USD'], at }).startMs).toISOString();
  expect(startOf(undefined)).toBe('2026-03-13T14:30:00.000Z');
  for (const at of ['2026-01-02T03:04:05Z', new Date('2026-01-02T03:04:05.999Z'), 1_767_323_045])
    expect(startOf(at)).toBe('2026-01-02T03:04:05.000Z');
});

describe.each<[unknown, string, string | RegExp]>([
  [undefined, 'options', "options is missing, expected an object, for example { streams: ['ETH/USD'] }."],
  [{}, 'streams', "No stream is given. Set streams, for example { streams: ['ETH/USD'] }, or simulated."],
  [
    { stream: 'ETH/USD' },
    'stream',
    'stream is not an option. Options: streams, simulated, scenario, at, seed, oracles, faulty, store, requestsPerSecond, origins, accounts.',
  ],
  [
    { streams: 'ETH/USD' },
    'streams',
    'streams is "ETH/USD", expected a list of at most 1000 streams such as [\'ETH/USD\'].',
  ],
  [
    { streams: ['ETH/USDT'] },
    'streams[0]',
    /^streams\[0\]: No stream is named "ETH\/USDT"\. Similar: ETH\/USD.*Pairs: AAPL\/USD, .* For a stream of your own: \{ name: "ETH\/USDT" \}\.$/,
  ],
  [{ simulated: ['FOO/USD'] }, 'simulated[0]', /^simulated\[0\]: No stream is named "FOO\/USD".* Pairs: [^{]*\.$/],
  [{ streams: ['AAPL/USD'] }, 'streams[0]', /EquityPrice[\s\S]*TokenizedPrice/],
  [
    { streams: ['ETH/USD', 'ETH/USD-Streams-CexPrice'] },
    'streams',
    /^ETH\/USD-Streams-CexPrice and ETH\/USD are the same stream, 0x0003.* Name it once\.$/,
  ],
  [{ streams: ['ETH/USD'], simulated: ['ETH/USD'] }, 'streams', /are the same stream/],
  [
    { streams: [{ name: 'FOO/USD' }, { name: 'foo/usd-Streams-sandbox' }] },
    'streams',
    /^foo\/usd-Streams-sandbox is also the name of 0x0003[0-9a-f]{60}\. Names are unique in any case\.$/,
  ],
  [
    { streams: [7] },
    'streams[0]',
    "streams[0] is 7, expected a pair such as 'ETH/USD', or { name, feedId } for a stream of your own.",
  ],
  [{ streams: [{ name: 'ETH' }] }, 'streams[0].name', /expected a pair such as 'ETH\/USD'/],
  [
    { streams: [{ name: 'A/B', version: 3 }] },
    'streams[0].version',
    'streams[0].version is not a field. Fields: name, feedId, schema, hidden.',
  ],
  [
    { streams: [{ name: 'A/B', schema: 1 }] },
    'streams[0].schema',
    'streams[0].schema is 1, expected a schema version from 2 to 4095.',
  ],
  [
    { streams: [{ name: 'A/B', feedId: '0x12' }] },
    'streams[0].feedId',
    'streams[0].feedId is "0x12", expected 0x and 64 hex digits.',
  ],
  [
    { streams: [{ name: 'A/B', feedId: `0x0001${'0'.repeat(60)}` }] },
    'streams[0].feedId',
    /a feed ID of a schema version from 2 to 4095/,
  ],
  [
    { streams: [{ name: 'A/B', feedId: `0x2003${'0'.repeat(60)}` }] },
    'streams[0].feedId',
    /a feed ID of a schema version/,
  ],
  [
    { streams: [{ name: 'A/B', feedId: `0x0003${'0'.repeat(60)}`, schema: 4 }] },
    'streams[0].schema',
    'streams[0].schema is 4, expected 3, as in the feed ID, or none.',
  ],
  [{ streams: ['ETH/USD'], at: 'yesterday' }, 'at', /^at is "yesterday", expected a Date, a date such as/],
  [{ streams: ['ETH/USD'], at: '2026-02-30T00:00:00Z' }, 'at', /^at is "2026-02-30T00:00:00Z", expected a Date/],
  [{ streams: ['ETH/USD'], at: Date.now() }, 'at', /Unix seconds, before 2106\.$/],
  [{ streams: ['ETH/USD'], seed: 1 }, 'seed', 'seed is 1, expected a text.'],
  [{ streams: ['ETH/USD'], oracles: 32 }, 'oracles', 'oracles is 32, expected a whole number from 1 to 31.'],
  [
    { streams: ['ETH/USD'], oracles: 16, faulty: 6 },
    'faulty',
    'faulty is 6, expected a whole number from 0 to 5, fewer than a third of 16 oracles.',
  ],
  [{ streams: ['ETH/USD'], store: 'disk' }, 'store', "store is \"disk\", expected 'memory' or 'folder'."],
  [
    { streams: ['ETH/USD'], requestsPerSecond: -1 },
    'requestsPerSecond',
    /^requestsPerSecond is -1, expected a whole number from 0/,
  ],
  [{ streams: ['ETH/USD'], origins: '001' }, 'origins', /^origins is "001", expected a list of IDs/],
])('options: %j', (options, argument, message) => {
  test('is rejected, and the error names the option and what is allowed', () => {
    let thrown: unknown;
    try {
      read(options);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(SandboxError);
    const { argument: named, message: text } = thrown as SandboxError;
    expect(named).toBe(argument);
    if (typeof message === 'string') expect(text).toBe(message);
    else expect(text).toMatch(message);
  });
});
