import { signal } from '@preact/signals';
import { type Candle, SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import { createDays, dayFrom, dayStart, fineRange } from './days.ts';
import type { Session } from './session.ts';

const hour = 3_600;
const candle = (timestamp: number, open: bigint, close: bigint): Candle => ({
  timestamp,
  open,
  high: open,
  low: close,
  close,
  reports: 1,
});

test('day: starts at the full hour nearest to 24 h ago', () => {
  expect(dayStart(25 * hour)).toBe(hour);
  expect(dayStart(25 * hour + 1_799)).toBe(hour);
  expect(dayStart(25 * hour + 1_801)).toBe(2 * hour);
});

test('day: from its first hour, or if the stream is younger, from its first minute; gaps break the line', () => {
  const hours = [candle(hour, 10n, 11n), candle(2 * hour, 11n, 12n), candle(5 * hour, 12n, 13n)];
  expect(dayFrom([], undefined, hour)).toBeUndefined();
  expect(dayFrom(hours, undefined, hour)).toEqual({
    first: 10n,
    sinceMs: hour * 1_000,
    isToTheMinute: false,
    isWhole: true,
    points: [
      { ms: hour * 1_000, price: 10n, isAfterGap: false },
      { ms: 2 * hour * 1_000, price: 11n, isAfterGap: false },
      { ms: 3 * hour * 1_000, price: 12n, isAfterGap: false },
      { ms: 6 * hour * 1_000, price: 13n, isAfterGap: true },
    ],
  });
  const candles = [candle(hour + 120, 9n, 10n), candle(hour + 180, 10n, 11n)];
  const late = dayFrom(hours, { candles, resolution: 60, isWhole: false }, 0);
  expect([late?.first, late?.sinceMs, late?.isToTheMinute, late?.isWhole, late?.points.length]).toEqual([
    9n,
    (hour + 120) * 1_000,
    true,
    false,
    4,
  ]);
  expect(dayFrom(hours, { candles, resolution: 300, isWhole: true }, 0)?.isToTheMinute).toBe(false);
  const short = dayFrom([candle(hour, 9n, 11n)], { candles, resolution: 60, isWhole: true }, 0);
  expect(short?.points.map(({ price }) => price)).toEqual([9n, 10n, 11n]);
});

test('day: a short one has minutes, a longer one 5 minutes, within the rate limit', () => {
  expect(fineRange(0, 3 * hour, 26)).toEqual({ from: 0, to: 3 * hour, resolution: 60, isWhole: true });
  expect(fineRange(0, 7 * hour, 26)).toEqual({ from: 0, to: 7 * hour, resolution: 300, isWhole: true });
  expect(fineRange(0, 7 * hour, 100)).toEqual({ from: 0, to: hour - 1, resolution: 60, isWhole: false });
});

type Asked = { readonly feedIds: readonly string[]; readonly resolution: number };

const createBench = (refuse: () => Error | undefined = () => undefined) => {
  const asked: Asked[] = [];
  const client = {
    candlesMany: async (feedIds: readonly string[], { from, resolution }: { from: number; resolution: number }) => {
      asked.push({ feedIds, resolution });
      const refusal = refuse();
      if (refusal !== undefined) throw refusal;
      const of = (feedID: string) => ({ feedID, candles: feedID === 'empty' ? [] : [candle(from, 1n, 2n)] });
      return { streams: feedIds.map(of) };
    },
  };
  const userId = signal<string | undefined>('user');
  const session = { client: signal(client), userId } as unknown as Pick<Session, 'client' | 'userId'>; // of a client, only this is used
  const nowMs = signal(100 * hour * 1_000);
  return { asked, userId, nowMs, days: createDays(session, { nowMs }) };
};

test('days: streams share a request, whose answer is kept for a minute and forgotten on sign-out', async () => {
  const { asked, userId, nowMs, days } = createBench();
  days.load(['one', 'empty']);
  await expect.poll(() => days.of('one').value?.first).toBe(1n);
  expect(days.of('empty').value).toBeUndefined();
  days.load(['one', 'empty', 'two']);
  await expect.poll(() => days.of('two').value?.first).toBe(1n);
  nowMs.value += 61_000;
  days.load(['one']);
  await expect.poll(() => asked.map(({ feedIds }) => feedIds)).toEqual([['one', 'empty'], ['two'], ['one']]);
  userId.value = undefined;
  expect(days.of('one').value).toBeUndefined();
  days.load(['one']);
  expect(asked).toHaveLength(3);
});

test('days: a server without candles of many streams is not asked again', async () => {
  const { asked, days } = createBench(() => new SealpostError('not_supported', 'none'));
  days.load(['one']);
  await expect.poll(() => days.areSupported.value).toBe(false);
  days.load(['two']);
  expect(asked).toHaveLength(1);
});

test('days: after another failure, all that were asked for have failed, and the next call asks again', async () => {
  const many = Array.from({ length: 150 }, (_, i) => `stream ${i}`);
  const { asked, days, userId, nowMs } = createBench(() =>
    asked.length === 1 ? new SealpostError('network_error', 'gone') : undefined,
  );
  expect(days.phaseOf('empty').value).toBe('unknown');
  days.load(['empty', ...many]);
  await expect.poll(() => days.phaseOf('stream 149').value).toBe('failed');
  expect(days.phaseOf('empty').value).toBe('failed');
  await expect
    .poll(() => {
      days.load(['empty', 'stream 149']);
      return days.of('stream 149').value?.first;
    })
    .toBe(1n);
  expect([days.phaseOf('empty').value, days.phaseOf('stream 149').value]).toEqual(['loaded', 'loaded']);
  expect(days.areSupported.value).toBe(true);
  nowMs.value += 1_000;
  userId.value = undefined;
  expect(days.phaseOf('empty').value).toBe('unknown');
});

test('days: one that is known stays when it cannot be loaded again', async () => {
  const { asked, days, nowMs } = createBench(() =>
    asked.length === 2 ? new SealpostError('network_error', 'gone') : undefined,
  );
  days.load(['one']);
  await expect.poll(() => days.of('one').value?.first).toBe(1n);
  nowMs.value += 61_000;
  days.load(['one']);
  await expect.poll(() => asked.length).toBe(2);
  await expect
    .poll(() => {
      days.load(['one']);
      return asked.length;
    })
    .toBe(3);
  expect([days.of('one').value?.first, days.phaseOf('one').value]).toEqual([1n, 'loaded']);
});
