import { expect, test } from 'vitest';
import { explainClock, splitReason } from './server-status.ts';

test('a clock within the measurement error is in sync', () => {
  expect(explainClock({ aheadMs: 30, errorMs: 4 })).toEqual({ text: 'in sync (±4 ms)', isBad: false });
  expect(explainClock({ aheadMs: -300, errorMs: 400 })).toEqual({ text: 'in sync (±400 ms)', isBad: false });
});

test('a clock that is off by more than the allowed skew is bad', () => {
  expect(explainClock({ aheadMs: 900, errorMs: 4 })).toEqual({
    text: '900 ms behind the server (±4 ms)',
    isBad: false,
  });
  expect(explainClock({ aheadMs: -61_000, errorMs: 4 })).toEqual({
    text: '61 s ahead of the server (±4 ms)',
    isBad: true,
  });
});

test('a reason is split into subject and text', () => {
  expect(splitReason('store: it does not answer')).toEqual({ subject: 'store', text: 'it does not answer' });
  expect(splitReason('Something else')).toEqual({ subject: undefined, text: 'Something else' });
});
