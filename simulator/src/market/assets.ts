// The table of simulated assets and how their prices move. streams.ts has the streams that report them.

/** A pair and the model of its price. */
export type Asset = {
  readonly assetName: string;
  readonly baseAsset: string;
  readonly quoteAsset: string;
  /** The price that the walk fluctuates around, in units of the quote asset. */
  readonly referencePrice: number;
  /** Prices are multiples of 1 / ticksPerUnit, a power of ten. */
  readonly ticksPerUnit: number;
  /** Standard deviation of a day's return: 0.03 is 3 %. */
  readonly volatilityPerDay: number;
  /** Drift, for assets that accrue interest: 0.04 is about 4 % a year. */
  readonly growthPerYear: number;
  /** Mean spread in basis points. */
  readonly spreadBps: number;
};

const asset = (
  pair: `${string}/${string}`,
  assetName: string,
  referencePrice: number,
  ticksPerUnit: number,
  volatilityPerDay: number,
  spreadBps: number,
  growthPerYear = 0,
): Asset => {
  const [baseAsset = '', quoteAsset = ''] = pair.split('/');
  return { assetName, baseAsset, quoteAsset, referencePrice, ticksPerUnit, volatilityPerDay, growthPerYear, spreadBps };
};

/** Every asset by its pair: name, reference price, ticks per unit, volatility per day, spread, growth per year. */
export const assets = {
  'AAPL/USD': asset('AAPL/USD', 'Apple', 245, 1e4, 0.014, 1.5),
  'AERO/USD': asset('AERO/USD', 'Aerodrome', 1.08, 1e7, 0.055, 30),
  'AVAX/USD': asset('AVAX/USD', 'Avalanche', 28.4, 1e6, 0.042, 4),
  'BNB/USD': asset('BNB/USD', 'BNB', 890, 1e5, 0.025, 1.5),
  'BTC/USD': asset('BTC/USD', 'Bitcoin', 104_500, 1e3, 0.022, 0.6),
  'CAKE/USD': asset('CAKE/USD', 'PancakeSwap', 2.71, 1e7, 0.048, 25),
  'DOGE/USD': asset('DOGE/USD', 'Dogecoin', 0.197, 1e8, 0.045, 5),
  'ETH/USD': asset('ETH/USD', 'Ether', 3_850, 1e4, 0.032, 0.8),
  'EUR/USD': asset('EUR/USD', 'Euro', 1.1375, 1e7, 0.0045, 0.6),
  'FTM/USD': asset('FTM/USD', 'Fantom', 0.62, 1e8, 0.05, 8),
  'HYPE/USD': asset('HYPE/USD', 'Hyperliquid', 39.5, 1e6, 0.05, 6),
  'LINK/USD': asset('LINK/USD', 'Chainlink', 18.6, 1e6, 0.04, 3),
  'LTC/USD': asset('LTC/USD', 'Litecoin', 101.3, 1e6, 0.035, 3),
  'NWBF/USD': asset('NWBF/USD', 'Northwind Bond Fund', 10.42, 1e6, 0.002, 5, 0.035),
  'NWTF/USD': asset('NWTF/USD', 'Northwind Treasury Fund', 104.18, 1e6, 0.00005, 1, 0.042),
  'SOFR/USD': asset('SOFR/USD', 'Secured Overnight Financing Rate', 0.0428, 1e6, 0.004, 1),
  'SOL/USD': asset('SOL/USD', 'Solana', 186, 1e6, 0.038, 1.5),
  'SUI/USD': asset('SUI/USD', 'Sui', 2.64, 1e7, 0.05, 5),
  'TSLA/USD': asset('TSLA/USD', 'Tesla', 402, 1e4, 0.03, 2),
  'USD/JPY': asset('USD/JPY', 'US dollar', 151.8, 1e5, 0.005, 0.6),
  'XAU/USD': asset('XAU/USD', 'Gold', 3_960, 1e4, 0.009, 1.2),
  'XRP/USD': asset('XRP/USD', 'XRP', 2.48, 1e7, 0.04, 3),
  'wstETH/ETH': asset('wstETH/ETH', 'Wrapped staked Ether', 1.1912, 1e9, 0, 1, 0.029),
} as const satisfies Record<string, Asset>;

/** A pair in the table. */
export type Pair = keyof typeof assets;
