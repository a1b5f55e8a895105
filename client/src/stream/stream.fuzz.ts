import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  createScriptedService,
  feedA,
  feedB,
  isLive,
  type ScriptedService,
  scriptedReport,
  watch,
} from './script.fixture.ts';

type Step =
  | { readonly act: 'append'; readonly feed: number; readonly width: number; readonly gap: number }
  | { readonly act: 'push'; readonly origin: number; readonly count: number }
  | { readonly act: 'again' | 'cut' | 'down' | 'up'; readonly origin: number }
  | { readonly act: 'refusePage' | 'turn' };

const origin = fc.nat({ max: 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('append' as const),
      feed: fc.nat({ max: 1 }),
      width: fc.integer({ min: 1, max: 3 }),
      gap: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 9 })),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ act: fc.constant('push' as const), origin, count: fc.integer({ min: 1, max: 9 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom('again' as const, 'cut' as const, 'down' as const, 'up' as const),
      origin,
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constantFrom('refusePage' as const, 'turn' as const) }) },
);

/** What has not arrived by then never arrives. */
const patienceMs = 5_000;

const eventLoopTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Every origin pushes at its own pace; it does not push what was stored before a connection opened. */
const createPushers = (service: ScriptedService) => {
  const next = new Map<object, number>();
  const begin = (): void => {
    for (const connection of service.live())
      if (!next.has(connection)) {
        const after = Number(connection.lastEventId ?? service.stored.length);
        next.set(connection, connection.lastEventId === undefined ? after : service.stored.length);
      }
  };
  const push = (index: number, count: number): void => {
    const connection = service.live().find((one) => one.origin === `00${index + 1}`);
    if (connection === undefined) return;
    const from = next.get(connection) ?? 0;
    const reports = service.stored.slice(from, from + count);
    for (const [i, report] of reports.entries()) connection.push(report, from + i + 1);
    next.set(connection, from + reports.length);
  };
  return { begin, push };
};

const run = async (
  transport: 'sse' | 'websocket',
  steps: readonly Step[],
  queueMax: number,
  links: boolean,
): Promise<void> => {
  const service = createScriptedService(['001', '002']);
  service.manners.links = links;
  const { reports, reached } = watch(service, [feedA, feedB], { transport, ha: true, from: 1_000, queueMax });
  const pushers = createPushers(service);
  const ends = [999, 999];
  const got: Record<string, number[]> = { [feedA]: [], [feedB]: [] };
  let taken = 0;
  const consuming = (async () => {
    for await (const { feedID, observationsTimestamp } of reports) {
      got[feedID]?.push(observationsTimestamp);
      taken += 1;
    }
  })();
  await reached(isLive);
  for (const one of steps) {
    pushers.begin();
    const name = 'origin' in one ? `00${one.origin + 1}` : '';
    const connection = service.live().find((candidate) => candidate.origin === name);
    if (one.act === 'append') {
      const validFrom = (ends[one.feed] as number) + 1 + one.gap; // one end per feed
      ends[one.feed] = validFrom + one.width - 1;
      service.append(scriptedReport(one.feed === 0 ? feedA : feedB, validFrom, validFrom + one.width - 1), false);
    } else if (one.act === 'push') pushers.push(one.origin, one.count);
    else if (one.act === 'again') for (const report of service.stored.slice(-3)) connection?.push(report);
    else if (one.act === 'cut') connection?.cut();
    else if (one.act === 'down') {
      service.down.add(name);
      connection?.cut();
    } else if (one.act === 'up') service.down.delete(name);
    else if (one.act === 'refusePage') service.pageRefusals.push({ status: 503 });
    if (one.act === 'turn') await eventLoopTurn();
    pushers.begin();
  }
  // The network recovers: all origins reconnect, after short timers, and push the rest.
  service.down.clear();
  const endMs = performance.now() + patienceMs;
  while (taken < service.stored.length && performance.now() < endMs) {
    await eventLoopTurn();
    pushers.begin();
    pushers.push(0, 100);
    pushers.push(1, 100);
  }
  for (let i = 0; i < 5; i += 1) await eventLoopTurn();
  const want = (feed: string) =>
    service.stored.filter(({ feedID }) => feedID === feed).map(({ observationsTimestamp }) => observationsTimestamp);
  reports.close();
  await consuming;
  expect(got).toEqual({ [feedA]: want(feedA), [feedB]: want(feedB) });
};

test.each(['sse', 'websocket'] as const)(
  'stream over %s: whatever is cut, repeated, late or missing, every stored report comes once and in order',
  async (transport) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.constantFrom(2, 1_000),
        fc.boolean(),
        (steps, queueMax, links) => run(transport, steps, queueMax, links),
      ),
      { numRuns: 150 },
    );
  },
);
