import { getEventListeners } from 'node:events';
import { parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { SealpostError } from '../errors.ts';
import { streamByName } from './named-stream.ts';
import type { StreamState } from './state.ts';
import type { ReportStream, StreamOptions } from './stream.ts';

const feedId = parseFeedId(`0x0003${'0'.repeat(59)}1`);
const report = { feedID: feedId, validFromTimestamp: 1, observationsTimestamp: 1, fullReport: '0x' };

/** A stream of one report, which waits for its end after it. */
const createInner = () => {
  let end: (() => void) | undefined;
  let given = false;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const inner: ReportStream = {
    next: async () => {
      if (!given) {
        given = true;
        return { done: false, value: report };
      }
      await ended;
      return { done: true, value: undefined };
    },
    return: async () => ({ done: true, value: undefined }),
    close: () => end?.(),
    state: { phase: 'live' },
    [Symbol.asyncIterator]: () => inner,
  };
  return inner;
};

const open = (lookUps: readonly (Error | 'found' | 'never')[], options: StreamOptions = {}) => {
  const states: StreamState[] = [];
  let tries = 0;
  const opened: (readonly string[])[] = [];
  const parts = {
    lookUp: async (signal: AbortSignal) => {
      const answer = lookUps[Math.min(tries++, lookUps.length - 1)];
      if (answer instanceof Error) throw answer;
      if (answer === 'never') await new Promise((_, reject) => signal.addEventListener('abort', reject));
      return [feedId];
    },
    open: (feedIds: readonly string[]) => {
      opened.push(feedIds);
      return createInner();
    },
    random: () => 0,
  };
  const reconnect = { minMs: 1, maxMs: 2 };
  const stream = streamByName(parts, { reconnect, onState: (state) => states.push(state), ...options });
  return { stream, states, opened };
};

test('stream by name: starts when the name is looked up, and is then the stream of its feed ID', async () => {
  const { stream, opened } = open(['found']);
  expect(stream.state).toEqual({ phase: 'connecting' });
  expect(await stream.next()).toEqual({ done: false, value: report });
  expect(opened).toEqual([[feedId]]);
  expect(stream.state).toEqual({ phase: 'live' });
  stream.close();
  expect((await stream.next()).done).toBe(true);
});

test('stream by name: retries while the catalog cannot be read, with the delay in its state', async () => {
  const away = new SealpostError('network_error', 'a.test cannot be reached.');
  const { stream, states } = open([away, away, 'found']);
  expect((await stream.next()).value).toEqual(report);
  expect(states.map(({ phase }) => phase)).toEqual(['reconnecting', 'reconnecting']);
  expect(states[0]).toMatchObject({ reason: 'a.test cannot be reached.', delayMs: 1 });
  stream.close();
});

test('stream by name: an unknown name ends the loop with that error', async () => {
  const unknown = new SealpostError('unknown_stream', 'No stream is named "X".');
  const { stream, states, opened } = open([unknown]);
  await expect(stream.next()).rejects.toBe(unknown);
  expect(states).toEqual([{ phase: 'closed', error: unknown }]);
  expect(opened).toEqual([]);
});

test('stream by name: after an error it is over, and stays closed with that error whatever the caller does', async () => {
  const unknown = new SealpostError('unknown_stream', 'No stream is named "X".');
  const controller = new AbortController();
  const { stream, states } = open([unknown], { signal: controller.signal });
  await expect(stream.next()).rejects.toBe(unknown);
  expect((await stream.next()).done).toBe(true);
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  controller.abort();
  stream.close();
  await stream.return();
  expect([states, stream.state]).toEqual([[{ phase: 'closed', error: unknown }], { phase: 'closed', error: unknown }]);
});

test('stream by name: closed, returned or aborted before the name is known, it opens nothing', async () => {
  const controller = new AbortController();
  const all = [open(['never']), open(['never']), open(['never'], { signal: controller.signal })] as const;
  const ends = all.map(({ stream }) => stream.next());
  all[0].stream.close();
  await all[1].stream.return();
  controller.abort();
  for (const end of ends) expect((await end).done).toBe(true);
  for (const { opened, states, stream } of all) {
    expect([opened, states, stream.state]).toEqual([[], [{ phase: 'closed' }], { phase: 'closed' }]);
  }
  const gone = new AbortController();
  gone.abort();
  expect((await open(['found'], { signal: gone.signal }).stream.next()).done).toBe(true);
});

test('stream by name: invalid options throw at once', () => {
  expect(() => open(['found'], { queueMax: 0 })).toThrow('queueMax is 0');
});
