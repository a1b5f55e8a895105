import type { ApiError, FeedId } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { type Access, createConnections, type Ending, type LiveConnection, type Opened } from './connections.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const [first, second] = [secondStream(1), secondStream(2)];
const opened = (changes: Partial<Opened> = {}): Opened => ({
  route: 'socket',
  requestId: '1',
  userId: 'alice',
  secretId: 'one',
  feedIds: [first],
  ...changes,
});

/** A connection that notes what becomes of it; unless told not to, it closes when it is told to. */
const createLine = (closes = true) => {
  const seen: (Ending | 'destroyed')[] = [];
  let close = (): void => {};
  const connection: LiveConnection = {
    end: (why) => {
      seen.push(why);
      if (closes) close();
    },
    destroy: () => {
      seen.push('destroyed');
      close();
    },
    tend: () => {},
  };
  return { connection, seen, closeWith: (over: () => void) => (close = over), close: () => close() };
};

const create = (access: Record<string, Access | undefined> = {}, perAccountMax = 2) =>
  createConnections({ perAccountMax, accessOf: (userId) => access[userId], monotonicMs: () => Date.now() });
type Connections = ReturnType<typeof create>;

const add = (connections: Connections, changes: Partial<Opened> = {}, closes = true) => {
  const one = createLine(closes);
  one.closeWith(connections.add(one.connection, opened(changes)));
  return one;
};
const codeOf = (act: () => void): string | undefined => {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as ApiError).code;
  }
};

test('connections: an account has at most its limit, independent of others', () => {
  const connections = create();
  const one = add(connections);
  add(connections);
  expect(codeOf(() => connections.check('alice'))).toBe('too_many_sockets');
  expect(codeOf(() => connections.check('bob'))).toBeUndefined();
  one.close();
  one.close(); // told twice, counted once
  expect(codeOf(() => connections.check('alice'))).toBeUndefined();
  add(connections);
  expect(codeOf(() => connections.check('alice'))).toBe('too_many_sockets');
});

const readable = (...feedIds: readonly FeedId[]): ReadonlySet<FeedId> => new Set(feedIds);

test('connections: a review ends those whose secret, account or stream is gone, and no other', () => {
  const connections = create({
    alice: { secretIds: ['two', 'three'], readable: readable(first) },
    bob: undefined,
  });
  const good = add(connections, { secretId: 'two' });
  const others = [
    add(connections, { secretId: 'one' }),
    add(connections, { secretId: undefined }),
    add(connections, { secretId: 'two', feedIds: [first, second] }),
    add(connections, { userId: 'bob' }),
  ];
  connections.review();
  expect(good.seen).toEqual([]);
  expect(others.map(({ seen }) => seen)).toEqual(others.map(() => ['access_ended']));
});

test('connections: a drain ends one after the other, admits none, and is over when all have closed', async () => {
  const connections = create({}, 100);
  const connected = Array.from({ length: 10 }, () => add(connections));
  const told = () => connected.filter(({ seen }) => seen.length > 0).length;
  let over = false;
  const drained = connections.drain(8_000).then(() => {
    over = true;
  });
  expect(codeOf(() => connections.check('alice'))).toBe('draining');
  expect(told()).toBe(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(told()).toBe(5);
  expect(over).toBe(false);
  await vi.advanceTimersByTimeAsync(300);
  await drained;
  expect(connected.map(({ seen }) => seen)).toEqual(connected.map(() => ['going_away']));
});

test('connections: with many connections a drain is faster, and cuts those that are open at the deadline', async () => {
  const connections = create({}, 10_000);
  const connected = Array.from({ length: 1_000 }, () => add(connections, {}, false));
  const drained = connections.drain(1_000);
  await vi.advanceTimersByTimeAsync(800);
  expect(connected.every(({ seen }) => seen[0] === 'going_away')).toBe(true);
  await vi.advanceTimersByTimeAsync(200);
  await drained;
  expect(connected.every(({ seen }) => seen[1] === 'destroyed')).toBe(true);
});
