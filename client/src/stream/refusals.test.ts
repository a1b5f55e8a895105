import { type ErrorCode, errorTable } from '@sealpost/protocol';
import { describe, expect, test, vi } from 'vitest';
import { createScriptedService, feedA, isLive, isReconnecting, scriptedReport, watch } from './script.fixture.ts';

const second = (at: number) => scriptedReport(feedA, at, at);

/**
 * What each code of the server means for a stream. `ends`: the same request fails again. `corrects`: signed once more with the server's
 * time. `again`: retried later.
 */
const meanings: Readonly<Record<ErrorCode, 'ends' | 'corrects' | 'again'>> = {
  malformed_target: 'ends',
  repeated_host: 'ends',
  unexpected_body: 'ends',
  missing_header: 'ends',
  malformed_header: 'ends',
  repeated_header: 'ends',
  clock_skew: 'corrects',
  missing_argument: 'ends',
  malformed_argument: 'ends',
  repeated_argument: 'ends',
  timestamp_out_of_bounds: 'ends',
  unknown_origin: 'again',
  unauthorized: 'ends',
  stream_not_accessible: 'ends',
  signature_used: 'again',
  route_not_found: 'ends',
  report_not_found: 'again',
  method_not_allowed: 'ends',
  request_timeout: 'again',
  upgrade_required: 'ends',
  rate_limited: 'again',
  too_many_failures: 'again',
  too_many_sockets: 'again',
  head_too_large: 'ends',
  internal_error: 'again',
  store_unavailable: 'again',
  overloaded: 'again',
  draining: 'again',
};
const codes = Object.entries(meanings) as [ErrorCode, (typeof meanings)[ErrorCode]][]; // its own keys

describe.each(['sse', 'websocket'] as const)('stream over %s', (transport) => {
  test.each(codes)('after %s it %s', async (code, meaning) => {
    const service = createScriptedService();
    const { status } = errorTable[code];
    service.refusals.push({ status, code });
    const { reached, take, states, reports } = watch(service, [feedA], { transport });
    if (transport === 'sse' && [404, 405, 426].includes(status) && meaning === 'ends') {
      // No event stream there: a WebSocket is tried instead.
      await reached(isLive);
      expect(service.attempts.map(({ url }) => new URL(url).protocol)).toEqual(['http:', 'ws:']);
      return reports.close();
    }
    if (meaning === 'ends') {
      await expect(take(1)).rejects.toMatchObject({ code, status });
      expect(service.attempts).toHaveLength(1);
      return;
    }
    await reached(isLive);
    expect(service.attempts).toHaveLength(2);
    expect(states.find(isReconnecting)).toMatchObject({ reason: `Scripted ${status}.` });
    expect(service.pages).toEqual(meaning === 'corrects' ? ['/api/v1/feeds'] : []);
    reports.close();
  });

  test('a clock that is rejected again after being live is corrected again', async () => {
    const service = createScriptedService();
    const { reached, states, reports } = watch(service, [feedA], { transport });
    for (let life = 1; life <= 3; life += 1) {
      await reached(isLive);
      service.refusals.push({ status: 400, code: 'clock_skew' });
      service.live()[0]?.cut();
      await expect.poll(() => states.filter(isLive).length).toBe(life + 1);
    }
    reports.close();
  });

  test('origins that have changed are read again, and nothing is lost', async () => {
    const origins = ['001', '002'];
    const service = createScriptedService(origins);
    const { reached, take, reports, states } = watch(service, [feedA], { transport, ha: true });
    await reached((state) => isLive(state) && service.live().length === 2);
    service.append(second(1_000));
    origins.splice(0, 2, '003');
    service.refusals.push({ status: 400, code: 'unknown_origin' });
    service.live()[0]?.cut();
    service.append(second(1_001), false);
    await reached((state) => isLive(state) && 'origin' in state && state.origin === '003');
    service.append(second(1_002));
    expect(await take(3)).toEqual([1_000, 1_001, 1_002]);
    expect(service.live().map(({ origin }) => origin)).toEqual(['003']);
    expect(reports.state).toEqual({ phase: 'live', origin: '003' });
    expect(states.filter(isReconnecting).at(-1)).toMatchObject({ reason: 'Scripted 400.' });
    reports.close();
  });

  test('a report past retention is a gap, reported once, and the stream continues', async () => {
    const service = createScriptedService();
    const gaps: unknown[] = [];
    const { reached, take, reports } = watch(service, [feedA], { transport, onGap: (gap) => gaps.push(gap) });
    await reached(isLive);
    service.append(second(1_000));
    expect(await take(1)).toEqual([1_000]);
    const tooOld = { status: 400, code: 'timestamp_out_of_bounds', details: { oldestTimestamp: 5_000 } };
    // The page that follows the gap fails once, and the gap is found again.
    service.pageRefusals.push(tooOld, { status: 503 }, tooOld);
    service.down.add(undefined);
    service.live()[0]?.cut();
    service.append(second(5_000), false);
    service.down.clear();
    await reached(isLive);
    // An event stream that resumes gets what it missed from the server itself; a hole sends it to REST.
    service.append(second(5_002));
    expect(await take(2)).toEqual([5_000, 5_002]);
    expect(gaps).toEqual([{ feedId: feedA, from: 1_001, to: 5_000 }]);
    reports.close();
  });
});

test('stream: without a listener a gap is a warning on the console', async ({ onTestFinished }) => {
  const { warn } = console;
  const warned: unknown[] = [];
  console.warn = (text: unknown) => void warned.push(text);
  onTestFinished(() => {
    console.warn = warn;
  });
  const service = createScriptedService();
  service.append(second(60));
  const details = { oldestTimestamp: 50 };
  service.pageRefusals.push({ status: 400, code: 'timestamp_out_of_bounds', details });
  const { take, reports } = watch(service, [feedA], { from: 10 });
  expect(await take(1)).toEqual([60]);
  expect(warned).toEqual([
    `sealpost: Reports of ${feedA} from second 10 to before 50 are past the server’s retention; the stream continues from there.`,
  ]);
  reports.close();
});

test('stream: if a proxy blocks WebSockets, auto falls back to events', async () => {
  const service = createScriptedService();
  service.refusals.push({ status: 426, code: 'upgrade_required' });
  const { reached, take, reports } = watch(service, [feedA]);
  await reached(isLive);
  service.append(second(1_000));
  expect(await take(1)).toEqual([1_000]);
  service.live()[0]?.cut();
  await reached(isReconnecting);
  await reached(isLive);
  expect(service.attempts.map(({ url }) => new URL(url).pathname)).toEqual([
    '/api/v1/ws',
    '/api/v1/reports/stream',
    '/api/v1/reports/stream',
  ]);
  reports.close();
});

test.each([
  ['nothing of it', { status: 404, code: null }],
  ['no such route', { status: 404, code: 'route_not_found' }],
  ['no GET', { status: 405, code: null }],
])(
  'stream: a server that answers %s to sockets and events is polled, and every report comes once',
  async (_, refusal) => {
    for (const links of [true, false]) {
      const service = createScriptedService();
      service.manners.links = links;
      for (let at = 900; at < 1_000; at += 1) service.append(second(at));
      service.refusals.push(refusal, refusal);
      const { reached, take, reports } = watch(service, [feedA], { from: 950 });
      await reached(isLive);
      service.append(second(1_000));
      expect(await take(51)).toEqual(Array.from({ length: 51 }, (_, i) => 950 + i));
      service.append(second(1_001));
      service.append(second(1_002));
      expect(await take(2)).toEqual([1_001, 1_002]);
      expect(service.attempts.map(({ url }) => new URL(url).pathname)).toEqual([
        '/api/v1/ws',
        '/api/v1/reports/stream',
      ]);
      reports.close();
    }
  },
);

test('stream: a transport that has worked is not dropped after a 404', async () => {
  const service = createScriptedService();
  const { reached, take } = watch(service, [feedA]);
  await reached(isLive);
  service.refusals.push({ status: 404, code: null });
  service.live()[0]?.cut();
  await expect(take(1)).rejects.toMatchObject({ code: 'not_found', status: 404 });
});

test('stream over websocket: the client pings a server that never pings, and the connection stays', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const service = createScriptedService();
  service.manners.answersPings = true;
  const { reached, states, reports } = watch(service, [feedA], { transport: 'websocket' });
  await reached(isLive);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(service.live()[0]?.pings).toBe(6);
  expect(states.some(isReconnecting)).toBe(false);
  service.manners.answersPings = false;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(states.find(isReconnecting)).toMatchObject({ reason: 'silent for 30 s' });
  reports.close();
});

test('stream over sse: a web page instead of events means no event stream', async () => {
  const service = createScriptedService();
  const fetch = async () => new Response('<html></html>', { headers: { 'Content-Type': 'text/html' } });
  const website = { ...service, requester: { ...service.requester, fetch } };
  const { reached, reports } = watch(website, [feedA], { transport: 'sse' });
  await reached(isLive);
  expect(service.attempts.map(({ url }) => new URL(url).pathname)).toEqual(['/api/v1/ws']);
  reports.close();
});

test('stream over poll: a wrong address is an error, and never live', async () => {
  const service = createScriptedService();
  const absent = { status: 404, code: null };
  service.pageRefusals.push(absent, absent);
  const { take, states } = watch(service, [feedA], { transport: 'poll' });
  await expect(take(1)).rejects.toMatchObject({ code: 'not_found' });
  expect(states.some(isLive)).toBe(false);
});

test('stream over poll: starts now, waits after 429, and ends with a final error', async () => {
  const service = createScriptedService();
  service.append(second(999));
  service.pageRefusals.push({ status: 429, code: null, headers: { 'Retry-After': '0' } });
  const { reached, take } = watch(service, [feedA], { transport: 'poll' });
  await reached(isLive);
  service.append(second(1_000));
  expect(await take(1)).toEqual([1_000]);
  service.pageRefusals.push({ status: 401, code: null });
  await expect(take(1)).rejects.toMatchObject({ code: 'unauthorized', message: 'Scripted 401.' });
  expect(service.attempts).toEqual([]);
});

test('stream over poll: a stream without a report is polled for its first one', async () => {
  const service = createScriptedService();
  const { reached, take, reports } = watch(service, [feedA], { transport: 'poll' });
  await reached(isLive);
  service.append(second(1_000));
  expect(await take(1)).toEqual([1_000]);
  reports.close();
});

test('stream: an error without a code is checked against the Date header, once', async () => {
  const date = new Date(createScriptedService().requester.nowMs() + 60_000).toUTCString();
  const skewed = { status: 401, code: null, headers: { Date: date } };
  for (const transport of ['websocket', 'sse'] as const) {
    const service = createScriptedService();
    service.refusals.push(skewed);
    const { reached, reports } = watch(service, [feedA], { transport });
    await reached(isLive);
    expect(service.pages).toEqual(['/api/v1/feeds']);
    reports.close();
    service.refusals.push(skewed, skewed);
    await expect(watch(service, [feedA], { transport }).take(1)).rejects.toMatchObject({ code: 'unauthorized' });
    // A server without the small list has the catalog.
    service.refusals.push(skewed);
    service.pageRefusals.push({ status: 404, code: null });
    const again = watch(service, [feedA], { transport });
    await again.reached(isLive);
    expect(service.pages.slice(-2)).toEqual(['/api/v1/feeds', '/api/v1/discovery']);
    again.reports.close();
  }
});

test('stream over sse: if the position is gone, the missed reports are read over REST', async () => {
  const service = createScriptedService();
  const { reached, take, reports } = watch(service, [feedA], { transport: 'sse' });
  await reached(isLive);
  service.append(second(1_000));
  expect(await take(1)).toEqual([1_000]);
  service.append(second(1_001), false);
  service.live()[0]?.raw('event: missed\nid: 50\ndata: {"position":50}\n\n');
  expect(await take(1)).toEqual([1_001]);
  service.append(second(1_002), false);
  service.live()[0]?.push(second(1_002), 51);
  expect(await take(1)).toEqual([1_002]);
  service.live()[0]?.cut();
  await reached(isReconnecting);
  await reached(isLive);
  expect(service.attempts.map(({ headers }) => headers['Last-Event-ID'])).toEqual([undefined, '51']);
  reports.close();
});

test('stream over sse: if the position is rejected, the missed reports are read over REST', async () => {
  const service = createScriptedService();
  const { reached, take, reports } = watch(service, [feedA], { transport: 'sse' });
  await reached(isLive);
  service.append(second(1_000));
  expect(await take(1)).toEqual([1_000]);
  service.refusals.push({ status: 400, code: 'malformed_header', details: { header: 'Last-Event-ID' } });
  service.live()[0]?.cut();
  service.append(second(1_001), false);
  expect(await take(1)).toEqual([1_001]);
  expect(service.attempts.map(({ headers }) => headers['Last-Event-ID'])).toEqual([undefined, '1', undefined]);
  reports.close();
});

test.each(['☃', '\u0001', ' ', '', 'x'.repeat(1_025)])(
  'stream over sse: a position that no header can send (%#) is dropped, and the missed reports are read over REST',
  async (id) => {
    const service = createScriptedService();
    const { reached, take, reports } = watch(service, [feedA], { transport: 'sse' });
    await reached(isLive);
    service.append(second(1_000), false);
    service.live()[0]?.raw(`id: ${id}\ndata: ${JSON.stringify({ report: second(1_000) })}\n\n`);
    expect(await take(1)).toEqual([1_000]);
    service.append(second(1_001), false);
    service.live()[0]?.cut();
    await reached(isReconnecting);
    await reached(isLive);
    expect(service.attempts.map(({ headers }) => headers['Last-Event-ID'])).toEqual([undefined, undefined]);
    expect(await take(1)).toEqual([1_001]);
    reports.close();
  },
);

test('stream: a Retry-After that is longer than a timer can wait is not retried at once', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const service = createScriptedService();
  const refusal = { status: 503, code: 'overloaded', headers: { 'Retry-After': '1794776000' } } as const;
  service.refusals.push(refusal, refusal, refusal);
  const { reached, reports } = watch(service, [feedA], { transport: 'sse' });
  await reached(isReconnecting);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(service.attempts).toHaveLength(1);
  reports.close();
});
