import { expect, test } from 'vitest';
import { createMetrics, type MetricValues, renderMetrics, sumMetrics } from '../observe/metrics.ts';
import { createWorkerTotals, replaceAfterMs } from './primary.ts';

const unknown = (): never => {
  throw new Error('not known here');
};

/** A worker's metrics after so many answers. */
const workerWith = async (answers: number): Promise<readonly MetricValues[]> => {
  const metrics = createMetrics({
    readings: {
      activeRequests: () => 1,
      silences: unknown,
      isReady: unknown,
      certificateEndMs: unknown,
      storeMapBytes: unknown,
    },
  });
  const request = {
    kind: 'request',
    route: 'time',
    method: 'GET',
    status: 200,
    code: null,
    userId: null,
    address: '',
  } as const;
  for (let i = 0; i < answers; i++) metrics.observe({ ...request, requestId: '1', bytes: 1, durationMs: 1 });
  return metrics.values();
};

const shown = async (parts: readonly (readonly MetricValues[])[]) => {
  const text = await renderMetrics(await sumMetrics(parts));
  const numberOf = (name: string): number => Number(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'm').exec(text)?.[1]);
  return {
    requests: numberOf('sealpost_http_server_request_duration_seconds_count'),
    active: numberOf('sealpost_http_server_active_requests'),
  };
};

test('totals: running workers add up, with the last values of each', async () => {
  const totals = createWorkerTotals();
  totals.told(1, await workerWith(3));
  totals.told(2, await workerWith(4));
  totals.told(1, await workerWith(5));
  expect(await shown(await totals.parts())).toEqual({ requests: 9, active: 2 });
});

test('totals: counters of exited workers stay in the sum, gauges do not', async () => {
  const totals = createWorkerTotals();
  totals.told(1, await workerWith(3));
  totals.told(2, await workerWith(4));
  totals.ended(1);
  expect(await shown(await totals.parts())).toEqual({ requests: 7, active: 1 });
  totals.told(3, await workerWith(10));
  totals.ended(2);
  expect(await shown(await totals.parts())).toEqual({ requests: 17, active: 1 });
});

test('totals: a worker that ends while they are read is counted once', async () => {
  const totals = createWorkerTotals();
  totals.told(1, await workerWith(3));
  const parts = totals.parts();
  totals.ended(1);
  expect((await shown(await parts)).requests).toBe(3);
  expect((await shown(await totals.parts())).requests).toBe(3);
});

test('totals: a worker that exits before it reported changes nothing', async () => {
  const totals = createWorkerTotals();
  totals.ended(1);
  expect(totals.countOf(1)).toBe(0);
  expect(await totals.parts()).toEqual([[]]);
});

test('primary: a worker that exits is replaced at once, one that cannot start with growing pauses', () => {
  expect([0, 1, 2, 3, 7, 8, 1_000].map(replaceAfterMs)).toEqual([0, 100, 200, 400, 6_400, 10_000, 10_000]);
});
