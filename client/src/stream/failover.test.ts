import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createScriptedService, feedA, isLive, isReconnecting, scriptedReport, watch } from './script.fixture.ts';
import type { StreamOptions } from './stream.ts';

const second = (at: number) => scriptedReport(feedA, at, at);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A stream of a service with two hosts. Their list may change while it runs. */
const open = (options: StreamOptions) => {
  const service = createScriptedService();
  const urls = ['http://a.test', 'http://b.test'];
  const requester = { ...service.requester, baseUrls: urls, wsUrls: urls };
  const watched = watch({ ...service, requester }, [feedA], options);
  const hosts = (): string => service.attempts.map(({ url }) => new URL(url).host[0]).join('');
  /** Waits for the first attempt; no time passes. */
  const tried = async (): Promise<void> => {
    while (service.attempts.length === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  /** Lets time pass until the connection with this number, from 1, is live. */
  const live = async (count: number): Promise<void> => {
    while (watched.states.filter(isLive).length < count) {
      await vi.advanceTimersByTimeAsync(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const delays = (): readonly number[] =>
    watched.states.flatMap((state) => (state.phase === 'reconnecting' ? [state.delayMs] : []));
  return { service, urls, hosts, tried, live, delays, ...watched };
};

describe.each(['sse', 'websocket'] as const)('fail-over over %s', (transport) => {
  test('a handshake that does not end within 10 s has failed, and the next server is tried', async () => {
    const { service, hosts, tried, live, states, reports } = open({ transport });
    service.stalled.add('a.test');
    await tried();
    await vi.advanceTimersByTimeAsync(9_999);
    expect(states).toEqual([{ phase: 'connecting' }]);
    await vi.advanceTimersByTimeAsync(1);
    expect(states[1]).toMatchObject({ phase: 'reconnecting', reason: 'no answer within 10 s' });
    await live(1);
    expect(hosts()).toBe('ab');
    reports.close();
  });

  test('after the handshake its limit does not count', async () => {
    const { service, live, states, reports } = open({ transport });
    await live(1);
    for (let i = 0; i < 4; i += 1) {
      await vi.advanceTimersByTimeAsync(9_000);
      service.live()[0]?.ping();
    }
    expect(states.at(-1)).toEqual({ phase: 'live' });
    reports.close();
  });

  test('a server that accepts and then drops is left for the next', async () => {
    const { service, hosts, live, reports } = open({ transport });
    for (let count = 1; count <= 4; count += 1) {
      await live(count);
      service.live()[0]?.cut();
    }
    await live(5);
    expect(hosts()).toBe('ababa');
    reports.close();
  });

  test('a server that accepts and stays silent is left for the next, and delays grow', async () => {
    const { hosts, live, delays, states, reports } = open({ transport, reconnect: {} });
    for (let count = 1; count <= 4; count += 1) {
      await live(count);
      await vi.advanceTimersByTimeAsync(30_000);
    }
    await live(5);
    expect(hosts()).toBe('ababa');
    expect(delays()).toEqual([125, 250, 500, 1_000]);
    expect(states.find(isReconnecting)).toMatchObject({ reason: 'silent for 30 s' });
    reports.close();
  });

  test('a server that sends a report and then nothing is left for the next', async () => {
    const { service, hosts, live, take, reports } = open({ transport });
    await live(1);
    service.append(second(1_000));
    expect(await take(1)).toEqual([1_000]);
    await vi.advanceTimersByTimeAsync(30_000);
    await live(2);
    expect(hosts()).toBe('ab');
    reports.close();
  });

  test('a server that has sent a report is tried first after a cut; if it drops the next connection, it is left', async () => {
    const { service, hosts, live, take, reports } = open({ transport });
    await live(1);
    service.append(second(1_000));
    expect(await take(1)).toEqual([1_000]);
    service.live()[0]?.cut();
    await live(2);
    expect(hosts()).toBe('aa');
    service.live()[0]?.cut();
    await live(3);
    expect(hosts()).toBe('aab');
    reports.close();
  });

  test('a quiet connection that lasted is tried first after a cut, and its delay starts over', async () => {
    const { service, hosts, live, delays, reports } = open({ transport, reconnect: {} });
    await live(1);
    service.live()[0]?.cut();
    await live(2);
    await vi.advanceTimersByTimeAsync(10_000);
    service.live()[0]?.cut();
    await live(3);
    expect(hosts()).toBe('abb');
    expect(delays()).toEqual([125, 125]);
    reports.close();
  });

  test('of a connection that ends silent, the time until its last sign of life counts', async () => {
    const { service, hosts, live, delays, reports } = open({ transport, reconnect: {} });
    await live(1);
    service.live()[0]?.cut();
    await live(2);
    await vi.advanceTimersByTimeAsync(10_000);
    service.live()[0]?.ping();
    await vi.advanceTimersByTimeAsync(30_000);
    await live(3);
    expect(hosts()).toBe('abb');
    await vi.advanceTimersByTimeAsync(30_000);
    await live(4);
    expect(hosts()).toBe('abba');
    expect(delays()).toEqual([125, 125, 250]);
    reports.close();
  });

  test('a server that rejects is left for the next, even if a connection of any length counts as stable', async () => {
    const { service, hosts, live, delays, reports } = open({ transport, reconnect: { stableMs: 0 } });
    service.refusals.push({ status: 503 }, { status: 503 }, { status: 503 });
    await live(1);
    expect(hosts()).toBe('abab');
    expect(delays()).toEqual([125, 250, 500]);
    reports.close();
  });

  test('the Retry-After of a server delays no other, and is kept in full before its own next attempt', async () => {
    const { service, hosts, live, delays, reports } = open({ transport, reconnect: {} });
    service.refusals.push({ status: 503, headers: { 'Retry-After': '60' } });
    await live(1);
    expect(hosts()).toBe('ab');
    service.live()[0]?.cut();
    await live(2);
    expect(hosts()).toBe('abb');
    for (let i = 0; i < 3; i += 1) {
      await vi.advanceTimersByTimeAsync(20_000);
      service.live()[0]?.ping();
    }
    service.refusals.push(
      { status: 503, headers: { 'Retry-After': '40' } },
      { status: 503, headers: { 'Retry-After': '20' } },
    );
    service.live()[0]?.cut();
    await live(3);
    expect(hosts()).toBe('abbbaa');
    expect(delays()).toEqual([125, 250, 125, 250, 20_000]);
    reports.close();
  });

  test('the next server is the one after the last, also if calls have failed over in between', async () => {
    const { service, urls, hosts, tried, live, take, reports } = open({ transport });
    service.refusals.push({ status: 503 });
    await tried();
    urls.reverse();
    await live(1);
    expect(hosts()).toBe('ab');
    service.append(second(1_000));
    expect(await take(1)).toEqual([1_000]);
    urls.reverse();
    service.live()[0]?.cut();
    await live(2);
    expect(hosts()).toBe('abb');
    reports.close();
  });
});
