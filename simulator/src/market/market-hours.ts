// When markets are open, in New York time. A trading day may start on the evening before its date (forex at 17:00, equities at 20:00);
// the whole trading day is open or closed with its date.
import { daySeconds } from '@sealpost/protocol';
import { fromNewYork, isNyseHoliday, toNewYork, weekdayOf } from './new-york.ts';

/** The session of a market. Markets without extended hours have only `regular` and `closed`. */
export type MarketSession = 'pre-market' | 'regular' | 'post-market' | 'overnight' | 'closed';

type Hours = {
  /** The catalog's `marketHours`. */
  readonly label: string;
  /** How long before midnight a trading day starts. */
  readonly leadSeconds: number;
  /** Seconds from the start of the trading day; the end is exclusive. */
  readonly opensAt: number;
  readonly closesAt: number;
  readonly keepsHolidays: boolean;
};

const hour = 3_600;
const wholeDay = { opensAt: 0, closesAt: daySeconds } as const;

/** Every kind of market hours; null never closes. */
export const marketHours = {
  always: null,
  forex: { label: '24/5', leadSeconds: 7 * hour, ...wholeDay, keepsHolidays: false },
  'us-equities-extended': { label: '24/5', leadSeconds: 4 * hour, ...wholeDay, keepsHolidays: true },
  'us-equities-regular': {
    label: '09:30-16:00 ET M-F',
    leadSeconds: 0,
    opensAt: 9.5 * hour,
    closesAt: 16 * hour,
    keepsHolidays: true,
  },
  // Values with one strike a day: the market is open for that one second.
  'daily-strike': {
    label: '16:00 ET M-F',
    leadSeconds: 0,
    opensAt: 16 * hour,
    closesAt: 16 * hour + 1,
    keepsHolidays: true,
  },
} as const satisfies Record<string, Hours | null>;

export type MarketHours = keyof typeof marketHours;

/** The catalog's text for these hours. */
export const labelOf = (kind: MarketHours): string => marketHours[kind]?.label ?? '24/7';

type TradingTime = { readonly day: number; readonly secondOfDay: number };

const tradingTimeOf = (hours: Hours, seconds: number): TradingTime => {
  const wall = toNewYork(seconds) + hours.leadSeconds;
  const day = Math.floor(wall / daySeconds);
  return { day, secondOfDay: wall - day * daySeconds };
};

const isTradingDay = (hours: Hours, day: number): boolean => {
  const weekday = weekdayOf(day);
  return weekday !== 0 && weekday !== 6 && !(hours.keepsHolidays && isNyseHoliday(day));
};

/** The last second, up to and including this one, at which the market was open. */
export function lastOpenAt(kind: MarketHours, seconds: number): number {
  const hours: Hours | null = marketHours[kind];
  if (hours === null) return seconds;
  let { day, secondOfDay } = tradingTimeOf(hours, seconds);
  if (isTradingDay(hours, day) && secondOfDay >= hours.opensAt) {
    if (secondOfDay < hours.closesAt) return seconds;
  } else {
    do day -= 1;
    while (!isTradingDay(hours, day));
  }
  return fromNewYork(day * daySeconds + hours.closesAt - 1 - hours.leadSeconds);
}

/** The session at a second. */
export function sessionAt(kind: MarketHours, seconds: number): MarketSession {
  if (lastOpenAt(kind, seconds) !== seconds) return 'closed';
  return kind === 'us-equities-extended' ? extendedSessionAt(seconds) : 'regular';
}

const extendedSessionAt = (seconds: number): MarketSession => {
  const timeOfDay = toNewYork(seconds) % daySeconds;
  if (timeOfDay < 4 * hour || timeOfDay >= 20 * hour) return 'overnight';
  if (timeOfDay < 9.5 * hour) return 'pre-market';
  return timeOfDay < 16 * hour ? 'regular' : 'post-market';
};

/** Market status codes of schema version 11; 0 is unknown and never simulated. */
export const sessionCodes = {
  'pre-market': 1,
  regular: 2,
  'post-market': 3,
  overnight: 4,
  closed: 5,
} as const satisfies Record<MarketSession, number>;

/** Market status of schema versions 4, 8 and 10: 1 closed, 2 open; 0 is unknown and never simulated. */
export const openCodeOf = (session: MarketSession): number => (session === 'closed' ? 1 : 2);
