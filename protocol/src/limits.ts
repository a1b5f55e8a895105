// The limits of the API. Separate from the routes, so that a program that needs a limit does not load them.

/** Limits of the API; a deployment may change those marked configurable. */
export const limits = {
  /** Reports per page by default. */
  pageLimitDefault: 10,
  pageLimitMin: 1,
  pageLimitMax: 1_000,
  /** Distinct feed IDs in one request; configurable. A 16 KB request head holds about 230. */
  feedIdsMax: 100,
  /** Longest time range of coverage: a day. */
  coverageSecondsMax: 86_400,
  /** Candles per response: a day of minutes, 24 minutes of seconds. */
  candlesMax: 1_440,
  /** Candles of several streams per response: buckets of the range, for each stream. 100 streams can have 8 days of hours. */
  candlesManyMax: 20_000,
  /** Requests per second, per account and route; configurable. */
  requestsPerSecond: 10,
  /** Anonymous requests per second, per address; configurable. */
  anonymousRequestsPerSecond: 10,
  /** Requests per second without authentication, per address, over all routes and files that need none; configurable. */
  publicRequestsPerSecond: 200,
  /** Failed requests per second, per address, before the server answers 429; configurable. */
  failuresPerSecond: 10,
  /** Live connections open at once, per account; configurable. */
  socketsPerAccount: 20,
  /** Retention of reports in days; configurable. */
  retentionDays: 30,
  /** Bytes of request line and headers. */
  requestHeadBytesMax: 16_384,
} as const;

/** Seconds of a candle. */
export const candleResolutions = [1, 60, 300, 900, 3_600, 14_400, 86_400] as const;

export type CandleResolution = (typeof candleResolutions)[number];
