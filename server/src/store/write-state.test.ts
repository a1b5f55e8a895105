import { expect, onTestFinished, test, vi } from 'vitest';
import { StoreError } from './store.ts';
import type { StoreEvent } from './store-event.ts';
import { createWriteState } from './write-state.ts';

const open = (probe: () => Promise<unknown> = async () => {}) => {
  const events: StoreEvent[] = [];
  const clock = { ms: 1_000 };
  const state = createWriteState({
    part: 'reports',
    tell: (event) => void events.push(event),
    probe,
    nowMs: () => clock.ms,
    probeEveryMs: 1,
  });
  return { ...state, events, clock };
};

const full = new StoreError('store_disk_full', 'The disk is full.');
const failed = new StoreError('store_write_failed', 'It failed.');

test('writing: a stop is reported once with its first reason, a resumption once with its duration', () => {
  const { failed: fail, worked, current, events, clock, close } = open();
  worked();
  expect(events).toEqual([]);
  fail(full);
  clock.ms = 3_500;
  fail(failed);
  expect(current()).toEqual({ part: 'reports', code: 'store_write_failed', reason: 'It failed.' });
  worked();
  worked();
  expect(current()).toBeUndefined();
  expect(events).toEqual([
    { kind: 'writingStopped', part: 'reports', code: 'store_disk_full', reason: 'The disk is full.' },
    { kind: 'writingResumed', part: 'reports', seconds: 2.5 },
  ]);
  close();
});

test('writing: a clock that is set meanwhile does not change for how long writing had stopped', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000 });
  onTestFinished(() => void vi.useRealTimers());
  const events: StoreEvent[] = [];
  const {
    failed: fail,
    worked,
    close,
  } = createWriteState({
    part: 'reports',
    tell: (event) => void events.push(event),
    probe: async () => {},
  });
  fail(full);
  vi.setSystemTime(3_600_000);
  worked();
  expect(events.at(-1)).toMatchObject({ kind: 'writingResumed', seconds: expect.toSatisfy((s) => s >= 0 && s < 600) });
  close();
});

test('writing: it is retried, one attempt at a time, until it works', async () => {
  let probes = 0;
  const state = open(async () => {
    probes += 1;
    if (probes < 3) throw failed;
    state.worked();
  });
  state.failed(failed);
  while (state.current() !== undefined) await new Promise((resolve) => setImmediate(resolve));
  expect(probes).toBe(3);
  expect(state.events.map(({ kind }) => kind)).toEqual(['writingStopped', 'writingResumed']);
});

test('writing: a place that another writer took is not regained', () => {
  const { failed: fail, worked, current, events } = open();
  fail(full);
  fail(new StoreError('store_taken_over', 'Process 7 has taken over.'));
  worked();
  fail(full);
  expect(current()).toMatchObject({ code: 'store_taken_over', reason: 'Process 7 has taken over.' });
  expect(events.map((event) => event.kind === 'writingStopped' && event.code)).toEqual([
    'store_disk_full',
    'store_taken_over',
  ]);
});

test('writing: once closed it neither reports nor retries, whatever a write in progress says', async () => {
  let probes = 0;
  const {
    failed: fail,
    worked,
    current,
    events,
    close,
  } = open(async () => {
    probes += 1;
  });
  fail(full);
  close();
  fail(failed);
  worked();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(probes).toBe(0);
  expect(events.map(({ kind }) => kind)).toEqual(['writingStopped']);
  expect(current()?.code).toBe('store_disk_full');
});
