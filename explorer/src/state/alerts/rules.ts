// What alerts watch for, as values: parsed from what the browser keeps, and evaluated against reports.
import { formatDecimal } from '@sealpost/client';
import { formatPrice } from '../../ui/format.ts';
import { type PriceDigits, splitFixed } from '../../ui/price/digits.ts';
import { percentDecimals } from '../../ui/price-unit.ts';

export type AlertRule =
  /** The price crosses a level, in units of 10^-18; that of a rate is a ratio. `repeats`: again after it has moved back by 0.1 %; otherwise once. */
  | { readonly kind: 'price'; readonly direction: 'above' | 'below'; readonly level: bigint; readonly repeats: boolean }
  /** No report for this many intervals. */
  | { readonly kind: 'stale'; readonly intervals: number }
  /** A report fails verification. */
  | { readonly kind: 'unverified' };

export type Alert = {
  readonly id: string;
  readonly feedId: string;
  readonly rule: AlertRule;
  readonly isPaused: boolean;
  /** Triggers at the next crossing; not before the price was on the other side, or a report arrived. */
  readonly isArmed: boolean;
  /** When it was last triggered, by the server's clock. */
  readonly lastMs: number | undefined;
};

/** `seq` rises with each, also after the history was cleared. */
export type AlertEvent = {
  readonly seq: number;
  readonly feedId: string;
  readonly text: string;
  readonly atMs: number;
};

export type StoredAlerts = { readonly alerts: readonly Alert[]; readonly history: readonly AlertEvent[] };

export const alertsMax = 50;
export const historyMax = 50;
export const intervalsMax = 1_000;
/** A price must move back by a thousandth of the level before the alert triggers again. */
const bandShare = 1_000n;

/** A decimal number with at most 18 decimals as an integer; undefined if it is not one. A comma separates thousands: `1,5` could mean 1.5. */
export function parseLevel(text: string): bigint | undefined {
  const [, sign, whole, fraction = ''] =
    /^([-−]?)([0-9]{1,40}|[0-9]{1,3}(?:,[0-9]{3}){1,12})(?:\.([0-9]{1,18}))?$/.exec(text.trim()) ?? [];
  if (whole === undefined) return undefined;
  const size = BigInt(`${whole.replaceAll(',', '')}${fraction.padEnd(18, '0')}`);
  return sign === '' ? size : -size;
}

/** A percentage with at most 16 decimals as a ratio, like the rates of reports; undefined if it is not one. A “%” after it is optional. */
export function parsePercent(text: string): bigint | undefined {
  const hundredfold = parseLevel(text.trim().replace(/%$/, ''));
  return hundredfold === undefined || hundredfold % 100n !== 0n ? undefined : hundredfold / 100n;
}

/** The alert after a price, and whether it is triggered. */
export function afterPrice(alert: Alert, price: bigint, nowMs: number): readonly [next: Alert, isTriggered: boolean] {
  const { rule, isArmed, lastMs } = alert;
  if (rule.kind !== 'price' || alert.isPaused) return [alert, false];
  const over = rule.direction === 'above' ? price - rule.level : rule.level - price; // how far beyond the level
  if (isArmed)
    return over >= 0n ? [{ ...alert, isArmed: false, isPaused: !rule.repeats, lastMs: nowMs }, true] : [alert, false];
  const size = rule.level < 0n ? -rule.level : rule.level;
  const band = rule.repeats && lastMs !== undefined ? size / bandShare : 0n;
  return over < -band ? [{ ...alert, isArmed: true }, false] : [alert, false];
}

/** The alert at a time, with the age of the stream's newest report. It triggers once, and again after the next report. */
export function afterAge(
  alert: Alert,
  ageMs: number,
  intervalMs: number,
  nowMs: number,
): readonly [next: Alert, isTriggered: boolean] {
  if (alert.rule.kind !== 'stale' || alert.isPaused) return [alert, false];
  const isStale = ageMs > alert.rule.intervals * intervalMs + deliveryMs;
  if (!isStale) return [alert.isArmed ? alert : { ...alert, isArmed: true }, false];
  return alert.isArmed ? [{ ...alert, isArmed: false, lastMs: nowMs }, true] : [alert, false];
}

/** A report that is on its way is not late. */
const deliveryMs = 2_000;

/** Between two alerts about reports of one stream that fail verification. */
const unverifiedEveryMs = 60_000;

export function afterRefusal(alert: Alert, nowMs: number): readonly [next: Alert, isTriggered: boolean] {
  const isSoon = alert.lastMs !== undefined && Math.abs(nowMs - alert.lastMs) < unverifiedEveryMs;
  if (alert.rule.kind !== 'unverified' || alert.isPaused || isSoon) return [alert, false];
  return [{ ...alert, lastMs: nowMs }, true];
}

/** A level with at least as many digits as the stream's prices show; that of a rate in percent. */
const levelText = (level: bigint, digits: PriceDigits | undefined, isRate: boolean): string => {
  if (isRate) return `${formatPrice(level, percentDecimals)} %`;
  if (digits === undefined) return formatPrice(level);
  const { head, tail } = splitFixed(level, { shown: digits.shown, all: digits.shown });
  return `${head}${tail}`;
};

/** The rule in words, with the digits of its stream if they are known: `Price rises to 64,000.00 or above, once`. */
export function ruleText(rule: AlertRule, digits?: PriceDigits, isRate = false): string {
  if (rule.kind === 'unverified') return 'A report fails verification';
  if (rule.kind === 'stale')
    return `No report for ${rule.intervals} ${rule.intervals === 1 ? 'interval' : 'intervals'}`;
  const times = rule.repeats ? 'every time' : 'once';
  const level = levelText(rule.level, digits, isRate);
  const price = isRate ? 'Rate' : 'Price';
  return rule.direction === 'above'
    ? `${price} rises to ${level} or above, ${times}`
    : `${price} falls to ${level} or below, ${times}`;
}

/** Whatever the browser kept, as valid alerts; what is not valid is dropped. */
export function parseStored(stored: unknown): StoredAlerts {
  const { alerts, history } = Object(stored) as Partial<Record<keyof StoredAlerts, unknown>>; // checked below
  return {
    alerts: listOf(alerts).flatMap(parseAlert).slice(0, alertsMax),
    history: listOf(history).flatMap(parseEvent).slice(0, historyMax),
  };
}

/** The same, for JSON, which has no bigint. */
export const toStored = ({ alerts, history }: StoredAlerts): unknown => ({
  alerts: alerts.map((alert) => ({
    ...alert,
    rule: alert.rule.kind === 'price' ? { ...alert.rule, level: formatDecimal(alert.rule.level) } : alert.rule,
  })),
  history,
});

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value.slice(0, 2 * alertsMax) : []);

const parseAlert = (raw: unknown): readonly Alert[] => {
  const { id, feedId, rule, isPaused, isArmed, lastMs } = Object(raw) as Partial<Record<keyof Alert, unknown>>; // checked below
  const parsed = parseRule(rule);
  if (typeof id !== 'string' || id.length > 64 || !isFeedId(feedId) || parsed === undefined) return [];
  return [
    { id, feedId, rule: parsed, isPaused: isPaused === true, isArmed: isArmed === true, lastMs: parseMs(lastMs) },
  ];
};

const parseRule = (raw: unknown): AlertRule | undefined => {
  const { kind, direction, level, repeats, intervals } = Object(raw) as Record<string, unknown>; // checked below
  if (kind === 'unverified') return { kind };
  if (kind === 'stale')
    return isWhole(intervals) && intervals >= 1 && intervals <= intervalsMax ? { kind, intervals } : undefined;
  const parsed = typeof level === 'string' ? parseLevel(level) : undefined;
  if (kind !== 'price' || parsed === undefined || (direction !== 'above' && direction !== 'below')) return undefined;
  return { kind, direction, level: parsed, repeats: repeats === true };
};

const parseEvent = (raw: unknown): readonly AlertEvent[] => {
  const { seq, feedId, text, atMs } = Object(raw) as Partial<Record<keyof AlertEvent, unknown>>; // checked below
  const ms = parseMs(atMs);
  if (!isWhole(seq) || !isFeedId(feedId) || typeof text !== 'string' || ms === undefined) return [];
  return [{ seq, feedId, text: text.slice(0, 200), atMs: ms }];
};

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
export const isFeedId = (value: unknown): value is string =>
  typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value);
const parseMs = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= 8.64e15 ? value : undefined;
