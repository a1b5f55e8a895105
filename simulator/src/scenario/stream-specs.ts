// The streams of a sandbox: chosen from the simulated ones by name, changed in some fields, or made up.
import { formatDate, type NetworkType } from '@sealpost/protocol';
import { type Asset, assets } from '../market/assets.ts';
import { bindStream, createStreams, type KindName, kindNames, type SimulatedStream } from '../streams.ts';

/** A stream; fields that are absent are those of the simulated asset, or of the kind. */
export type StreamSpec = {
  /** Base and quote asset, such as ETH/USD. */
  readonly pair: string;
  readonly kind: KindName;
  readonly assetName?: string;
  /** The price that the walk fluctuates around. */
  readonly price?: number;
  /** Standard deviation of a day's return: 0.03 is 3 %. */
  readonly volatilityPerDay?: number;
  readonly spreadBps?: number;
  /** Prices have this many decimals. */
  readonly decimals?: number;
  readonly intervalSeconds?: number;
  readonly hidden?: boolean;
};

/** Assets that sandboxes know besides the simulated ones, by pair: name and price. They are pegged, so that they can lose their peg. */
const peggedAssets: Readonly<Record<string, string>> = {
  'DAI/USD': 'Dai',
  'PYUSD/USD': 'PayPal USD',
  'USDC/USD': 'USD Coin',
  'USDT/USD': 'Tether',
};

const pegged = (pair: string, assetName: string): Asset => ({
  ...emptyAsset(pair),
  assetName,
  referencePrice: 1,
  ticksPerUnit: 1e8,
  volatilityPerDay: 0.0002,
  spreadBps: 0.5,
});

const emptyAsset = (pair: string): Asset => {
  const [baseAsset = '', quoteAsset = ''] = pair.split('/');
  return {
    assetName: baseAsset,
    baseAsset,
    quoteAsset,
    referencePrice: 1,
    ticksPerUnit: 1e8,
    volatilityPerDay: 0.03,
    growthPerYear: 0,
    spreadBps: 2,
  };
};

/** The catalog of a sandbox that names none: one of each market that behaves differently, at few reports per second. */
export const defaultSpecs: readonly StreamSpec[] = [
  { pair: 'ETH/USD', kind: 'CexPrice' },
  { pair: 'BTC/USD', kind: 'CexPrice', intervalSeconds: 5 },
  { pair: 'LINK/USD', kind: 'CexPrice', intervalSeconds: 10 },
  { pair: 'USDC/USD', kind: 'CexPrice', intervalSeconds: 15 },
  { pair: 'AAPL/USD', kind: 'EquityPrice', intervalSeconds: 15 },
  { pair: 'EUR/USD', kind: 'ForexPrice', intervalSeconds: 15 },
];

/** Streams of one sandbox at most. */
export const specsMax = 1_000;

const pairPattern = /^[A-Za-z0-9.]{1,20}\/[A-Za-z0-9.]{1,20}$/;

/** Reads a name: a pair (`ETH/USD`), a pair with a price (`ETH/USD=4200`), or a full name (`ETH/USD-Streams-TWAP`). Throws a RangeError for others. */
export function parseSpecName(name: string): StreamSpec {
  const [, pair = '', kind, price] = /^([^=-]+)(?:-Streams-(\w+))?(?:=(.*))?$/.exec(name.trim()) ?? [];
  if (!pairPattern.test(pair))
    throw new RangeError(`"${name}" is not a pair such as ETH/USD, ETH/USD=4200 or ETH/USD-Streams-TWAP.`);
  const known = findPair(pair);
  if (kind !== undefined && !isKind(kind))
    throw new RangeError(`"${name}" has the kind ${kind}, expected one of ${kindNames.join(', ')}.`);
  const number = price === undefined ? undefined : parsePrice(name, price);
  if (known === undefined && number === undefined)
    throw new RangeError(`${pair} is not a simulated asset. Give it a price: ${pair}=1.`);
  return {
    pair: known?.pair ?? pair,
    kind: kind ?? known?.kind ?? 'CexPrice',
    ...(number !== undefined && { price: number }),
  };
}

const parsePrice = (name: string, text: string): number => {
  const price = /^[0-9]{1,12}(\.[0-9]{1,18})?$/.test(text) ? Number(text) : Number.NaN;
  if (price >= 1e-9 && price <= 1e9) return price; // as in a scenario file
  throw new RangeError(`"${name}" has the price "${text}", expected a number from 1e-9 to 1000000000.`);
};

const isKind = (kind: string): kind is KindName => (kindNames as readonly string[]).includes(kind); // only widens it

/** The pair as the tables spell it, and the kind of its first stream. */
const findPair = (pair: string): { readonly pair: string; readonly kind: KindName } | undefined => {
  const same = (other: string): boolean => other.toLowerCase() === pair.toLowerCase();
  const found = [...Object.keys(assets), ...Object.keys(peggedAssets)].find(same);
  if (found === undefined) return undefined;
  const [first] = createStreams('testnet').filter(({ stream }) => same(`${stream.baseAsset}/${stream.quoteAsset}`));
  return { pair: found, kind: (first?.stream.attributeType as KindName | undefined) ?? 'CexPrice' }; // written from the table's keys
};

/** Every stream of the simulated catalog. */
export const allSpecs = (): readonly StreamSpec[] =>
  createStreams('testnet')
    .filter(({ stream }) => stream.status !== 'decommissioned')
    .map(({ stream }) => ({
      pair: `${stream.baseAsset}/${stream.quoteAsset}`,
      kind: stream.attributeType as KindName, // written from the table's keys
      ...(stream.hidden && { hidden: true }),
    }));

/** The stream of a spec. It was created before `startSecond`, and reports from any time on. */
export function createSpecStream(networkType: NetworkType, spec: StreamSpec, startSecond: number): SimulatedStream {
  const bound = bindStream(networkType, assetOf(spec), spec.kind, '2024-01-15', spec.hidden ? { hidden: true } : {});
  const intervalSeconds = spec.intervalSeconds ?? bound.intervalSeconds;
  const createdMs = Math.min(bound.livesFrom, startSecond) * 1_000;
  return {
    ...bound,
    stream: { ...bound.stream, createdAt: formatDate(createdMs) },
    intervalSeconds,
    phaseSeconds: bound.phaseSeconds % intervalSeconds,
    livesFrom: 0,
  };
}

const assetOf = (spec: StreamSpec): Asset => {
  const known = (assets as Readonly<Record<string, Asset>>)[spec.pair]; // pairs of others are not in it
  const name = peggedAssets[spec.pair];
  const base = known ?? (name === undefined ? emptyAsset(spec.pair) : pegged(spec.pair, name));
  const { assetName, price, volatilityPerDay, spreadBps } = spec;
  const decimals = spec.decimals ?? (known === undefined && price !== undefined ? decimalsFor(price) : undefined);
  return {
    ...base,
    ...(assetName !== undefined && { assetName }),
    ...(price !== undefined && { referencePrice: price }),
    ...(volatilityPerDay !== undefined && { volatilityPerDay }),
    ...(spreadBps !== undefined && { spreadBps }),
    ...(decimals !== undefined && { ticksPerUnit: 10 ** decimals }),
  };
};

const decimalsFor = (price: number): number => {
  if (price >= 1_000) return 4;
  return price >= 1 ? 6 : 8;
};
