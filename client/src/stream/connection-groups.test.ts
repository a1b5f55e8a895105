import { expect, test } from 'vitest';
import { splitFeedIds } from './connection-groups.ts';
import { createScriptedService, isLive, isReconnecting, scriptedReport, watch } from './script.fixture.ts';

const feedIds = (count: number) =>
  Array.from({ length: count }, (_, i) => `0x0003${(i + 1).toString(16).padStart(60, '0')}`);
const idsOf = (url: string): readonly string[] => new URL(url).searchParams.get('feedIDs')?.split(',') ?? [];

test('groups: 100 feed IDs share a connection; each is in one group, in order', () => {
  for (const [count, sizes] of [
    [1, [1]],
    [100, [100]],
    [101, [100, 1]],
    [250, [100, 100, 50]],
    [2_000, Array(20).fill(100)],
  ] as const) {
    const groups = splitFeedIds(feedIds(count));
    expect(groups.map(({ length }) => length)).toEqual(sizes);
    expect(groups.flat()).toEqual(feedIds(count));
  }
});

test('groups: more feed IDs than an account may connect are rejected at once, and nothing is sent', () => {
  const service = createScriptedService();
  expect(() => watch(service, feedIds(2_001))).toThrow(
    '2001 feed IDs need 21 connections, and an account may open 20. Stream fewer, or split them over several accounts.',
  );
  expect(service.attempts).toEqual([]);
});

test('groups: with several origins the connections count for each of them', async () => {
  const service = createScriptedService(['001', '002', '003']);
  await expect(watch(service, feedIds(601), { ha: true }).take(1)).rejects.toMatchObject({
    code: 'invalid_option',
    message:
      '601 feed IDs over 3 origins need 21 connections, and an account may open 20. Stream fewer, or split them over several accounts.',
  });
  expect(service.attempts).toEqual([]);
});

test.each(['sse', 'websocket'] as const)(
  'groups: 150 streams over %s take two connections; one that is cut misses nothing while the other continues',
  async (transport) => {
    const ids = feedIds(150);
    const [first, last] = [ids[0] as string, ids[149] as string]; // there are 150
    const service = createScriptedService();
    const { reached, take, reports, states } = watch(service, ids, { transport });
    await expect.poll(() => service.live().length).toBe(2);
    await reached(isLive);
    expect(service.attempts.map(({ url }) => idsOf(url).length)).toEqual([100, 50]);
    expect(service.attempts.flatMap(({ url }) => idsOf(url))).toEqual(ids);
    const [one, other] = service.live();
    one?.push(scriptedReport(first, 1_000, 1_000));
    other?.push(scriptedReport(last, 1_000, 1_000));
    expect(await take(2)).toEqual([1_000, 1_000]);
    other?.cut();
    await reached(isReconnecting);
    // Not live as a whole, and it says which streams wait.
    expect(reports.state).toMatchObject({ phase: 'reconnecting', feedIds: ids.slice(100) });
    service.append(scriptedReport(last, 1_001, 1_001), false);
    one?.push(scriptedReport(first, 1_001, 1_001));
    expect(await take(2)).toEqual([1_001, 1_001]);
    await reached(isLive);
    expect(reports.state).toEqual({ phase: 'live', feedIds: ids.slice(100) });
    expect(states.filter(isLive)).toHaveLength(3);
    reports.close();
    expect(service.live()).toEqual([]);
  },
);

test('groups: a stream is live when all of its connections are', async () => {
  const service = createScriptedService();
  service.refusals.push({ status: 503, headers: { 'Retry-After': '3600' } });
  const { reached, reports } = watch(service, feedIds(101), { transport: 'websocket' });
  const state = await reached(isLive);
  expect(state).toMatchObject({ feedIds: feedIds(101).slice(100) });
  expect(reports.state).toMatchObject({ phase: 'reconnecting', feedIds: feedIds(100) });
  reports.close();
});
