import { expect, test } from 'vitest';
import type { StoreEvent } from '../store-event.ts';
import { createReplicaUse } from './replicas.ts';

const open = () => {
  const events: StoreEvent[] = [];
  const clock = { ms: 5_000 };
  const use = createReplicaUse(
    'postgres://db-2/prices',
    (event) => void events.push(event),
    () => clock.ms,
  );
  const fail = (times: number, reason = 'It is behind the primary.') => {
    for (let i = 0; i < times; i += 1) use.failed(reason);
  };
  return { ...use, fail, events, clock };
};

test('replica use: unused is reported once, with the last reason, and use again once, with how long it was unused', () => {
  const { fail, worked, events, clock } = open();
  fail(10);
  expect(events).toEqual([]);
  clock.ms += 10_000;
  fail(3, 'It does not answer.');
  expect(events).toEqual([{ kind: 'replicaUnused', replica: 'postgres://db-2/prices', reason: 'It does not answer.' }]);
  clock.ms += 500;
  worked();
  worked();
  expect(events.slice(1)).toEqual([{ kind: 'replicaUsed', replica: 'postgres://db-2/prices', seconds: 10.5 }]);
});

test('replica use: neither a few failures far apart, nor many between reads that work, are reported', () => {
  const { fail, worked, events, clock } = open();
  fail(2);
  clock.ms += 3_600_000;
  fail(2);
  worked();
  for (let i = 0; i < 20; i += 1) {
    clock.ms += 9_999;
    fail(10);
    worked();
  }
  expect(events).toEqual([]);
});
