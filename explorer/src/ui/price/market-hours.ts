// When a market usually opens and closes, from the catalog's `marketHours`. Holidays and halts are not in the catalog, so the newest report
// decides whether the market is open now (D197).
import type { CatalogEntry } from '@sealpost/protocol';

/** A session of the week in New York: minutes since Sunday 00:00. It may end after Saturday. */
type Session = { readonly opens: number; readonly closes: number };

const dayMinutes = 1_440;
const weekMinutes = 7 * dayMinutes;
const minutesOf = (day: number, hour: number, minute = 0): number => day * dayMinutes + hour * 60 + minute;

/** From Sunday evening to Friday evening. */
const around = (hour: number): readonly Session[] => [{ opens: minutesOf(0, hour), closes: minutesOf(5, hour) }];

/** What `24/5` means in each asset class. */
const aroundTheClock: Readonly<Record<string, readonly Session[]>> = {
  forex: around(17),
  commodities: around(17),
  equities: around(20),
};

/** The sessions of a stream's market; empty if it never closes, undefined if the catalog does not say. */
const sessionsOf = ({
  marketHours,
  assetClass,
}: Pick<CatalogEntry, 'marketHours' | 'assetClass'>): readonly Session[] | undefined => {
  if (marketHours === '24/7') return [];
  if (marketHours === '24/5') return aroundTheClock[assetClass.toLowerCase()];
  const [, fromHour, fromMinute, toHour, toMinute] = /^(\d{2}):(\d{2})-(\d{2}):(\d{2}) ET M-F$/.exec(marketHours) ?? [];
  if (toMinute === undefined) return undefined;
  return [1, 2, 3, 4, 5].map((day) => ({
    opens: minutesOf(day, Number(fromHour), Number(fromMinute)),
    closes: minutesOf(day, Number(toHour), Number(toMinute)),
  }));
};

const wallFormat = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/New_York',
  hourCycle: 'h23',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

/** The time on a clock in New York, as if it were UTC. */
const toWallMs = (ms: number): number => {
  const parts = new Map(wallFormat.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
};

/** The time at which a clock in New York shows this. The offset of a nearby time is corrected once: it changes on two nights a year. */
const fromWallMs = (wallMs: number): number => {
  const guess = wallMs + (wallMs - toWallMs(wallMs));
  return guess + (wallMs - toWallMs(guess));
};

export type UsualHours = {
  /** Whether the market is usually open now. */
  readonly isOpen: boolean;
  /** The next usual opening. */
  readonly opensMs: number;
  /** The last usual opening and closing. */
  readonly openedMs: number;
  readonly closedMs: number;
};

/**
 * For how long the market of a stream has been open without a report; undefined while it is closed: by its usual hours, or by a report of this
 * session, on a holiday or in a halt. A report from before the opening says nothing about the session.
 */
export function silentMsOf(
  stream: Pick<CatalogEntry, 'marketHours' | 'assetClass'> | undefined,
  newest: { readonly observationsMs: number; readonly isClosed: boolean },
  nowMs: number,
): number | undefined {
  const hours = stream && usualHoursOf(stream, nowMs);
  if (hours?.isOpen === false) return undefined;
  const openedMs = hours?.openedMs ?? Number.NEGATIVE_INFINITY;
  if (newest.isClosed && newest.observationsMs >= openedMs) return undefined;
  return nowMs - Math.max(newest.observationsMs, openedMs);
}

/** The usual hours of a stream's market around a time; undefined if it never closes, or if they are not known. */
export function usualHoursOf(
  stream: Pick<CatalogEntry, 'marketHours' | 'assetClass'>,
  nowMs: number,
): UsualHours | undefined {
  const sessions = sessionsOf(stream) ?? [];
  const wallMs = toWallMs(nowMs);
  const wall = new Date(wallMs);
  const now = minutesOf(wall.getUTCDay(), wall.getUTCHours(), wall.getUTCMinutes());
  if (sessions.length === 0) return undefined;
  const toOpening = sessions.map(({ opens }) => (opens - now + weekMinutes) % weekMinutes || weekMinutes);
  const sinceOpening = sessions.map(({ opens }) => (now - opens + weekMinutes) % weekMinutes);
  const sinceClosing = sessions.map(({ closes }) => (now - closes + weekMinutes) % weekMinutes);
  const minuteMs = 60_000;
  const minuteWallMs = wallMs - (wallMs % minuteMs);
  return {
    isOpen: sessions.some(({ opens, closes }) => now >= opens && now < closes),
    opensMs: fromWallMs(minuteWallMs + Math.min(...toOpening) * minuteMs),
    openedMs: fromWallMs(minuteWallMs - Math.min(...sinceOpening) * minuteMs),
    closedMs: fromWallMs(minuteWallMs - Math.min(...sinceClosing) * minuteMs),
  };
}
