import type { Client, StreamOptions, StreamState } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLiveConnection, gatherMs, type Plan, shrinkMs } from './live-connection.ts';

type Opened = {
  readonly feedIds: readonly string[];
  readonly from: StreamOptions['from'];
  readonly reportState: (state: StreamState) => void;
  readonly push: (report: ReportJson) => void;
  readonly fail: (error: Error) => void;
  isClosed: boolean;
};

/** A client whose streams the test plays. */
const createPlayedStreams = () => {
  const opened: Opened[] = [];
  const stream = (feedIds: readonly string[], options: StreamOptions = {}) => {
    let wake = (): void => {};
    const waiting: (ReportJson | Error)[] = [];
    const add = (value: ReportJson | Error): void => {
      waiting.push(value);
      wake();
    };
    const one: Opened = {
      feedIds,
      from: options.from,
      reportState: (state) => options.onState?.(state),
      push: add,
      fail: add,
      isClosed: false,
    };
    opened.push(one);
    const close = (): void => {
      one.isClosed = true;
      wake();
    };
    async function* reports() {
      while (!one.isClosed) {
        const next = waiting.shift();
        if (next instanceof Error) throw next;
        if (next !== undefined) yield next;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    }
    return Object.assign(reports(), { close });
  };
  return { opened, stream: stream as unknown as Client['stream'] }; // of a stream, a connection uses the loop and the end
};

const tooMany = new Error('too many streams');

const createBench = () => {
  const { opened, stream } = createPlayedStreams();
  const states: string[] = [];
  const reports: ReportJson[] = [];
  const refusals: unknown[] = [];
  const live: (readonly string[])[] = [];
  let plan: Plan = { feedIds: [], from: undefined };
  const connection = createLiveConnection({
    stream,
    plan: () => plan,
    onOpen: () => {},
    onReport: (report) => reports.push(report),
    onState: (state) => states.push(state),
    onLive: (feedIds) => live.push([...feedIds]),
    onRefused: (error) => {
      refusals.push(error);
      if (error !== tooMany) return 'final';
      plan = { ...plan, feedIds: plan.feedIds.slice(0, 1) };
      return 'adapted';
    },
  });
  const want = (feedIds: readonly string[], from?: number): void => {
    plan = { feedIds, from };
    connection.changed(from !== undefined);
  };
  return { opened, states, reports, refusals, live, connection, want };
};

const report = (feedID: string, at: number): ReportJson => ({
  feedID,
  validFromTimestamp: at,
  observationsTimestamp: at,
  fullReport: '0x',
});

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('changes at the same time open one connection', async () => {
  const { opened, want } = createBench();
  want(['a']);
  want(['a', 'b']);
  want(['a', 'b', 'c']);
  await pass(gatherMs);
  expect(opened.map(({ feedIds }) => feedIds)).toEqual([['a', 'b', 'c']]);
});

test('a growing set opens a new connection, and the previous one stays open until that is live', async () => {
  const { opened, want, states } = createBench();
  want(['a']);
  await pass(gatherMs);
  opened[0]?.reportState({ phase: 'live' });
  want(['a', 'b']);
  await pass(1_000);
  expect(opened[1]?.feedIds).toEqual(['a', 'b']);
  expect(opened[0]?.isClosed).toBe(false);
  opened[1]?.reportState({ phase: 'live' });
  expect(opened[0]?.isClosed).toBe(true);
  expect(states).toEqual(['connecting', 'live']);
});

test('a shrinking set keeps its connection for a while, and nothing happens if it grows back', async () => {
  const { opened, want } = createBench();
  want(['a', 'b']);
  await pass(gatherMs);
  want(['a']);
  await pass(shrinkMs - 1);
  want(['a', 'b']);
  await pass(shrinkMs * 2);
  expect(opened).toHaveLength(1);
  want(['b']);
  await pass(shrinkMs);
  expect(opened.map(({ feedIds }) => feedIds)).toEqual([['a', 'b'], ['b']]);
});

test('with nothing wanted the connection closes after a while', async () => {
  const { opened, want, states } = createBench();
  want(['a']);
  await pass(gatherMs);
  want([]);
  await pass(shrinkMs);
  expect(opened[0]?.isClosed).toBe(true);
  expect(states.at(-1)).toBe('off');
});

test('a watch that wants past reports gets a new connection, even if the stream is already delivered', async () => {
  const { opened, want } = createBench();
  want(['a', 'b']);
  await pass(gatherMs);
  want(['a'], 1_000);
  await pass(1_000);
  expect(opened[1]).toMatchObject({ feedIds: ['a'], from: 1_000 });
});

test('quick changes do not open many connections', async () => {
  const { opened, want } = createBench();
  for (let i = 1; i <= 20; i += 1) {
    want(Array.from({ length: i }, (_, n) => String(n)));
    await pass(100);
  }
  expect(opened.length).toBeLessThanOrEqual(4);
  await pass(1_000);
  expect(opened.at(-1)?.feedIds).toHaveLength(20);
});

test('reports are delivered as they arrive, a cut is shown as reconnecting', async () => {
  const { opened, want, reports, states } = createBench();
  want(['a']);
  await pass(gatherMs);
  opened[0]?.reportState({ phase: 'live' });
  opened[0]?.push(report('a', 1));
  opened[0]?.reportState({ phase: 'reconnecting', reason: 'cut', delayMs: 100 });
  opened[0]?.reportState({ phase: 'live' });
  opened[0]?.push(report('a', 2));
  await pass(100);
  expect(reports.map(({ observationsTimestamp }) => observationsTimestamp)).toEqual([1, 2]);
  expect(states).toEqual(['connecting', 'live', 'reconnecting', 'live']);
});

test('a rejection is reported, and retries back off', async () => {
  const { opened, want, refusals, states } = createBench();
  want(['a']);
  await pass(gatherMs);
  const refusal = new Error('no');
  opened[0]?.fail(refusal);
  await pass(4_000);
  expect(refusals).toEqual([refusal]);
  expect(states.at(-1)).toBe('reconnecting');
  expect(opened).toHaveLength(1);
  await pass(1_000);
  opened[1]?.fail(refusal);
  await pass(9_000);
  expect(opened).toHaveLength(2);
  await pass(1_000);
  expect(opened).toHaveLength(3);
});

test('says which streams are live: at every new connection, and after a cut', async () => {
  const { opened, want, live } = createBench();
  want(['a']);
  await pass(gatherMs);
  opened[0]?.reportState({ phase: 'live' });
  want(['a', 'b']);
  await pass(1_000);
  expect(live).toEqual([['a']]);
  opened[1]?.reportState({ phase: 'live' });
  opened[0]?.reportState({ phase: 'live' });
  opened[1]?.reportState({ phase: 'reconnecting', reason: 'cut', delayMs: 100 });
  opened[1]?.reportState({ phase: 'live' });
  expect(live).toEqual([['a'], ['a', 'b'], ['a', 'b']]);
});

test('a rejection that the plan was adapted to is followed by an attempt at once', async () => {
  const { opened, want } = createBench();
  want(['a', 'b']);
  await pass(gatherMs);
  opened[0]?.fail(tooMany);
  await pass(1_000);
  expect(opened.map(({ feedIds }) => feedIds)).toEqual([['a', 'b'], ['a']]);
});

test('closing ends every connection and every timer', async () => {
  const { opened, want, connection, states } = createBench();
  want(['a']);
  await pass(gatherMs);
  opened[0]?.reportState({ phase: 'live' });
  want(['a', 'b']);
  connection.close();
  await pass(shrinkMs);
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true]);
  expect(states.at(-1)).toBe('off');
});
