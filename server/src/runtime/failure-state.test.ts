import { expect, test } from 'vitest';
import { createFailureState } from './failure-state.ts';

const open = (attemptsMin = 1) => {
  const told: unknown[] = [];
  const clock = { ms: 5_000 };
  const state = createFailureState<string>({
    graceMs: 10_000,
    attemptsMin,
    began: (cause) => void told.push(['began', cause]),
    continued: (cause, isNews) => void told.push([isNews ? 'news' : 'continued', cause]),
    ended: (seconds) => void told.push(['ended', seconds]),
    nowMs: () => clock.ms,
  });
  return { ...state, told, clock };
};

test('failure state: it begins after the grace and the attempts, tells each later cause, and ends with the time since the first failure', () => {
  const { failed, worked, cause, told, clock } = open(3);
  failed('one');
  clock.ms += 10_000;
  failed('two');
  expect([told, cause()]).toEqual([[], undefined]);
  failed('three');
  failed('four');
  expect(cause()).toBe('four');
  clock.ms += 500;
  worked();
  worked();
  expect(told).toEqual([
    ['began', 'three'],
    ['continued', 'four'],
    ['ended', 10.5],
  ]);
  expect(cause()).toBeUndefined();
});

test('failure state: another cause is news, once a minute at most; the same one is not, however long it lasts', () => {
  const { failed, told, clock } = open();
  failed('away');
  clock.ms += 10_000;
  failed('away');
  for (let i = 0; i < 1_000; i += 1) {
    clock.ms += 1_000;
    failed('away');
  }
  failed('full');
  for (let i = 0; i < 120; i += 1) {
    failed(i % 2 === 0 ? 'away' : 'full');
    clock.ms += 1_000;
  }
  expect(told.filter((one) => (one as string[])[0] !== 'continued')).toEqual([
    ['began', 'away'],
    ['news', 'full'],
    ['news', 'away'],
  ]);
});

test('failure state: once closed it tells nothing', () => {
  const { failed, worked, close, told, clock } = open();
  failed('away');
  close();
  clock.ms += 60_000;
  failed('away');
  worked();
  expect(told).toEqual([]);
});
