import { expect, test } from 'vitest';
import type { StoreEvent } from '../store-event.ts';
import { createFollowState } from './change-feed.ts';

const open = () => {
  const events: StoreEvent[] = [];
  const clock = { ms: 5_000 };
  const state = createFollowState(
    (event) => void events.push(event),
    () => clock.ms,
  );
  return { ...state, fail: (reason: string) => state.failed(new Error(reason)), events, clock };
};

test('following: failures for 10 s are news once, with the last reason, and a look that works is reported with the duration', () => {
  const { fail, worked, events, clock } = open();
  fail('one');
  clock.ms += 9_999;
  fail('two');
  expect(events).toEqual([]);
  clock.ms += 1;
  fail('three');
  fail('four');
  expect(events).toEqual([
    { kind: 'followingStopped', reason: 'three', isNews: true },
    { kind: 'followingStopped', reason: 'four', isNews: false },
  ]);
  clock.ms += 500;
  worked();
  worked();
  expect(events.slice(2)).toEqual([{ kind: 'followingResumed', seconds: 10.5 }]);
});

test('following: failures with a look between them that works are not reported, nor is a look that ends after the close', () => {
  const { fail, worked, close, events, clock } = open();
  for (let i = 0; i < 5; i += 1) {
    fail('busy');
    clock.ms += 9_000;
    worked();
    clock.ms += 9_000;
  }
  fail('busy');
  close();
  clock.ms += 60_000;
  fail('The store is closed.');
  expect(events).toEqual([]);
});
