import { expect, test } from 'vitest';
import { createStreams } from '../streams.ts';
import { createMarket, type Market, quoteAt } from './quotes.ts';

const markets = createStreams('testnet').map((simulated) => createMarket('demo', simulated));
const seconds = (date: string) => Date.parse(date) / 1_000;

const marketOf = (name: string): Market => {
  const market = markets.find(({ stream }) => stream.name === name);
  if (market === undefined) throw new Error(`There is no ${name}.`);
  return market;
};

test('bid ≤ price ≤ ask and the last trade lies between, over two years, open or closed', () => {
  const sessions = new Set<string>();
  for (const market of markets) {
    for (let at = seconds('2025-01-01T00:00:00Z'); at < seconds('2027-01-01T00:00:00Z'); at += 47_221) {
      const { price, bid, ask, lastTradedPrice, session } = quoteAt(market, at);
      sessions.add(session);
      const ordered = 0n < bid && bid <= price && price <= ask && bid <= lastTradedPrice && lastTradedPrice <= ask;
      if (!ordered) expect.fail(`${market.stream.name} at ${at}: ${bid} ${price} ${ask} ${lastTradedPrice}`);
    }
  }
  expect([...sessions].sort()).toEqual(['closed', 'overnight', 'post-market', 'pre-market', 'regular']);
});

test('a closed market keeps the prices of its last open second', () => {
  const apple = marketOf('AAPL/USD-Streams-EquityPrice');
  const lastOpen = seconds('2025-10-31T23:59:59Z');
  const { observedAt: _, session: __, ...shown } = quoteAt(apple, lastOpen);
  for (let at = lastOpen + 1; at < seconds('2025-11-03T01:00:00Z'); at += 3_607) {
    const quote = quoteAt(apple, at);
    expect(quote.session).toBe('closed');
    expect({ ...quote, averageOver: 0, priceAroundTheClock: 0 }).toEqual({
      ...shown,
      observedAt: at,
      session: 'closed',
      averageOver: 0,
      priceAroundTheClock: 0,
    });
  }
  expect(quoteAt(apple, seconds('2025-11-03T01:00:00Z')).price).not.toBe(shown.price);
});

test('the price around the clock moves on while the market is closed', () => {
  const tokenized = marketOf('AAPL/USD-Streams-TokenizedPrice');
  const saturday = quoteAt(tokenized, seconds('2025-11-01T12:00:00Z'));
  const sunday = quoteAt(tokenized, seconds('2025-11-02T12:00:00Z'));
  expect(saturday.price).toBe(sunday.price);
  expect(saturday.priceAroundTheClock()).not.toBe(sunday.priceAroundTheClock());
});

test('streams of one asset follow the same price', () => {
  const at = seconds('2025-11-03T12:00:00Z');
  const prices = ['BTC/USD-Streams-CexPrice', 'BTC/USD-Streams-TopOfBook', 'BTC/USD-Streams-PriceWindows'].map(
    (name) => quoteAt(marketOf(name), at).price,
  );
  expect(new Set(prices).size).toBe(1);
});
