import { expect, test } from 'vitest';
import {
  type Alert,
  type AlertRule,
  afterAge,
  afterPrice,
  afterRefusal,
  parseLevel,
  parsePercent,
  parseStored,
  ruleText,
  toStored,
} from './rules.ts';

const one = 10n ** 18n;
const feedId = `0x${'0'.repeat(64)}`;
const alertOf = (rule: AlertRule): Alert => ({
  id: 'a',
  feedId,
  rule,
  isPaused: false,
  isArmed: rule.kind === 'unverified',
  lastMs: undefined,
});
const above = (repeats: boolean): AlertRule => ({ kind: 'price', direction: 'above', level: 100n * one, repeats });

/** Which of the prices trigger. */
const triggering = (rule: AlertRule, prices: readonly number[]): readonly number[] => {
  let alert = alertOf(rule);
  return prices.filter((price, i) => {
    const [next, isTriggered] = afterPrice(alert, (BigInt(Math.round(price * 1_000)) * one) / 1_000n, i);
    alert = next;
    return isTriggered;
  });
};

test('price: triggers at a crossing, not while the price is beyond the level already', () => {
  expect(triggering(above(false), [101, 102, 99, 100, 99, 101])).toEqual([100]);
  expect(triggering({ kind: 'price', direction: 'below', level: 100n * one, repeats: false }, [99, 101, 98])).toEqual([
    98,
  ]);
});

test('price: an alert that triggers once and was resumed needs only the other side of the level', () => {
  const [armed] = afterPrice({ ...alertOf(above(false)), lastMs: 1 }, (9_999n * one) / 100n, 2);
  expect(armed.isArmed).toBe(true);
});

test('price: every time, but only after it has moved back by 0.1 %', () => {
  expect(triggering(above(true), [99, 100.1, 99.95, 100.2, 99.8, 100.3])).toEqual([100.1, 100.3]);
  expect(
    triggering({ kind: 'price', direction: 'below', level: -5n * one, repeats: true }, [-4, -5, -4.999, -5, -4.9, -6]),
  ).toEqual([-5, -6]);
});

test('stale: triggers once, and again only after a report', () => {
  let alert = alertOf({ kind: 'stale', intervals: 3 });
  const told = [0, 5_000, 5_001, 9_000, 500, 6_000].filter((ageMs) => {
    const [next, isTriggered] = afterAge(alert, ageMs, 1_000, 7);
    alert = next;
    return isTriggered;
  });
  expect(told).toEqual([5_001, 6_000]);
});

test('unverified: at most once a minute', () => {
  const [first, isFirst] = afterRefusal(alertOf({ kind: 'unverified' }), 1_000_000);
  expect([isFirst, afterRefusal(first, 1_059_999)[1], afterRefusal(first, 1_060_000)[1]]).toEqual([true, false, true]);
});

test('level: exact to 18 decimals, with thousands separators and signs', () => {
  expect(parseLevel(' 64,120.55 ')).toBe(64_120_550_000_000_000_000_000n);
  expect(parseLevel('-0.000000000000000001')).toBe(-1n);
  for (const text of ['', 'x', '1.', '1e5', '0.0000000000000000001', '1 2', '1,5', '1,2345', '12345,678'])
    expect(parseLevel(text)).toBeUndefined();
});

test('level of a rate: a percentage, exact to 16 decimals, kept as a ratio', () => {
  expect(parsePercent(' 4.1814 ')).toBe(41_814_000_000_000_000n);
  expect([parsePercent('-0.25 %'), parsePercent('1,000%')]).toEqual([-2_500_000_000_000_000n, 10n * one]);
  expect(parsePercent('0.0000000000000001')).toBe(1n);
  for (const text of ['', '%', 'x', '4,5', '4 % %', '0.00000000000000001']) expect(parsePercent(text)).toBeUndefined();
});

test('kept: what was stored is read again; anything else is dropped, and the number is bounded', () => {
  const alerts = [above(true), { kind: 'stale', intervals: 5 } as const, { kind: 'unverified' } as const].map(alertOf);
  const kept = { alerts, history: [{ seq: 1, feedId, text: 'crossed', atMs: 5 }] };
  expect(parseStored(JSON.parse(JSON.stringify(toStored(kept))))).toEqual(kept);
  for (const wrong of [undefined, null, 7, 'x', [], { alerts: [{}, null, { id: 'a', feedId: '0x' }], history: [7] }])
    expect(parseStored(wrong)).toEqual({ alerts: [], history: [] });
  const many = {
    alerts: Array.from({ length: 99 }, () => alerts[1]),
    history: Array.from({ length: 99 }, () => kept.history[0]),
  };
  expect([parseStored(many).alerts.length, parseStored(many).history.length]).toEqual([50, 50]);
});

test('rules in words', () => {
  expect(ruleText(above(false))).toBe('Price rises to 100 or above, once');
  const below = { kind: 'price', direction: 'below', level: 6_000n * one + one / 1_000n, repeats: true } as const;
  expect(ruleText(below)).toBe('Price falls to 6,000.001 or below, every time');
  expect(ruleText(below, { shown: 2, all: 5 })).toBe('Price falls to 6,000.001 or below, every time');
  expect(ruleText({ ...below, level: 6_000n * one }, { shown: 4, all: 8 })).toBe(
    'Price falls to 6,000.0000 or below, every time',
  );
  expect(ruleText({ kind: 'stale', intervals: 1 })).toBe('No report for 1 interval');
  const rate = { ...below, level: 41_814_000_000_000_000n };
  expect(ruleText(rate, { shown: 6, all: 18 }, true)).toBe('Rate falls to 4.1814 % or below, every time');
});
