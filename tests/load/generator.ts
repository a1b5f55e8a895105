// An open-loop generator: requests begin when they are planned, whatever became of those before, and latency counts from the planned time, so that a
// server that stalls is charged for everyone who would have come meanwhile. It runs in a process of its own, on a core of its own.
import { signRequest } from '@sealpost/protocol';
import type { Credentials } from '../support/running-api.ts';
import { type Answer, type Connection, openConnection } from './connection.ts';
import { createHistogram, type Histogram } from './histogram.ts';

export type LoadPlan = {
  readonly port: number;
  readonly account: Credentials;
  /** Targets in proportion: one of them at random for each request. */
  readonly targets: readonly string[];
  /** Requests per second; 0 is as many as the connections can do, one after the other. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
  /** Whether all connections are open before the first request: too many at once would take the generator longer than a server waits. */
  readonly opensFirst?: boolean;
  /** A request that no connection was free for within this time is given up, as its user would. */
  readonly patienceMs: number;
};

export type LoadResult = {
  readonly planned: number;
  readonly answers: Readonly<Record<string, number>>;
  /** Requests that no connection was free for in time, and those whose connection ended before an answer. */
  readonly givenUp: number;
  readonly cut: number;
  /** 503 without a Retry-After. */
  readonly withoutRetryAfter: number;
  readonly seconds: number;
  /** Of what was answered with 200, from the planned time, in ms. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly p999: number; readonly max: number };
  /** The 99th percentile of each second. */
  readonly p99BySecond: readonly number[];
};

/** Signs each target anew every second: a signature is valid for five. */
const createRequests = ({ account: { userId, secret }, targets }: LoadPlan): (() => Buffer) => {
  const made = new Map<string, { readonly atMs: number; readonly bytes: Buffer }>();
  let next = 0;
  return () => {
    const target = targets[next++ % targets.length] as string; // never empty
    const now = Date.now();
    const before = made.get(target);
    if (before !== undefined && now - before.atMs < 1_000) return before.bytes;
    const auth = signRequest({ method: 'GET', target, userId, timestampMs: now }, secret);
    const lines = Object.entries({ Host: 'a', ...auth }).map(([name, value]) => `${name}: ${value}`);
    const bytes = Buffer.from(`GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    made.set(target, { atMs: now, bytes });
    return bytes;
  };
};

const nowUs = (): number => performance.now() * 1_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Counts answers and times those that are 200. */
const createCounts = () => {
  let begunUs = 0;
  const answers: Record<string, number> = {};
  const all = createHistogram();
  const bySecond: Histogram[] = [];
  const lost = { givenUp: 0, cut: 0, withoutRetryAfter: 0 };
  const ms = (histogram: Histogram | undefined, q: number): number =>
    Number(((histogram?.quantile(q) ?? 0) / 1_000).toFixed(2));
  return {
    lost,
    /** Seconds count from here. */
    begin: (us: number): void => {
      begunUs = us;
    },
    add: (plannedUs: number, answer: Answer | undefined): void => {
      if (answer === undefined) {
        lost.cut += 1;
        return;
      }
      answers[answer.status] = (answers[answer.status] ?? 0) + 1;
      if (answer.status === '503' && !answer.retryAfter) lost.withoutRetryAfter += 1;
      if (answer.status !== '200') return;
      const second = Math.floor((plannedUs - begunUs) / 1e6);
      bySecond[second] ??= createHistogram();
      for (const histogram of [all, bySecond[second]]) histogram?.add(nowUs() - plannedUs);
    },
    result: () => ({
      ...lost,
      answers,
      latencyMs: { p50: ms(all, 0.5), p99: ms(all, 0.99), p999: ms(all, 0.999), max: all.max() / 1_000 },
      p99BySecond: Array.from(bySecond, (one) => ms(one, 0.99)),
    }),
  };
};

/** First in, first out, in a ring that has room for all members. */
const createFifo = <T>(members: readonly T[]) => {
  const ring = [...members];
  let [first, count] = [0, ring.length];
  return {
    size: () => count,
    push: (member: T): void => {
      ring[(first + count++) % ring.length] = member;
    },
    take: (): T => {
      const member = ring[first] as T; // asked for only where there is one
      [first, count] = [(first + 1) % ring.length, count - 1];
      return member;
    },
  };
};

/** Gives planned requests to connections that are free. */
const createQueue = (plan: LoadPlan, counts: ReturnType<typeof createCounts>) => {
  const request = createRequests(plan);
  const connections = Array.from({ length: plan.connections }, () => openConnection(plan.port));
  // The one that is free for longest is next: all of them stay in use, and a stall finds none that was closed meanwhile.
  const free = createFifo(connections);
  let waiting: number[] = [];
  let first = 0;
  const send = (connection: Connection, plannedUs: number): void =>
    connection.send(request(), (answer) => {
      counts.add(plannedUs, answer);
      free.push(connection);
      begin();
    });
  const begin = (): void => {
    for (; first < waiting.length && free.size() > 0; first++) {
      const plannedUs = waiting[first] as number; // below the length
      if (nowUs() - plannedUs > plan.patienceMs * 1_000) counts.lost.givenUp += 1;
      else send(free.take(), plannedUs);
    }
    if (first < 10_000) return;
    waiting = waiting.slice(first);
    first = 0;
  };
  return {
    open: async (): Promise<void> => {
      for (let i = 0; i < connections.length; i += openedAtOnce)
        await Promise.all(connections.slice(i, i + openedAtOnce).map((connection) => connection.open()));
    },
    begin,
    plan: (plannedUs: number): void => void waiting.push(plannedUs),
    free: free.size,
    /** Waits for what is under way; what was never sent is given up. */
    close: async (): Promise<void> => {
      counts.lost.givenUp += waiting.length - first;
      waiting = [];
      first = 0;
      for (const until = nowUs() + 30e6; free.size() < connections.length && nowUs() < until; ) await pause(10);
      counts.lost.cut += connections.length - free.size();
      for (const connection of connections) connection.close();
    },
  };
};

/** Connections that are opened together: fewer than wait to be accepted. */
const openedAtOnce = 100;

/** Runs a plan to its end. */
export const generate = async (plan: LoadPlan): Promise<LoadResult> => {
  const counts = createCounts();
  const queue = createQueue(plan, counts);
  if (plan.opensFirst) await queue.open();
  const begunUs = nowUs();
  counts.begin(begunUs);
  const endUs = begunUs + plan.seconds * 1e6;
  let planned = 0;
  const dueUs = (): number => begunUs + (planned / plan.rate) * 1e6;
  const planDue = (): void => {
    // Without a rate a connection has its next request as soon as it is free.
    if (plan.rate === 0) for (let left = queue.free(); left > 0; left--, planned++) queue.plan(nowUs());
    else for (; dueUs() <= Math.min(nowUs(), endUs); planned++) queue.plan(dueUs());
  };
  while (nowUs() < endUs) {
    planDue();
    queue.begin();
    await (plan.rate === 0 ? new Promise((resolve) => setImmediate(resolve)) : pause(1));
  }
  planDue(); // until the end, also if the last pause was long
  queue.begin();
  const seconds = (nowUs() - begunUs) / 1e6;
  await queue.close();
  return { planned, seconds, ...counts.result() };
};
