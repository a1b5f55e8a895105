import { errorTable, type Route, type RouteName, routes } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { sampleRequest as request } from '../../../tests/support/samples.ts';
import { readText } from '../../../tests/support/source-tree.ts';
import { rejections } from '../ingest/rejections.ts';
import type { Silence } from '../store/freshness.ts';
import type { Readings } from './metrics.ts';
import { createMetrics, type Metrics, type MetricValues, renderMetrics, sumMetrics, totalsOf } from './metrics.ts';
import { warningCodes } from './observe.ts';

const calm: Readings = {
  activeRequests: () => 3,
  silences: () => [],
  isReady: async () => true,
  certificateEndMs: () => 1_763_200_000_500,
  storeMapBytes: async () => 8_192,
};
const open = (readings: Partial<Readings> = {}) => createMetrics({ readings: { ...calm, ...readings } });

/** The lines of a text that begin with a name and end with a value. */
const linesOf = (text: string, name: string) =>
  text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
const textOf = async (metrics: { values: () => Promise<readonly MetricValues[]> }) =>
  renderMetrics(await metrics.values());

test('metrics: a request is counted in its bucket, by the path of its route, its method and its status', async () => {
  const metrics = open();
  metrics.observe(request({ durationMs: 0.4 }));
  metrics.observe(request({ durationMs: 0.5 }));
  metrics.observe(request({ durationMs: 30_000 }));
  const text = await textOf(metrics);
  const labels = 'http_request_method="GET",http_route="/api/v1/reports/latest",http_response_status_code="200"';
  const name = 'sealpost_http_server_request_duration_seconds';
  expect(text).toContain(`${name}_bucket{le="0.0005",${labels}} 2\n`);
  expect(text).toContain(`${name}_bucket{le="10",${labels}} 2\n`);
  expect(text).toContain(`${name}_bucket{le="+Inf",${labels}} 3\n`);
  expect(text).toContain(`${name}_count{${labels}} 3\n`);
  expect(linesOf(text, `${name}_bucket`).map((line) => /le="([^"]+)"/.exec(line)?.[1])).toEqual([
    ...['0.0005', '0.001', '0.0025', '0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10'],
    '+Inf',
  ]);
  expect(Number(linesOf(text, `${name}_sum`)[0]?.split(' ').at(-1))).toBeCloseTo(30.0009, 9);
});

test('metrics: a scanner’s requests add no series', async () => {
  const metrics = open();
  for (const method of ['BREW', 'PROPFIND', 'POST', 'TRACE'])
    metrics.observe(request({ route: null, method, status: 405, code: 'method_not_allowed' }));
  expect(linesOf(await textOf(metrics), 'sealpost_http_server_failed_requests_total')).toEqual([
    'sealpost_http_server_failed_requests_total{http_request_method="_OTHER",http_route="unmatched",http_response_status_code="405"} 4',
  ]);
});

test('metrics: durations of failed requests are those of their status; route and method are in a counter', async () => {
  const metrics = open();
  const failed = { status: 404, code: 'report_not_found' } as const;
  for (const route of ['reportLatest', 'reportAt'] as const) metrics.observe(request({ ...failed, route }));
  metrics.observe(request({ ...failed, route: 'reportAt', method: 'HEAD', durationMs: 2 }));
  metrics.observe(request({ status: 304 }));
  const text = await textOf(metrics);
  const duration = 'sealpost_http_server_request_duration_seconds';
  expect(linesOf(text, `${duration}_count`)).toEqual([
    `${duration}_count{http_response_status_code="404"} 3`,
    `${duration}_count{http_request_method="GET",http_route="/api/v1/reports/latest",http_response_status_code="304"} 1`,
  ]);
  expect(text).toContain(`${duration}_bucket{le="0.001",http_response_status_code="404"} 2\n`);
  const counter = 'sealpost_http_server_failed_requests_total';
  expect(linesOf(text, counter)).toEqual([
    `${counter}{http_request_method="GET",http_route="/api/v1/reports/latest",http_response_status_code="404"} 1`,
    `${counter}{http_request_method="GET",http_route="/api/v1/reports",http_response_status_code="404"} 1`,
    `${counter}{http_request_method="HEAD",http_route="/api/v1/reports",http_response_status_code="404"} 1`,
  ]);
});

test('metrics: the code of an answer decides which other counters it increments', async () => {
  const metrics = open();
  const answer = (status: number, code: string) => metrics.observe(request({ status, code }));
  answer(401, 'unauthorized');
  answer(401, 'unauthorized');
  answer(400, 'clock_skew');
  answer(429, 'too_many_failures');
  answer(429, 'rate_limited');
  answer(503, 'overloaded');
  answer(404, 'report_not_found');
  metrics.observe({ kind: 'connectionDropped', reason: 'connections' });
  const text = await textOf(metrics);
  expect(linesOf(text, 'sealpost_auth_failures_total')).toEqual([
    'sealpost_auth_failures_total{reason="missing_header"} 0',
    'sealpost_auth_failures_total{reason="malformed_header"} 0',
    'sealpost_auth_failures_total{reason="repeated_header"} 0',
    'sealpost_auth_failures_total{reason="clock_skew"} 1',
    'sealpost_auth_failures_total{reason="unauthorized"} 2',
    'sealpost_auth_failures_total{reason="stream_not_accessible"} 0',
    'sealpost_auth_failures_total{reason="signature_used"} 0',
    'sealpost_auth_failures_total{reason="too_many_failures"} 1',
  ]);
  expect(text).toContain('\nsealpost_rate_limited_total 2\n');
  expect(text).toContain('\nsealpost_shed_total 2\n');
});

test('metrics: warnings are counted by code, each of which starts at 0 and is in docs/metrics.md', async () => {
  const metrics = open();
  const counts = async (): Promise<string> => linesOf(await textOf(metrics), 'sealpost_warnings_total').join('\n');
  expect((await counts()).match(/\} 0$/gm)).toHaveLength(warningCodes.length);
  metrics.observe({ kind: 'warning', code: 'worker_ended', message: 'one' });
  metrics.observe({ kind: 'warning', code: 'worker_ended', message: 'another' });
  for (const isNews of [true, false])
    metrics.observe({ kind: 'adminReloadFailed', error: new Error('a test'), isNews });
  expect(await counts()).toContain('{code="worker_ended"} 2');
  expect(await counts()).toContain('{code="admin_reload_failed"} 2');
  const listed = [...readText('docs/metrics.md').matchAll(/^ {2}- `(\w+)`: /gm)].map(([, code]) => code);
  expect(listed).toEqual([...warningCodes]);
});

test('metrics: stale readers are those of the last check', async () => {
  const metrics = open();
  expect(await textOf(metrics)).toContain('\nsealpost_store_stale_readers 0\n');
  for (const count of [3, 1]) metrics.observe({ kind: 'staleReaders', count });
  expect(await textOf(metrics)).toContain('\nsealpost_store_stale_readers 1\n');
});

test('metrics: reports are counted by result, and every result starts at 0', async () => {
  const metrics = open();
  metrics.observe({ kind: 'ingested', result: 'stored', count: 40 });
  metrics.observe({ kind: 'ingested', result: 'duplicate', count: 2 });
  metrics.observe({ kind: 'refused', code: 'conflicting_report', feedId: null, message: '' });
  const lines = linesOf(await textOf(metrics), 'sealpost_reports_ingested_total');
  expect(lines).toHaveLength(2 + Object.keys(rejections).length);
  expect(lines.filter((line) => !line.endsWith(' 0'))).toEqual([
    'sealpost_reports_ingested_total{result="stored"} 40',
    'sealpost_reports_ingested_total{result="duplicate"} 2',
    'sealpost_reports_ingested_total{result="conflicting_report"} 1',
  ]);
});

test('metrics: reports that retention deleted are counted, from 0', async () => {
  const metrics = open();
  expect(await textOf(metrics)).toContain('\nsealpost_reports_deleted_total 0\n');
  for (const count of [3, 40]) metrics.observe({ kind: 'reportsDeleted', count, endMs: 5 });
  expect(await textOf(metrics)).toContain('\nsealpost_reports_deleted_total 43\n');
});

test('metrics: commits and the time to visibility are measured, once for each report of a batch', async () => {
  const metrics = open();
  metrics.observe({ kind: 'committed', seconds: 0.004 });
  metrics.observe({ kind: 'visible', seconds: 0.02, count: 256 });
  const text = await textOf(metrics);
  expect(text).toContain(
    'sealpost_store_commit_seconds_bucket{le="0.0025"} 0\nsealpost_store_commit_seconds_bucket{le="0.005"} 1\n',
  );
  expect(text).toContain('sealpost_report_ingest_to_visible_seconds_bucket{le="0.025"} 256\n');
  expect(text).toContain('sealpost_report_ingest_to_visible_seconds_count 256\n');
});

test('metrics: staleness is the worst of all streams and the number over the threshold, read on request', async () => {
  let silences: Silence[] = [];
  const metrics = open({ silences: () => silences });
  expect(await textOf(metrics)).toContain('\nsealpost_stream_staleness_seconds 0\n');
  const minutes = { maxMs: 60_000 };
  silences = [
    { silentMs: 1_000, ...minutes },
    { silentMs: 60_000, ...minutes },
    { silentMs: 61_500, ...minutes },
    { silentMs: 61_400, maxMs: 300_000 },
    { silentMs: Number.POSITIVE_INFINITY, ...minutes },
  ];
  const text = await textOf(metrics);
  expect(text).toContain('\nsealpost_stream_staleness_seconds 61.5\n');
  expect(text).toContain('\nsealpost_streams_stale 2\n');
});

test('metrics: readiness, and when the certificate expires', async () => {
  let isReady = true;
  const metrics = open({ isReady: async () => isReady });
  expect(await textOf(metrics)).toMatch(
    /\nsealpost_ready 1\n(?:.*\n)*sealpost_tls_certificate_end_seconds 1763200000.5\n/,
  );
  isReady = false;
  expect(await textOf(metrics)).toContain('\nsealpost_ready 0\n');
});

test('metrics: a value that cannot be read is left out, and the others remain', async () => {
  let broken = false;
  const failing = () => {
    if (broken) throw new Error('the store is closed');
    return 5;
  };
  const metrics = open({ storeMapBytes: async () => failing(), silences: () => [{ silentMs: failing(), maxMs: 1 }] });
  expect(linesOf(await textOf(metrics), 'sealpost_store_map_bytes')).toEqual(['sealpost_store_map_bytes 5']);
  broken = true;
  const text = await textOf(metrics);
  for (const name of ['sealpost_store_map_bytes', 'sealpost_stream_staleness_seconds', 'sealpost_streams_stale'])
    expect(linesOf(text, name)).toEqual([]);
  expect(linesOf(text, 'sealpost_http_server_active_requests')).toEqual(['sealpost_http_server_active_requests 3']);
});

test('metrics: a value that is not read in time is left out, is not read twice at once, and comes back', async () => {
  const waiting: ((bytes: number) => void)[] = [];
  const metrics = open({ storeMapBytes: () => new Promise((resolve) => waiting.push(resolve)) });
  for (let i = 0; i < 2; i++) {
    const text = await textOf(metrics);
    expect(linesOf(text, 'sealpost_store_map_bytes')).toEqual([]);
    expect(linesOf(text, 'sealpost_http_server_active_requests')).toEqual(['sealpost_http_server_active_requests 3']);
  }
  expect(waiting).toHaveLength(1);
  waiting[0]?.(5);
  await new Promise((resolve) => setImmediate(resolve));
  const text = textOf(metrics);
  await expect.poll(() => waiting[1]).toBeDefined();
  waiting[1]?.(6);
  expect(linesOf(await text, 'sealpost_store_map_bytes')).toEqual(['sealpost_store_map_bytes 6']);
});

test('metrics: the values of several processes add up after a round trip as JSON', async () => {
  const [one, two] = [7_000, 70_000].map((silentMs) => open({ silences: () => [{ silentMs, maxMs: 1 }] })) as [
    Metrics,
    Metrics,
  ];
  one.observe(request());
  two.observe(request());
  two.observe(request({ route: 'time', code: null }));
  const parts = JSON.parse(JSON.stringify([await one.values(), await two.values()]));
  const text = await renderMetrics(await sumMetrics(parts));
  const counts = linesOf(text, 'sealpost_http_server_request_duration_seconds_count').map(
    (line) => line.split('http_route=')[1],
  );
  expect(counts).toEqual([
    '"/api/v1/reports/latest",http_response_status_code="200"} 2',
    '"/time",http_response_status_code="200"} 1',
  ]);
  expect(text).toContain('\nsealpost_http_server_active_requests 6\n');
  expect(text).toContain('\nsealpost_store_map_bytes 8192\n');
  expect(text).toContain('\nsealpost_stream_staleness_seconds 70\n');
  expect(text).toMatch(/\nprocess_start_time_seconds \d{10}\n/);
  expect(text).not.toMatch(/ (null|undefined|NaN|Nan)$/m);
});

test('metrics: counters of an exited process stay in the sum, its gauges do not', async () => {
  const [gone, here] = [open(), open()];
  gone.observe(request({ status: 503, code: 'overloaded' }));
  here.observe(request());
  const text = await renderMetrics(await sumMetrics([totalsOf(await gone.values()), await here.values()]));
  expect(text).toContain('\nsealpost_shed_total 1\n');
  expect(linesOf(text, 'sealpost_http_server_request_duration_seconds_count')).toHaveLength(2);
  expect(text).toContain('\nsealpost_http_server_active_requests 3\n');
});

test('metrics: the counts of each status equal what was sent', async () => {
  const metrics = open();
  const sent = new Map<number, number>();
  const names = Object.keys(routes) as RouteName[]; // the table's own keys
  const statuses = [200, 206, 304, 400, 401, 404, 429, 503];
  for (let i = 0; i < 100_000; i += 1) {
    const status = statuses[(i * 7) % statuses.length] as number; // within bounds
    sent.set(status, (sent.get(status) ?? 0) + 1);
    metrics.observe(request({ route: names[i % names.length] as RouteName, status, durationMs: (i % 300) / 10 })); // as above
  }
  const counted = new Map<number, number>();
  for (const line of linesOf(await textOf(metrics), 'sealpost_http_server_request_duration_seconds_count')) {
    const [, status, count] = /status_code="(\d+)"} (\d+)$/.exec(line) ?? [];
    counted.set(Number(status), (counted.get(Number(status)) ?? 0) + Number(count));
  }
  expect([...counted].sort()).toEqual([...sent].sort());
});

test('metrics: live connections are counted while they last, their reports, and why the server ended them', async () => {
  const metrics = open();
  const over = { requestId: '1', userId: '2', messages: 1, bytes: 1, durationMs: 1 };
  for (const route of ['socket', 'socket', 'socket', 'reportStream'] as const)
    metrics.observe({ kind: 'liveOpened', route });
  metrics.observe({ kind: 'liveDelivered', route: 'socket', count: 24 });
  metrics.observe({ kind: 'liveEnded', route: 'socket', ...over, reason: 'too_slow', closeCode: 1013 });
  metrics.observe({ kind: 'liveEnded', route: 'socket', ...over, reason: null, closeCode: 1000 });
  const text = await textOf(metrics);
  expect(linesOf(text, 'sealpost_live_connections').sort()).toEqual([
    'sealpost_live_connections{http_route="/api/v1/reports/stream"} 1',
    'sealpost_live_connections{http_route="/api/v1/ws"} 1',
    'sealpost_live_connections{http_route="/api/v2/ws"} 0',
  ]);
  expect(text).toContain('sealpost_live_messages_total{http_route="/api/v1/ws"} 24\n');
  expect(linesOf(text, 'sealpost_live_dropped_total').filter((line) => !line.endsWith(' 0'))).toEqual([
    'sealpost_live_dropped_total{reason="too_slow"} 1',
  ]);
});

/** Every answer that a request of a route may get, by the tables. */
const statusesOf = ({ auth, answers, transport }: Route): number[] => [
  ...Object.keys(answers).map(Number),
  ...(transport === 'websocket' ? [426] : []),
  ...(auth === 'none' ? [400, 500, 503] : [400, 401, 429, 500, 503]),
  499,
];

test('metrics: 10,000 accounts and 10,000 streams make at most 2,000 series, whatever is asked and answered', async () => {
  const metrics = open({ silences: () => Array.from({ length: 10_000 }, (_, i) => ({ silentMs: i, maxMs: 1 })) });
  for (let user = 0; user < 10_000; user += 1) metrics.observe(request({ userId: `user-${user}` }));
  for (const [name, route] of Object.entries<Route>(routes))
    for (const method of new Set([route.method, 'HEAD']))
      for (const status of statusesOf(route)) metrics.observe(request({ route: name as RouteName, method, status })); // the table's own keys
  for (const method of ['GET', 'HEAD'])
    for (const status of [200, 304, 308, 500, 503]) metrics.observe(request({ route: 'explorer', method, status }));
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'BREW'])
    for (const { status } of Object.values(errorTable)) metrics.observe(request({ route: null, method, status }));
  metrics.observe(request({ route: null, method: 'OPTIONS', status: 204 }));
  const series = (await textOf(metrics)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(series.length).toBeLessThanOrEqual(2_000);
  expect(series.length).toBeGreaterThan(1_000); // else it did not observe what it says
  expect(series.join('\n')).not.toMatch(/user-|0x[0-9a-f]{64}/);
});

test.runIf(process.platform === 'linux')(
  'metrics: docs/metrics.md lists exactly these, with type and labels',
  async () => {
    const metrics = open();
    for (const status of [200, 400]) metrics.observe(request({ status }));
    const rows = [...readText('docs/metrics.md').matchAll(/^\| `(\w+)` +\| (\w+) +\| ([^|]*?) *\|/gm)];
    const documented = rows.map(([, name = '', type = '', labels = '']) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label as string).sort(), // the group takes part
    }));
    const exported = (await metrics.values()).map(({ name, type, values }) => ({
      name,
      type,
      labels: [...new Set(values.flatMap(({ labels }) => Object.keys(labels)))]
        .filter((label) => label !== 'le')
        .sort(),
      shown: values.length > 0,
    }));
    // What has no value at the moment, a collection of garbage say, shows no labels to compare.
    const labelsOf = new Map(documented.map(({ name, labels }) => [name, labels]));
    const known = exported.map(({ shown, ...one }) => (shown ? one : { ...one, labels: labelsOf.get(one.name) ?? [] }));
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
    expect(documented.sort(byName)).toEqual(known.sort(byName));
  },
);

test('metrics: every name begins with sealpost_, except those that Node programs share', async () => {
  const names = (await open().values()).map(({ name }) => name);
  expect(names.filter((name) => !/^(sealpost|process|nodejs)_/.test(name))).toEqual([]);
  expect(names.filter((name) => name.startsWith('sealpost_'))).toHaveLength(32);
});
