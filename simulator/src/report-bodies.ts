// The fields of a report: those that all versions share, and a table of those that each version adds.
import type { ReportBody, ReportBodyOf } from '@sealpost/protocol';
import { assets } from './market/assets.ts';
import { openCodeOf, sessionCodes } from './market/market-hours.ts';
import { createWalk, priceScale, ticksAt, toPrice, type Walk } from './market/prices.ts';
import { type Market, type Quote, quoteAt } from './market/quotes.ts';
import type { SimulatedVersion } from './streams.ts';

/** How long contracts accept a report. */
export const expirySeconds = 30 * 86_400;

const feeUsd = (35n * priceScale) / 100n;
const sharesPerLot = 100n;
const fundShares = 412_000_000n;
const minute = 60;

/** The tokens that verification fees are in. */
type FeeTokens = { readonly native: Walk; readonly link: Walk };

const feeAt = (token: Walk, seconds: number): bigint =>
  (feeUsd * priceScale) / toPrice(token.asset, ticksAt(token, seconds));

const toNs = (seconds: number): bigint => BigInt(seconds) * 1_000_000_000n;
const toShares = (lots: number): bigint => BigInt(lots) * sharesPerLot * priceScale;

type HeadName =
  | 'version'
  | 'feedId'
  | 'validFromTimestamp'
  | 'observationsTimestamp'
  | 'nativeFee'
  | 'linkFee'
  | 'expiresAt';

type FieldTable = { readonly [V in SimulatedVersion]: (quote: Quote) => Omit<ReportBodyOf<V>, HeadName> };

const fieldTable: FieldTable = {
  2: ({ averageOver }) => ({ price: averageOver(60 * minute) }),
  3: ({ price, bid, ask }) => ({ price, bid, ask }),
  4: ({ price, session }) => ({ price, marketStatus: openCodeOf(session) }),
  5: ({ price, settledAt }) => ({ rate: price, timestamp: settledAt, duration: 86_400 }),
  6: ({ price, averageOver }) => ({
    price,
    price2: averageOver(minute),
    price3: averageOver(5 * minute),
    price4: averageOver(15 * minute),
    price5: averageOver(60 * minute),
  }),
  7: ({ price }) => ({ exchangeRate: price }),
  8: ({ price, settledAt, session }) => ({
    lastUpdateTimestamp: toNs(settledAt),
    midPrice: price,
    marketStatus: openCodeOf(session),
  }),
  9: ({ price, settledAt }) => ({
    navPerShare: price,
    navDate: toNs(settledAt),
    aum: price * fundShares,
    ripcord: 0,
  }),
  10: ({ price, settledAt, session, priceAroundTheClock }) => ({
    lastUpdateTimestamp: toNs(settledAt),
    price,
    marketStatus: openCodeOf(session),
    currentMultiplier: priceScale,
    newMultiplier: 0n, // no corporate action is scheduled
    activationDateTime: 0,
    tokenizedPrice: priceAroundTheClock(),
  }),
  11: ({ price, bid, ask, bidLots, askLots, lastTradedPrice, settledAt, session }) => ({
    mid: price,
    lastSeenTimestampNs: toNs(settledAt),
    bid,
    bidVolume: toShares(bidLots),
    ask,
    askVolume: toShares(askLots),
    lastTradedPrice,
    marketStatus: sessionCodes[session],
  }),
  12: ({ price, settledAt, priceAroundTheClock }) => ({
    navPerShare: price,
    nextNavPerShare: priceAroundTheClock(),
    navDate: toNs(settledAt),
    ripcord: 0,
  }),
  13: ({ bid, ask, bidLots, askLots, lastTradedPrice }) => ({
    bestAsk: ask,
    bestBid: bid,
    askVolume: BigInt(askLots),
    bidVolume: BigInt(bidLots),
    lastTradedPrice,
  }),
  14: ({ price, bid, ask, settledAt, session, averageOver }) => {
    const { contractMonth, expiryTime, firstDayOfNotice, currentBusinessDay } = contractAt(settledAt);
    return {
      midPrice: price,
      bidPrice: bid,
      askPrice: ask,
      expiryTime: BigInt(expiryTime),
      firstDayOfNotice: BigInt(firstDayOfNotice),
      lastSeenTimestampNs: toNs(settledAt),
      marketStatus: openCodeOf(session),
      contractMonth,
      goldmanRollPrice: price,
      currentBusinessDay,
      interpolatedGoldmanRollPrice: averageOver(60 * minute),
    };
  },
};

/** The future that is traded at a second: it expires on the 20th, and has the month after that in its name. */
const contractAt = (seconds: number) => {
  const now = new Date(seconds * 1_000);
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  const expiryMs = Date.UTC(year, day < 20 ? month : month + 1, 20);
  const weekdays = Array.from({ length: day }, (_, i) => new Date(Date.UTC(year, month, i + 1)).getUTCDay());
  return {
    expiryTime: expiryMs / 1_000,
    firstDayOfNotice: expiryMs / 1_000 + 2 * 86_400,
    contractMonth: ((new Date(expiryMs).getUTCMonth() + 1) % 12) + 1,
    currentBusinessDay: weekdays.filter((weekday) => weekday % 6 !== 0).length,
  };
};

/** The fee tokens of a seed. */
export const createFeeTokens = (seed: string): FeeTokens => ({
  native: createWalk(seed, assets['ETH/USD']),
  link: createWalk(seed, assets['LINK/USD']),
});

/** The body of a market's report; its window is the interval that ends with the observation. */
export function createReportBody(market: Market, feeTokens: FeeTokens, observationsTimestamp: number): ReportBody {
  const { stream, version, intervalSeconds } = market;
  return {
    version,
    feedId: stream.feedId,
    validFromTimestamp: observationsTimestamp - intervalSeconds + 1,
    observationsTimestamp,
    nativeFee: feeAt(feeTokens.native, observationsTimestamp),
    linkFee: feeAt(feeTokens.link, observationsTimestamp),
    expiresAt: observationsTimestamp + expirySeconds,
    ...fieldTable[version](quoteAt(market, observationsTimestamp)),
  } as ReportBody; // the table's type pairs each version with its own fields
}
