import { decodeFullReport, type FeedId, headlinePriceOf, readReportBody } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { generateHistory, type HistoryOptions } from './history.ts';
import type { DeliveredReport } from './simulation.ts';
import { createStreams } from './streams.ts';
import { openThreads } from './threads.ts';

const from = Date.parse('2025-11-03T14:29:00Z') / 1_000;
const options = { seed: 'demo', from, to: from + 29, workers: 0 } as const;

const collectBatches = async (settings: HistoryOptions): Promise<readonly (readonly DeliveredReport[])[]> => {
  const batches: (readonly DeliveredReport[])[] = [];
  for await (const batch of generateHistory(settings)) batches.push(batch);
  return batches;
};

const collect = async (settings: HistoryOptions) => (await collectBatches(settings)).flat();

const feedIdOf = (name: string): FeedId =>
  createStreams('testnet').find(({ stream }) => stream.name === name)?.stream.feedId as FeedId; // in the table

const btc = feedIdOf('BTC/USD-Streams-CexPrice');

// The events of Node itself tell of every worker thread that is started.
const watchThreads = () => {
  const started: { threadId: number; terminate: () => Promise<number> }[] = [];
  const listen = (worker: (typeof started)[number]) => started.push(worker);
  process.on('worker', listen);
  return { started, stop: () => process.off('worker', listen) };
};

test('worker threads give the same bytes in the same order as the calling thread', async () => {
  const late = [{ feedId: btc, from: from + 3, to: from + 20, delaySeconds: 17 }];
  const local = await collect({ ...options, late });
  expect(local.length).toBeGreaterThan(520);
  expect(await collect({ ...options, late, workers: 2 })).toEqual(local);
});

test('two halves of a range give the same reports as the whole', async () => {
  const whole = await collect(options);
  const halves = [
    ...(await collect({ ...options, to: from + 9 })),
    ...(await collect({ ...options, from: from + 10 })),
  ];
  expect(halves).toEqual(whole);
});

test('another seed gives other bytes for the same streams', async () => {
  const short = { ...options, to: from + 1, feedIds: [btc] };
  const [ours, theirs] = await Promise.all([collect(short), collect({ ...short, seed: 'other' })]);
  expect(ours.map(({ report }) => report.feedID)).toEqual(theirs.map(({ report }) => report.feedID));
  expect(ours[0]?.report.fullReport).not.toBe(theirs[0]?.report.fullReport);
});

test('reports come in delivery order, late ones after the range if necessary, and no batch is empty', async () => {
  const late = [{ feedId: btc, from: from + 4, to: from + 5, delaySeconds: 100 }];
  const batches = await collectBatches({ ...options, to: from + 5, feedIds: [btc], late });
  const deliveries = batches.flat();
  expect(batches.every((batch) => batch.length > 0)).toBe(true);
  expect(deliveries.map(({ deliveredAt }) => deliveredAt - from)).toEqual([0, 1, 2, 3, 104, 105]);
  expect(deliveries.map(({ report }) => report.observationsTimestamp - from)).toEqual([0, 1, 2, 3, 4, 5]);
});

test('a decommissioned stream yields nothing after its last instant', async () => {
  const decommissioned = Date.parse('2025-05-13T00:00:00Z') / 1_000;
  const feedIds = [feedIdOf('FTM/USD-Streams-CexPrice')];
  const reports = await collect({ ...options, feedIds, from: decommissioned - 2, to: decommissioned + 500 });
  expect(reports.map(({ deliveredAt }) => deliveredAt - decommissioned)).toEqual([-2, -1, 0]);
});

test('a range before every stream is empty', async () => {
  expect(await collect({ ...options, from: 0, to: 1_000_000_000 })).toEqual([]);
});

test('returning early ends the threads', async () => {
  const { started, stop } = watchThreads();
  for await (const batch of generateHistory({ ...options, to: from + 86_400, workers: 2 })) {
    expect(batch.length).toBeGreaterThan(0);
    break;
  }
  stop();
  expect(started.map(({ threadId }) => threadId)).toEqual([-1, -1]); // what Node says of threads that have ended
});

test('a thread that dies ends the history with an error', async () => {
  const { started, stop } = watchThreads();
  const history = collect({ ...options, workers: 1 });
  while (started.length === 0) await new Promise(setImmediate);
  stop();
  await started[0]?.terminate();
  await expect(history).rejects.toThrow('A simulator thread ended early');
});

test('an error inside a thread reaches the caller', async () => {
  const threads = openThreads(1, { seed: 'demo', n: 3, f: 1, observed: { from, to: from } });
  await expect(threads.sign({ deliveredFrom: from, deliveredTo: from })).rejects.toThrow(
    'n is 3, expected more than 3f',
  );
  await expect(threads.sign({ deliveredFrom: from, deliveredTo: from })).rejects.toThrow(
    'n is 3, expected more than 3f',
  );
  await threads.close();
});

test.each([
  [{ from: 1.5 }, /expected whole Unix seconds/],
  [{ to: 2 ** 32 }, /expected whole Unix seconds/],
  [{ workers: -1 }, /expected a whole number from 0 to 64/],
])('invalid options are rejected: %o', async (wrong, message) => {
  await expect(collect({ ...options, ...wrong })).rejects.toThrow(message);
});

test('with fewer reports of each stream, the windows are contiguous with those of every second, and the prices the same', async () => {
  const start = Math.ceil(from / 60) * 60;
  const [every, fewer] = await Promise.all([
    collect({ ...options, from: start, to: start + 359 }),
    collect({ ...options, from: start, to: start + 299, everySeconds: 30 }),
  ]);
  for (const { stream, intervalSeconds } of createStreams('testnet')) {
    const ours = ({ report }: DeliveredReport): boolean => report.feedID === stream.feedId;
    const exact = every.filter(ours).map(({ report }) => report);
    const rest = exact.filter(({ observationsTimestamp }) => observationsTimestamp >= start + 300);
    const joined = [...fewer.filter(ours).map(({ report }) => report), ...rest];
    expect(joined.length).toBe(exact.length === 0 ? 0 : 300 / Math.max(30, intervalSeconds) + 60 / intervalSeconds);
    expect(joined[0]?.validFromTimestamp).toBe(exact[0]?.validFromTimestamp);
    for (const [i, { validFromTimestamp }] of joined.entries())
      if (i > 0) expect(validFromTimestamp).toBe((joined[i - 1]?.observationsTimestamp ?? 0) + 1);
    const priceOf = ({ fullReport }: { fullReport: string }) =>
      headlinePriceOf(readReportBody(decodeFullReport(fullReport as `0x${string}`).body)); // of the simulator
    for (const one of joined)
      expect(priceOf(one)).toBe(
        priceOf(exact.find(({ observationsTimestamp }) => observationsTimestamp === one.observationsTimestamp) ?? one),
      );
  }
  await expect(collect({ ...options, everySeconds: 7 })).rejects.toThrow('everySeconds is 7');
});

test('the newest batch comes first, with the same reports', async () => {
  const settings = { ...options, from: from + 15, to: from + 174, everySeconds: 10 };
  const batches = await collectBatches(settings);
  expect(batches.length).toBeGreaterThan(1);
  expect((await collectBatches({ ...settings, newestFirst: true, workers: 1 })).toReversed()).toEqual(batches);
});
