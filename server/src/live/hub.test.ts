import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from '../store/open.ts';
import { CorruptRecordError, type ReportStore, type Store, type StoredReport } from '../store/store.ts';
import { type Hub, openHub, type Subscriber } from './hub.ts';
import type { LiveForm } from './message.ts';

const [first, exact] = [secondStream(1), millisecondStream(2)];
const { report } = await createSignedReports('hub');
const now = 1_763_200_000;
let folder: string;
let store: Store;
let hub: Hub | undefined;
const troubles: unknown[] = [];
const delivered: [LiveForm, number][] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-hub-'));
  store = await openStore(folder, 'write');
  troubles.length = 0;
  delivered.length = 0;
});
afterEach(async () => {
  hub?.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const open = async (reports: Partial<ReportStore> = {}): Promise<Hub> => {
  hub = await openHub({
    reports: { ...store.reports, ...reports },
    eventIds: { encode: String },
    feedIds: [first, exact],
    onDelivered: (form, count) => delivered.push([form, count]),
    onTrouble: (error) => troubles.push(error),
  });
  return hub;
};

/** Notes positions, and how often it was flushed. */
const subscribe = (to: Hub, form: LiveForm, ...feedIds: Subscriber['feedIds']) => {
  const positions: number[] = [];
  const messages: Buffer[] = [];
  const calls: string[] = [];
  const stop = to.subscribe({
    feedIds,
    form,
    collect: () => calls.push('collect'),
    write: (message, position) => {
      messages.push(message);
      positions.push(position);
    },
    flush: () => calls.push('flush'),
  });
  return { positions, messages, calls, stop };
};
const at = (...seconds: readonly number[]): readonly StoredReport[] =>
  seconds.map((offset) => report(first, now + offset, now + offset));

test('hub: earlier reports are not delivered; all subscribers of a stream get the same bytes', async () => {
  await store.reports.append(at(1, 2));
  const running = await open();
  const [one, other, none] = [
    subscribe(running, 'seconds', first),
    subscribe(running, 'seconds', first, exact),
    subscribe(running, 'seconds', exact),
  ];
  await store.reports.append(at(3, 4));
  await expect.poll(() => one.positions).toEqual([3, 4]);
  expect(one.messages.map((message, i) => message === other.messages[i])).toEqual([true, true]);
  expect(none.positions).toEqual([]);
  expect(one.calls).toEqual(['collect', 'flush']);
  expect(delivered).toEqual([['seconds', 4]]);
  expect(running.position()).toBe(4);
});

test('hub: a late report goes to events alone, also when the newer one was stored before the hub began', async () => {
  await store.reports.append(at(10));
  const running = await open();
  const [socket, events] = [subscribe(running, 'seconds', first), subscribe(running, 'event', first)];
  await store.reports.append(at(8, 12, 11, 13));
  await expect.poll(() => events.positions).toEqual([2, 3, 4, 5]);
  expect(socket.positions).toEqual([3, 5]);
});

test('hub: in seconds one report of a second goes out, in milliseconds all', async () => {
  const running = await open();
  const [seconds, milliseconds] = [subscribe(running, 'seconds', exact), subscribe(running, 'milliseconds', exact)];
  const ms = now * 1_000;
  await store.reports.append([100, 600, 1_100].map((offset) => report(exact, ms + offset, ms + offset)));
  await expect.poll(() => milliseconds.positions).toEqual([1, 2, 3]);
  expect(seconds.positions).toEqual([1, 3]);
});

test('hub: a stopped subscriber gets nothing more', async () => {
  const running = await open();
  const [gone, there] = [subscribe(running, 'seconds', first), subscribe(running, 'seconds', first)];
  gone.stop();
  await store.reports.append(at(1));
  await expect.poll(() => there.positions).toEqual([1]);
  expect(gone.positions).toEqual([]);
});

test('hub: more reports than one read are all delivered, in order', async () => {
  const running = await open();
  const events = subscribe(running, 'event', first);
  await store.reports.append(at(...Array.from({ length: 300 }, (_, i) => i)));
  await expect.poll(() => events.positions).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
});

test('hub: a store that does not answer is retried, and nothing is lost', async () => {
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
  expect(troubles).toHaveLength(2);
});

test('hub: a corrupt record is skipped and reported', async () => {
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
