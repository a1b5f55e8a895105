import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from '../store/open.ts';
import { CorruptRecordError, type ReportStore, type Store, type StoredReport } from '../store/store.ts';
import { createCutOrder } from './cut-order.fixture.ts';
import { type Burst, type LiveDelivery, openLiveDelivery } from './live-delivery.ts';
import type { LiveForm } from './message.ts';

const [first, exact] = [secondStream(1), millisecondStream(2)];
const { report } = await createSignedReports('delivery');
const now = 1_763_200_000;
let folder: string;
let store: Store;
let delivery: LiveDelivery | undefined;
const troubles: unknown[] = [];
const delivered: [LiveForm, number][] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-live-'));
  store = await openStore(folder, 'write');
  troubles.length = 0;
  delivered.length = 0;
});
afterEach(async () => {
  delivery?.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const open = async (reports: Partial<ReportStore> = {}): Promise<LiveDelivery> => {
  delivery = await openLiveDelivery({
    reports: { ...store.reports, ...reports },
    eventIds: { encode: String },
    feedIds: [first, exact],
    onDelivered: (form, count) => delivered.push([form, count]),
    onTrouble: (error) => troubles.push(error),
  });
  return delivery;
};

/** Notes what is delivered. */
const subscribe = (to: LiveDelivery, form: LiveForm, ...feedIds: readonly FeedId[]) => {
  const positions: number[] = [];
  const bursts: Burst[] = [];
  const stop = to.subscribe(form, feedIds, (burst) => {
    bursts.push(burst);
    positions.push(...burst.positions);
  });
  return { positions, bursts, stop };
};
const at = (...seconds: readonly number[]): readonly StoredReport[] =>
  seconds.map((offset) => report(first, now + offset, now + offset));

test('live delivery: a report that is stored after its position was read, and before it listens, is delivered', async () => {
  const { position, appendedAfter } = store.reports;
  const running = await open({
    position: async () => {
      const read = await position();
      await store.reports.append(at(1));
      return read;
    },
    appendedAfter: async (...args) => {
      await new Promise((resolve) => setImmediate(resolve)); // as from a database
      return appendedAfter(...args);
    },
  });
  const { positions } = subscribe(running, 'seconds', first);
  await expect.poll(() => positions, { timeout: 2_000 }).toEqual([1]);
});

test('live delivery: earlier reports are not delivered; what is stored together arrives together', async () => {
  await store.reports.append(at(1, 2));
  const running = await open();
  const [one, none] = [subscribe(running, 'seconds', first), subscribe(running, 'seconds', exact)];
  await store.reports.append(at(3, 4));
  await expect.poll(() => one.positions).toEqual([3, 4]);
  const [burst] = one.bursts;
  expect(one.bursts).toHaveLength(1);
  expect(burst?.bytes).toBe(Buffer.concat(burst?.messages ?? []).length);
  expect(burst?.whole).toBeUndefined();
  expect(none.positions).toEqual([]);
  expect(delivered).toEqual([['seconds', 2]]);
  expect(running.position()).toBe(4);
});

test('live delivery: subscribers of the same streams, in any order, share the bytes of a burst in one piece; others share its messages', async () => {
  const running = await open();
  const same = [
    subscribe(running, 'seconds', first, exact),
    subscribe(running, 'seconds', exact, first),
    subscribe(running, 'seconds', first, exact),
  ];
  const other = subscribe(running, 'seconds', first);
  const inMilliseconds = subscribe(running, 'milliseconds', first, exact);
  const ms = now * 1_000;
  await store.reports.append([...at(1), report(exact, ms, ms), ...at(2)]);
  await expect.poll(() => inMilliseconds.positions).toEqual([1, 2, 3]);
  const [burst] = same[0]?.bursts ?? [];
  expect(same.map(({ bursts }) => bursts[0] === burst)).toEqual([true, true, true]);
  expect(burst?.whole?.equals(Buffer.concat(burst.messages))).toBe(true);
  expect(burst?.positions).toEqual([1, 2, 3]);
  expect(other.bursts[0]?.messages.map((message) => burst?.messages.indexOf(message))).toEqual([0, 2]);
  expect(inMilliseconds.bursts[0]?.messages.some((message) => burst?.messages.includes(message))).toBe(false);
});

test('live delivery: a late report goes to events alone, also when the newer one was stored before the delivery began', async () => {
  await store.reports.append(at(10));
  const running = await open();
  const [socket, events] = [subscribe(running, 'seconds', first), subscribe(running, 'event', first)];
  await store.reports.append(at(8, 12, 11, 13));
  await expect.poll(() => events.positions).toEqual([2, 3, 4, 5]);
  expect(socket.positions).toEqual([3, 5]);
});

test('live delivery: in seconds one report of a second goes out, in milliseconds all', async () => {
  const running = await open();
  const [seconds, milliseconds] = [subscribe(running, 'seconds', exact), subscribe(running, 'milliseconds', exact)];
  const ms = now * 1_000;
  await store.reports.append([100, 600, 1_100].map((offset) => report(exact, ms + offset, ms + offset)));
  await expect.poll(() => milliseconds.positions).toEqual([1, 2, 3]);
  expect(seconds.positions).toEqual([1, 3]);
});

test('live delivery: a stopped subscriber gets nothing more, and one that follows it in its place does', async () => {
  const running = await open();
  const [gone, alone, there] = [
    subscribe(running, 'seconds', first),
    subscribe(running, 'event', first),
    subscribe(running, 'seconds', first),
  ];
  gone.stop();
  gone.stop();
  alone.stop();
  const later = subscribe(running, 'event', first);
  await store.reports.append(at(1));
  await expect.poll(() => there.positions).toEqual([1]);
  expect(later.positions).toEqual([1]);
  expect([...gone.positions, ...alone.positions]).toEqual([]);
});

test('live delivery: more reports than one read are all delivered, in order', async () => {
  const running = await open();
  const events = subscribe(running, 'event', first);
  await store.reports.append(at(...Array.from({ length: 300 }, (_, i) => i)));
  await expect.poll(() => events.positions).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
});

test('live delivery: a store that does not answer is retried, and nothing is lost', async () => {
  let failures = 2;
  const running = await open({
    appendedAfter: async (position, limit) => {
      if (failures-- > 0) throw new Error('not now');
      return store.reports.appendedAfter(position, limit);
    },
  });
  const socket = subscribe(running, 'seconds', first);
  await store.reports.append(at(1, 2));
  await expect.poll(() => socket.positions).toEqual([1, 2]);
  expect(troubles).toHaveLength(1);
});

test('live delivery: a store that lost the end of its order says so, and what is stored then is delivered', async () => {
  const { reports, append, cut } = createCutOrder(at(1, 2, 3));
  const running = await open(reports);
  const events = subscribe(running, 'event', first);
  const missed: number[] = [];
  const stop = running.onMissed(() => missed.push(running.position()));
  append(at(4));
  await expect.poll(() => events.positions).toEqual([4]);
  cut(2);
  await expect.poll(() => missed).toEqual([2]);
  append(at(5));
  await expect.poll(() => events.positions).toEqual([4, 3]);
  stop();
  cut(1);
  await expect.poll(() => running.position()).toBe(1);
  expect(missed).toEqual([2]);
});

test('live delivery: what follows a part that is damaged is delivered after that is said', async () => {
  const [report] = at(9);
  let isDamaged = false;
  const running = await open({
    appendedAfter: async (position) =>
      isDamaged && position < 9 && report !== undefined
        ? { reports: [report], positions: [9], position: 9, missed: true }
        : { reports: [], positions: [], position, missed: false },
  });
  const seen: unknown[] = [];
  running.onMissed(() => seen.push(`missed before ${running.position() + 1}`));
  running.subscribe('event', [first], ({ positions }) => seen.push(...positions));
  isDamaged = true;
  await store.reports.append(at(1));
  await expect.poll(() => seen).toEqual(['missed before 9', 9]);
});

test('live delivery: a corrupt record is skipped and reported', async () => {
  const running = await open({
    appendedAfter: async (position, limit) => {
      if (position === 0) throw new CorruptRecordError('broken');
      return store.reports.appendedAfter(position, limit);
    },
  });
  const socket = subscribe(running, 'seconds', first);
  await store.reports.append(at(1, 2));
  await expect.poll(() => socket.positions).toEqual([2]);
  expect(troubles).toHaveLength(1);
});

test('live delivery: while reports cannot be read it retries at one pace, however many are stored, and reports that once', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let isAway = true;
  let attempts = 0;
  const wakes: (() => void)[] = [];
  const running = await open({
    onAppended: (wake) => {
      wakes.push(wake);
      return () => {};
    },
    appendedAfter: async (...args) => {
      attempts += 1;
      if (isAway) throw new Error('away');
      return store.reports.appendedAfter(...args);
    },
  });
  const { positions } = subscribe(running, 'seconds', first);
  for (let i = 0; i < 20; i += 1) {
    for (const wake of wakes) wake();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const before = attempts;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(attempts - before).toBe(5);
  expect(troubles).toHaveLength(1);
  isAway = false;
  await store.reports.append(at(1));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(positions).toEqual([1]);
  isAway = true;
  for (const wake of wakes) wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(troubles).toHaveLength(2);
  running.close();
  const last = attempts;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(attempts).toBe(last);
});
