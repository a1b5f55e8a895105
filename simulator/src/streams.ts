// The table of simulated streams, and the table of kinds, which define schema, interval and market hours. Every schema version from 2 to
// 13 has a stream; existing client libraries reject others, so version 14 has a kind only.
import {
  compareStreams,
  type FeedId,
  formatDate,
  type NetworkType,
  parseFeedId,
  type SchemaVersion,
  type Stream,
  type StreamStatus,
} from '@sealpost/protocol';
import * as Hash from 'ox/Hash';
import * as Hex from 'ox/Hex';
import { type Asset, assets, type Pair } from './market/assets.ts';
import { labelOf, type MarketHours } from './market/market-hours.ts';
import { keyOf } from './market/random.ts';

/** Simulated schema versions: all but the first, which is obsolete. */
export type SimulatedVersion = Exclude<SchemaVersion, 1>;

type Kind = {
  readonly version: SimulatedVersion;
  readonly intervalSeconds: number;
  readonly hours: MarketHours;
  readonly assetClass: string;
  readonly feedType: string;
  readonly serviceLevel: 'standard' | 'premium';
};

const kind = (
  version: SimulatedVersion,
  intervalSeconds: number,
  hours: MarketHours,
  assetClass: string,
  feedType: string,
  serviceLevel: Kind['serviceLevel'] = 'standard',
): Kind => ({ version, intervalSeconds, hours, assetClass, feedType, serviceLevel });

/** Kinds by attribute type: schema version, seconds between reports, hours, asset class, feed type, service level. */
const kinds = {
  CexPrice: kind(3, 1, 'always', 'Crypto', 'Crypto'),
  CommodityPrice: kind(4, 1, 'forex', 'Commodities', 'Commodities'),
  DexPrice: kind(3, 5, 'always', 'Crypto', 'Crypto-DEX'),
  EquityPrice: kind(11, 1, 'us-equities-extended', 'Equities', 'Equities', 'premium'),
  ExchangeRate: kind(7, 30, 'always', 'Crypto', 'Crypto'),
  ForexPrice: kind(8, 1, 'forex', 'Forex', 'Forex'),
  FuturesPrice: kind(14, 1, 'forex', 'Commodities', 'Futures', 'premium'),
  InterestRate: kind(5, 60, 'daily-strike', 'Macroeconomics', 'Datalink'),
  NAV: kind(9, 60, 'daily-strike', 'NAV', 'Datalink'),
  NextNAV: kind(12, 60, 'daily-strike', 'NAV', 'Datalink'),
  PriceWindows: kind(6, 10, 'always', 'Crypto', 'Crypto', 'premium'),
  TokenizedPrice: kind(10, 5, 'us-equities-regular', 'Tokenized Asset', 'Equities', 'premium'),
  TopOfBook: kind(13, 1, 'always', 'Crypto', 'Crypto', 'premium'),
  TWAP: kind(2, 10, 'always', 'Crypto', 'Crypto'),
} as const satisfies Record<string, Kind>;

export type KindName = keyof typeof kinds;

/** Every kind of stream, by attribute type. */
export const kindNames = Object.keys(kinds) as readonly KindName[]; // the table's own keys

type Life = {
  readonly testing?: true;
  readonly hidden?: true;
  readonly expectedDecommission?: string;
  readonly decommissioned?: string;
};

type Row = readonly [pair: Pair, kind: KindName, created: string, life?: Life];

const rows: readonly Row[] = [
  ['AAPL/USD', 'EquityPrice', '2025-06-02'],
  ['AAPL/USD', 'TokenizedPrice', '2025-08-18'],
  ['AERO/USD', 'DexPrice', '2024-11-12'],
  ['AVAX/USD', 'CexPrice', '2024-02-05'],
  ['BNB/USD', 'CexPrice', '2024-02-05'],
  ['BTC/USD', 'CexPrice', '2024-01-15'],
  ['BTC/USD', 'PriceWindows', '2025-03-10'],
  ['BTC/USD', 'TopOfBook', '2025-09-01'],
  ['CAKE/USD', 'DexPrice', '2024-11-12'],
  ['DOGE/USD', 'CexPrice', '2024-02-05'],
  ['ETH/USD', 'CexPrice', '2024-01-15'],
  ['ETH/USD', 'TWAP', '2024-07-22'],
  ['EUR/USD', 'ForexPrice', '2025-04-07'],
  ['FTM/USD', 'CexPrice', '2024-02-05', { decommissioned: '2025-05-13' }],
  ['HYPE/USD', 'CexPrice', '2025-09-22', { testing: true }],
  ['LINK/USD', 'CexPrice', '2024-01-15'],
  ['LTC/USD', 'CexPrice', '2024-03-18', { expectedDecommission: '2030-06-28' }],
  ['NWBF/USD', 'NextNAV', '2025-07-14'],
  ['NWTF/USD', 'NAV', '2025-05-05'],
  ['SOFR/USD', 'InterestRate', '2025-02-03'],
  ['SOL/USD', 'CexPrice', '2024-02-05'],
  ['SUI/USD', 'CexPrice', '2024-09-30', { hidden: true }],
  ['TSLA/USD', 'EquityPrice', '2025-06-02'],
  ['USD/JPY', 'ForexPrice', '2025-04-07'],
  ['XAU/USD', 'CommodityPrice', '2024-10-21'],
  ['XRP/USD', 'CexPrice', '2024-02-05'],
  ['wstETH/ETH', 'ExchangeRate', '2024-12-09'],
];

/** A stream of the catalog with the model of its reports. */
export type SimulatedStream = {
  readonly stream: Stream;
  readonly asset: Asset;
  readonly version: SimulatedVersion;
  readonly hours: MarketHours;
  readonly intervalSeconds: number;
  /** Observations are at seconds with this remainder modulo the interval. */
  readonly phaseSeconds: number;
  /** First and last second of the stream's life; Infinity while it is not decommissioned. */
  readonly livesFrom: number;
  readonly livesTo: number;
};

const toSeconds = (date: string): number => Date.parse(`${date}T00:00:00Z`) / 1_000;

const toCatalogDate = (date: string | undefined): string | null =>
  date === undefined ? null : formatDate(toSeconds(date) * 1_000);

const statusOf = ({ testing, decommissioned }: Life): StreamStatus => {
  if (decommissioned !== undefined) return 'decommissioned';
  return testing ? 'testing' : 'live';
};

// Includes the network type, so that the networks have different feed IDs.
const createFeedId = (networkType: NetworkType, name: string, version: SimulatedVersion): FeedId => {
  const hash = Hash.keccak256(Hex.fromString(`sealpost simulator ${networkType} ${name}`));
  return parseFeedId(`0x${version.toString(16).padStart(4, '0')}${hash.slice(6)}`);
};

const createStream = (networkType: NetworkType, [pair, kindName, created, life = {}]: Row): SimulatedStream =>
  bindStream(networkType, assets[pair], kindName, created, life);

/** A stream of an asset by its kind; `created` and the dates of its life are days such as 2025-06-02. */
export function bindStream(
  networkType: NetworkType,
  asset: Asset,
  kindName: KindName,
  created: string,
  life: Life = {},
): SimulatedStream {
  const { version, intervalSeconds, hours, assetClass, feedType, serviceLevel }: Kind = kinds[kindName];
  const name = `${asset.baseAsset}/${asset.quoteAsset}-Streams-${kindName}`;
  const stream: Stream = {
    feedId: createFeedId(networkType, name, version),
    name,
    assetName: asset.assetName,
    baseAsset: asset.baseAsset,
    quoteAsset: asset.quoteAsset,
    assetClass,
    feedType,
    attributeType: kindName,
    marketHours: labelOf(hours),
    serviceLevel,
    networkType,
    status: statusOf(life),
    createdAt: formatDate(toSeconds(created) * 1_000),
    expectedDecommissionAt: toCatalogDate(life.expectedDecommission),
    decommissionedAt: toCatalogDate(life.decommissioned),
    hidden: life.hidden ?? false,
  };
  return {
    stream,
    asset,
    version,
    hours,
    intervalSeconds,
    phaseSeconds: keyOf(name) % intervalSeconds,
    livesFrom: toSeconds(created),
    livesTo: life.decommissioned === undefined ? Number.POSITIVE_INFINITY : toSeconds(life.decommissioned),
  };
}

/** Every simulated stream of a network, in catalog order. */
export const createStreams = (networkType: NetworkType): readonly SimulatedStream[] =>
  rows.map((row) => createStream(networkType, row)).sort((a, b) => compareStreams(a.stream, b.stream));

/** The catalog of a network's streams, including hidden ones, in catalog order. */
export const createCatalog = (networkType: NetworkType): readonly Stream[] =>
  createStreams(networkType).map(({ stream }) => stream);
