import { expect, test } from 'vitest';
import { createSandboxClock } from './clock.ts';
import { startSandboxFeed } from './feed.ts';

test('sandbox feed: waiting for reports leaves nothing on the signal, however often the feed delivers meanwhile', async () => {
  const clock = createSandboxClock({ startMs: 1_000_000, paused: true, monotonicMs: () => 0 });
  const feed = startSandboxFeed({
    clock,
    source: { deliver: async () => [], add: async () => {}, close: async () => {} },
    submit: async () => [],
    perform: async () => {},
    startSecond: 1_000,
    reportsPerSecond: 256, // a batch covers a second
  });
  const { signal } = new AbortController();
  let listeners = 0;
  const counted = Object.assign(signal, {
    addEventListener: () => (listeners += 1),
    removeEventListener: () => (listeners -= 1),
  });
  const stored = feed.storedUpTo(1_030, counted);
  clock.step(30_000);
  await stored;
  expect([feed.nextSecond(), listeners]).toEqual([1_031, 0]);
  await feed.stop();
});
