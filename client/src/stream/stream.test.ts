import { inspect } from 'node:util';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { SealpostError } from '../errors.ts';
import {
  createScriptedService,
  feedA,
  feedB,
  isLive,
  isReconnecting,
  scriptedReport,
  secretCanary,
  watch,
} from './script.fixture.ts';

const second = (at: number, feed = feedA) => scriptedReport(feed, at, at);

afterEach(() => {
  vi.useRealTimers();
});

describe.each(['sse', 'websocket'] as const)('stream over %s', (transport) => {
  test('delivers what is pushed, and nothing else', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.append(second(1_000));
    service.live()[0]?.push(second(1_001, feedB));
    service.append(second(1_001));
    expect(await take(2)).toEqual([1_000, 1_001]);
    expect(service.pages).toEqual([]);
    reports.close();
  });

  test('reports that were appended while the connection was cut come once, in order', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.append(second(1_000));
    expect(await take(1)).toEqual([1_000]);
    service.live()[0]?.cut();
    for (const at of [1_001, 1_002, 1_003]) service.append(second(at));
    await reached(isLive);
    service.append(second(1_004));
    expect(await take(4)).toEqual([1_001, 1_002, 1_003, 1_004]);
    reports.close();
  });

  test('each stream begins at its own second, and one without begins now', async () => {
    const feedC = `0x0003${'c'.repeat(60)}`;
    const service = createScriptedService();
    for (const at of [1_000, 1_001, 1_002]) for (const feed of [feedA, feedB, feedC]) service.append(second(at, feed));
    const { reached, reports } = watch(service, [feedA, feedB, feedC], {
      transport,
      from: { [feedA]: 1_001, [feedB.toUpperCase().replace('X', 'x')]: 1_002 },
    });
    await reached(isLive);
    const take = async (count: number) => {
      const taken: string[] = [];
      while (taken.length < count) {
        const { value } = await reports.next();
        taken.push(
          `${value?.feedID === feedA ? 'A' : value?.feedID === feedB ? 'B' : 'C'}${value?.observationsTimestamp}`,
        );
      }
      return taken.sort();
    };
    expect(await take(3)).toEqual(['A1001', 'A1002', 'B1002']);
    service.append(second(1_003, feedC));
    expect(await take(1)).toEqual(['C1003']);
    expect(service.pages.every((page) => !page.includes(feedC))).toBe(true);
    reports.close();
  });

  test('a quiet stream gets what it missed without waiting for its next report', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.live()[0]?.cut();
    service.append(second(1_000));
    expect(await take(1)).toEqual([1_000]);
    reports.close();
  });

  test('a report that never arrived is read over REST before the next one is delivered', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.append(second(1_000));
    service.append(second(1_001), false);
    service.append(second(1_002));
    expect(await take(3)).toEqual([1_000, 1_001, 1_002]);
    expect(service.pages).toEqual([`/api/v1/reports/page?feedID=${feedA}&startTimestamp=1001&limit=1000`]);
    reports.close();
  });

  test('a gap of the server itself is requested once', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    for (const at of [1_000, 1_010, 1_011, 1_012]) service.append(second(at));
    expect(await take(4)).toEqual([1_000, 1_010, 1_011, 1_012]);
    service.append(second(1_013));
    expect(await take(1)).toEqual([1_013]);
    expect(service.pages).toHaveLength(1);
    reports.close();
  });

  test('late reports and duplicates are dropped', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    for (const at of [1_000, 1_001, 999, 1_001, 1_000, 1_002]) service.append(second(at));
    expect(await take(3)).toEqual([1_000, 1_001, 1_002]);
    reports.close();
  });

  test('from: stored and live reports join without a gap or a duplicate', async () => {
    const service = createScriptedService();
    for (let at = 500; at < 3_000; at += 1) service.append(second(at));
    const { reached, take, reports } = watch(service, [feedA], { transport, from: 600 });
    await reached(isLive);
    service.append(second(3_000));
    expect(await take(2_401)).toEqual(Array.from({ length: 2_401 }, (_, i) => 600 + i));
    reports.close();
  });

  test('from: a server without links is read to the end too', async () => {
    const service = createScriptedService();
    service.manners.links = false;
    for (let at = 500; at < 3_500; at += 1) service.append(second(at));
    const { reached, take, reports } = watch(service, [feedA], { transport, from: 500 });
    await reached(isLive);
    service.append(second(3_500));
    expect(await take(3_001)).toEqual(Array.from({ length: 3_001 }, (_, i) => 500 + i));
    reports.close();
  });

  test('a slow consumer pauses the connection, and still gets everything', async () => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport, queueMax: 4 });
    await reached(isLive);
    const pausedAt: number[] = [];
    for (let at = 1_000; at < 1_200; at += 1) {
      service.append(second(at));
      if (service.live()[0]?.isPaused) pausedAt.push(at);
    }
    // A scripted event stream has no pause flag: it shows in that the body is not read.
    if (transport === 'websocket') expect(pausedAt[0]).toBe(1_003);
    expect(await take(200)).toHaveLength(200);
    expect(service.live()[0]?.isPaused).toBe(false);
    reports.close();
  });

  test.each([400, 401, 404])('%i ends the stream with a typed error, and is never retried', async (status) => {
    const service = createScriptedService();
    service.refusals.push({ status, code: 'unauthorized' });
    const { take, states, reports } = watch(service, [feedA], { transport });
    await expect(take(1)).rejects.toMatchObject({ name: 'SealpostError', code: 'unauthorized', status });
    expect(service.attempts).toHaveLength(1);
    expect(states.at(-1)).toMatchObject({ phase: 'closed', error: { status } });
    expect(await reports.next()).toEqual({ done: true, value: undefined });
  });

  test('a 401 while live: earlier reports are delivered, then the error', async () => {
    const service = createScriptedService();
    const { reached, take } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.append(second(1_000));
    service.append(second(1_001));
    expect(await take(1)).toEqual([1_000]);
    service.refusals.push({ status: 401, code: 'unauthorized' });
    service.live()[0]?.cut();
    await reached(({ phase }) => phase === 'closed');
    expect(await take(1)).toEqual([1_001]);
    await expect(take(1)).rejects.toBeInstanceOf(SealpostError);
  });

  test.each([429, 503])('%i waits at least as long as Retry-After says', async (status) => {
    const service = createScriptedService();
    service.refusals.push({ status, headers: { 'Retry-After': '7' }, code: 'rate_limited' });
    const { reached, reports } = watch(service, [feedA], { transport });
    const state = await reached(isReconnecting);
    expect(state).toMatchObject({ phase: 'reconnecting', reason: `Scripted ${status}.`, delayMs: 7_000 });
    reports.close();
  });

  test('a connection without data for 30 s is closed; a ping counts as data', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const service = createScriptedService();
    const { reached, states, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    await vi.advanceTimersByTimeAsync(29_000);
    service.live()[0]?.ping();
    await vi.advanceTimersByTimeAsync(29_000);
    expect(states.at(-1)).toEqual({ phase: 'live' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(states.find(isReconnecting)).toMatchObject({ reason: 'silent for 30 s' });
    reports.close();
  });

  test('a network that is cut for 10 s: delays grow, every report comes once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const service = createScriptedService();
    const { reached, take, states, reports } = watch(service, [feedA], { transport, reconnect: {} });
    await reached(isLive);
    service.append(second(1_000));
    service.down.add(undefined);
    service.live()[0]?.cut();
    // A scripted handshake takes a turn of the event loop, and must take less than 10 s of simulated time.
    const passSecond = async (): Promise<void> => {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (let at = 1_001; at <= 1_010; at += 1) {
      service.append(second(at));
      await passSecond();
    }
    service.down.clear();
    const delays = states.flatMap((state) => (state.phase === 'reconnecting' ? [state.delayMs] : []));
    expect(delays.slice(0, 5)).toEqual([125, 250, 500, 1_000, 2_000]);
    for (let i = 0; i < 30; i += 1) await passSecond();
    service.append(second(1_011));
    expect(await take(12)).toEqual(Array.from({ length: 12 }, (_, i) => 1_000 + i));
    reports.close();
  });

  test('an abort, a return and a close end the loop and every connection', async () => {
    for (const how of ['abort', 'return', 'close'] as const) {
      const service = createScriptedService();
      const controller = new AbortController();
      const { reached, reports } = watch(service, [feedA], { transport, signal: controller.signal });
      await reached(isLive);
      const next = reports.next();
      if (how === 'abort') controller.abort();
      else await reports[how]();
      expect(await next, how).toEqual({ done: true, value: undefined });
      expect(reports.state, how).toEqual({ phase: 'closed' });
      expect(service.live(), how).toEqual([]);
    }
  });

  test('a stream that is closed during a backfill that is to be repeated has ended', async () => {
    const service = createScriptedService();
    service.append(second(1_000));
    const { reached, reports } = watch(service, [feedA], { transport, from: 1_000 });
    await reached(isLive);
    service.live()[0]?.cut();
    await reached(isReconnecting);
    await reached(isLive);
    reports.close();
    for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(service.live()).toEqual([]);
  });

  test('a break ends the stream', async () => {
    const service = createScriptedService();
    const { reached, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.append(second(1_000));
    for await (const report of reports) {
      expect(report).toEqual(second(1_000));
      break;
    }
    expect(service.live()).toEqual([]);
  });

  test('every attempt has a new signature, and no secret shows in states, errors or the stream itself', async () => {
    const service = createScriptedService();
    const { reached, take, states, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    service.refusals.push({ status: 503 }, { status: 401, code: 'unauthorized' });
    service.live()[0]?.cut();
    const error = await take(1).catch((thrown: unknown) => thrown);
    expect(service.attempts.map(({ headers }) => headers['X-Authorization-Signature-SHA256'])).toEqual(
      Array(3).fill(secretCanary),
    );
    const shown = [states, error, reports, String(error), JSON.stringify(error), JSON.stringify(reports)];
    expect(inspect(shown, { depth: 20, showHidden: true })).not.toContain(secretCanary);
  });

  test('a page that fails is retried; a final error ends the stream', async () => {
    const service = createScriptedService();
    service.pageRefusals.push({ status: 503 }, { status: 429, code: 'rate_limited' });
    service.append(second(1_000));
    const { reached, take } = watch(service, [feedA], { transport, from: 1_000 });
    expect(await take(1)).toEqual([1_000]);
    expect(service.pages).toHaveLength(3);
    await reached(isLive);
    service.append(second(1_001));
    expect(await take(1)).toEqual([1_001]);
    service.pageRefusals.push({ status: 401, code: 'stream_not_accessible' });
    service.append(second(1_005));
    await expect(take(1)).rejects.toMatchObject({ code: 'stream_not_accessible' });
  });

  test('a clock that the server rejects is corrected once by a call, then it is an error', async () => {
    const service = createScriptedService();
    service.refusals.push({ status: 400, code: 'clock_skew' });
    const { reached, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    expect(service.pages).toEqual(['/api/v1/feeds']);
    reports.close();
    service.refusals.push({ status: 400, code: 'clock_skew' }, { status: 400, code: 'clock_skew' });
    await expect(watch(service, [feedA], { transport }).take(1)).rejects.toMatchObject({ code: 'clock_skew' });
  });
});

test('stream: invalid arguments throw at once', () => {
  const service = createScriptedService();
  expect(() => watch(service, [])).toThrow('No feed ID is given');
  expect(() => watch(service, ['0x12'])).toThrow('expected 0x and 64 hex digits');
  expect(() => watch(service, [feedA], { from: 1.5 })).toThrow('from is 1.5');
  expect(() => watch(service, [feedA], { queueMax: 0 })).toThrow('queueMax is 0');
});
