// How fresh the store is: the age of the newest observation, which streams are behind, and when that is too much: by a stream's interval, and by the hours of its market in
// the catalog (D197). Holidays and halts are not in the catalog: reports have them as their market status.
import { decodeFullReport, decodeReportBody, type Stream } from '@sealpost/protocol';
import type { LatestReport, ReportStore } from './store.ts';

/** A live stream is behind when its newest observation is older than this. */
const behindAfterMs = 60_000;
/** A stream may be silent for this long, or for this many of its intervals. */
const silentMaxMs = 60_000;
const silentIntervalsMax = 3;
/** Streams per slice; other work runs in between. */
const sliceSize = 50;

export type Freshness = {
  /** Age of the newest observation of all streams; undefined when there is none. */
  readonly lagMs: number | undefined;
  /** Has every stream been silent for longer than the one with the shortest interval may be? Closed markets and streams without reports do not count. */
  readonly isLate: boolean;
  /** Live streams whose newest observation is too old, or that have none. */
  readonly behind: readonly Stream[];
};

/** How long a stream has been silent while its market was open, and how long it may be. `Infinity`: it has no report. */
export type Silence = { readonly silentMs: number; readonly maxMs: number };

type Reports = Pick<ReportStore, 'newestMs' | 'latest'>;

/**
 * The silence of a stream; undefined while its market is closed, by its usual hours or by a report of this session. What its interval is, the window of
 * its newest report says (D273).
 */
export function silenceOf(reports: Reports, stream: Stream, nowMs: number): Silence | undefined {
  const newestMs = reports.newestMs(stream.feedId);
  if (newestMs !== undefined && nowMs - newestMs <= silentMaxMs)
    return { silentMs: Math.max(0, nowMs - newestMs), maxMs: silentMaxMs };
  const openedMs = openedMsOf(stream, nowMs);
  if (openedMs === undefined) return undefined;
  if (newestMs === undefined) return { silentMs: Number.POSITIVE_INFINITY, maxMs: silentMaxMs };
  const { intervalMs, isClosed } = describeNewest(() => reports.latest(stream.feedId));
  if (isClosed && newestMs >= openedMs) return undefined;
  const maxMs = Math.max(silentMaxMs, silentIntervalsMax * intervalMs);
  return { silentMs: nowMs - Math.max(newestMs, openedMs), maxMs };
}

/** One that is damaged, or that this release cannot decode, says neither. */
const describeNewest = (latest: () => LatestReport | undefined) => {
  try {
    const newest = latest();
    if (newest === undefined) return { intervalMs: 0, isClosed: false };
    const { fullReport } = JSON.parse(newest.json).report as { fullReport: `0x${string}` }; // rendered by us
    const body = decodeReportBody(decodeFullReport(fullReport).body);
    const closedCode = body.version === 11 ? 5 : 1;
    const isClosed = 'marketStatus' in body && body.marketStatus === closedCode;
    return { intervalMs: newest.observationsMs - newest.validFromMs, isClosed };
  } catch {
    return { intervalMs: 0, isClosed: false };
  }
};

/** Looks at the newest report of each stream, in slices, so that no request waits for many streams. */
export async function readFreshness(reports: Reports, streams: Iterable<Stream>, nowMs: number): Promise<Freshness> {
  const behind: Stream[] = [];
  let newestMs: number | undefined;
  let [silentMs, maxMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let seen = 0;
  for (const stream of streams) {
    if (++seen % sliceSize === 0) await new Promise((resolve) => setImmediate(resolve));
    const observedMs = reports.newestMs(stream.feedId);
    if (observedMs !== undefined) newestMs = Math.max(newestMs ?? 0, observedMs);
    if (stream.status !== 'live') continue;
    if (observedMs === undefined || nowMs - observedMs > behindAfterMs) behind.push(stream);
    const silence = observedMs === undefined ? undefined : silenceOf(reports, stream, nowMs);
    silentMs = Math.min(silentMs, silence?.silentMs ?? silentMs);
    maxMs = Math.min(maxMs, silence?.maxMs ?? maxMs);
  }
  const lagMs = newestMs === undefined ? undefined : Math.max(0, nowMs - newestMs);
  return { lagMs, isLate: silentMs > maxMs, behind };
}

/** Why reports are late; undefined when they are not. Where there is no report at all, there is nothing to be late. */
export const lateReason = ({ lagMs = 0, isLate }: Pick<Freshness, 'lagMs' | 'isLate'>): string | undefined =>
  isLate ? `the newest report is ${Math.round(lagMs / 1_000)} s old` : undefined;

/** Minutes of a week since Sunday 00:00. */
type Session = { readonly opens: number; readonly closes: number };

const minuteMs = 60_000;
const dayMinutes = 1_440;

/** `24/5` by asset class: from Sunday to Friday at this hour. */
const weekHours: Readonly<Record<string, number>> = { forex: 17, commodities: 17, equities: 20 };

/** None where the market never closes, or its hours are not known. */
const sessionsOf = ({ marketHours, assetClass }: Stream): readonly Session[] => {
  const hour = marketHours === '24/5' ? weekHours[assetClass.toLowerCase()] : undefined;
  if (hour !== undefined) return [{ opens: hour * 60, closes: 5 * dayMinutes + hour * 60 }];
  const [, ...digits] = /^(\d{2}):(\d{2})-(\d{2}):(\d{2}) ET M-F$/.exec(marketHours) ?? [];
  const [fromHour = 0, fromMinute = 0, toHour, toMinute = 0] = digits.map(Number);
  if (toHour === undefined) return [];
  return [1, 2, 3, 4, 5].map((day) => ({
    opens: day * dayMinutes + fromHour * 60 + fromMinute,
    closes: day * dayMinutes + toHour * 60 + toMinute,
  }));
};

const wallFormat = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/New_York',
  hourCycle: 'h23',
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
});
const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

const weekMinuteOf = (ms: number): number => {
  const parts = new Map(wallFormat.formatToParts(ms).map(({ type, value }) => [type, value]));
  const day = weekdays.indexOf(parts.get('weekday') ?? '');
  return day * dayMinutes + Number(parts.get('hour')) * 60 + Number(parts.get('minute'));
};

/** When the session began that a market usually is in; undefined while it is usually closed, and -Infinity where it never closes or its hours are not known. */
const openedMsOf = (stream: Stream, nowMs: number): number | undefined => {
  const sessions = sessionsOf(stream);
  if (sessions.length === 0) return Number.NEGATIVE_INFINITY;
  const now = weekMinuteOf(nowMs);
  const session = sessions.find(({ opens, closes }) => now >= opens && now < closes);
  // No session spans the night from Saturday to Sunday, in which clocks are set.
  return session && nowMs - (nowMs % minuteMs) - (now - session.opens) * minuteMs;
};
