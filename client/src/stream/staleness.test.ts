import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ReceivedReport } from './received-report.ts';
import { createScriptedService, feedA, feedB, isLive, watch as open, scriptedReport } from './script.fixture.ts';
import { createStaleWatch, type StaleStream } from './staleness.ts';

const received = (feedID: string, from: number, to: number): ReceivedReport => ({
  report: scriptedReport(feedID, from, to),
  validFromMs: from * 1_000,
  observationsMs: to * 1_000,
});

const watching = () => {
  let nowMs = 1_000_000;
  const reported: StaleStream[] = [];
  const watch = createStaleWatch(
    [feedA, feedB],
    (stream) => reported.push(stream),
    () => nowMs,
  );
  /** Looks every second for this long. */
  const pass = (seconds: number, isLive = true): readonly string[] => {
    const before = reported.length;
    for (let i = 0; i < seconds; i += 1) {
      nowMs += 1_000;
      watch.look(isLive);
    }
    return reported.slice(before).map(({ feedId, silentMs }) => `${feedId.slice(6, 7)} ${silentMs}`);
  };
  return { watch, reported, pass };
};

test('stale: a feed ID is told once after a minute, and again only after it had a report', () => {
  const { watch, reported, pass } = watching();
  expect(pass(50)).toEqual([]);
  watch.received(received(feedA, 7, 7));
  expect(pass(11)).toEqual(['b 61000']);
  expect(pass(60)).toEqual(['a 61000']);
  expect(reported).toEqual([
    { feedId: feedB, lastTimestamp: undefined, silentMs: 61_000 },
    { feedId: feedA, lastTimestamp: 7, silentMs: 61_000 },
  ]);
  expect(pass(600)).toEqual([]);
  watch.received(received(feedA, 8, 8));
  expect(pass(61)).toEqual(['a 61000']);
});

test('stale: a slow stream has three windows of its last report', () => {
  const { watch, pass } = watching();
  watch.received(received(feedA, 1, 60));
  expect(pass(180)).toEqual(['b 61000']);
  expect(pass(1)).toEqual(['a 181000']);
});

test('stale: nothing is told without a connection, nor until reports had time to arrive after one was lost', () => {
  const { watch, pass } = watching();
  expect(pass(300, false)).toEqual([]);
  expect(pass(10)).toEqual([]);
  watch.received(received(feedA, 1, 1));
  expect(pass(1)).toEqual(['b 311000']);
  // A server that accepts connections, and is silent until the client gives them up.
  expect([1, 2, 3].flatMap(() => [...pass(29), ...pass(1, false)])).toEqual(['a 72000']); // ten seconds after the third began
});

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

test('stream: onStale is called for a live stream whose connection is alive and brings no report', async () => {
  const service = createScriptedService();
  const reported: StaleStream[] = [];
  const { reports, reached } = open(service, [feedA], {
    onStale: (stream) => reported.push(stream),
    silenceMs: 600_000,
  });
  await reached(isLive);
  vi.advanceTimersByTime(59_000);
  expect(reported).toEqual([]);
  vi.advanceTimersByTime(3_000);
  expect(reported).toMatchObject([{ feedId: feedA, lastTimestamp: undefined }]);
  reports.close();
  expect(vi.getTimerCount()).toBe(0);
});
