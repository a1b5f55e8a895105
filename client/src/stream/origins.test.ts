import { expect, test } from 'vitest';
import { parseOrigins } from './connection-groups.ts';
import { createScriptedService, feedA, isLive, scriptedReport, watch } from './script.fixture.ts';

const second = (at: number) => scriptedReport(feedA, at, at);
const openHa = async () => {
  const service = createScriptedService(['001', '002']);
  const watched = watch(service, [feedA], { transport: 'websocket', ha: true });
  await watched.reached((state) => isLive(state) && service.live().length === 2);
  const at = (origin: string) => service.live().find((connection) => connection.origin === origin);
  return { service, at, ...watched };
};

test('origins: the header is parsed with any spaces; none if it is empty', () => {
  expect(parseOrigins('{001,002}')).toEqual(['001', '002']);
  expect(parseOrigins(' { 001 , 002,001 } ')).toEqual(['001', '002']);
  expect(parseOrigins('{}')).toEqual([]);
  expect(parseOrigins('001')).toEqual([]);
  expect(parseOrigins(null)).toEqual([]);
});

test('ha: one connection per origin, and what both push is delivered once', async () => {
  const { service, take, reports } = await openHa();
  expect(service.attempts.map(({ origin }) => origin)).toEqual(['001', '002']);
  for (let at = 1_000; at < 1_005; at += 1) service.append(second(at));
  expect(await take(5)).toEqual([1_000, 1_001, 1_002, 1_003, 1_004]);
  reports.close();
  expect(await reports.next()).toEqual({ done: true, value: undefined });
});

test('ha: an origin that is behind changes nothing', async () => {
  const { at, take, reports } = await openHa();
  for (const moment of [1_000, 1_001, 1_002]) at('001')?.push(second(moment));
  for (const moment of [1_000, 1_001, 1_002, 1_003]) at('002')?.push(second(moment));
  expect(await take(4)).toEqual([1_000, 1_001, 1_002, 1_003]);
  reports.close();
});

test('ha: with one origin down the stream stays live, and sends no REST request', async () => {
  const { service, at, take, reports, states } = await openHa();
  service.append(second(1_000));
  service.down.add('001');
  at('001')?.cut();
  for (let moment = 1_001; moment < 1_010; moment += 1) service.append(second(moment));
  expect(await take(10)).toEqual(Array.from({ length: 10 }, (_, i) => 1_000 + i));
  expect(reports.state).toEqual({ phase: 'live', origin: '002' });
  expect(service.pages).toEqual([]);
  expect(states.at(-1)).toMatchObject({ phase: 'reconnecting', origin: '001' });
  reports.close();
});

test('ha: an origin that comes back ahead of the other leaves no gap', async () => {
  const { service, at, take, reached, reports } = await openHa();
  service.append(second(1_000));
  at('001')?.cut();
  await reached(() => service.live().length === 2);
  // Stored but not pushed yet; then the origin that came back is the first to push a later one.
  service.append(second(1_001), false);
  service.append(scriptedReport(feedA, 1_001, 1_002), false);
  at('001')?.push(scriptedReport(feedA, 1_001, 1_002));
  expect(await take(3)).toEqual([1_000, 1_001, 1_002]);
  reports.close();
});

test('ha: a service without origins gets one plain connection', async () => {
  const service = createScriptedService();
  const { reached, reports } = watch(service, [feedA], { transport: 'websocket', ha: true });
  await reached(isLive);
  expect(service.attempts).toMatchObject([{ origin: undefined }]);
  reports.close();
});

test('ha: a service that does not list its origins yet is asked again', async () => {
  const service = createScriptedService(['001']);
  service.headRefusals.push({ status: 503 });
  const { reached, states, reports } = watch(service, [feedA], { ha: true });
  await reached(isLive);
  expect(states[0]).toMatchObject({ phase: 'reconnecting', reason: 'scripted returned 503.' });
  reports.close();
});

test('ha: the Retry-After of a host that does not list its origins yet delays no other', async () => {
  const service = createScriptedService(['001']);
  service.headRefusals.push({ status: 503, headers: { 'Retry-After': '3600' } });
  const requester = { ...service.requester, wsUrls: ['http://a.test', 'http://b.test'] };
  const { reached, states, reports } = watch({ ...service, requester }, [feedA], { ha: true, reconnect: { minMs: 1 } });
  await reached(isLive);
  expect(states[0]).toMatchObject({ phase: 'reconnecting', reason: 'a.test returned 503.' });
  reports.close();
});

test('ha: if HEAD is rejected, the stream ends with the error of a GET', async () => {
  const service = createScriptedService(['001']);
  service.headRefusals.push({ status: 401 });
  service.pageRefusals.push({ status: 401, code: 'unauthorized' });
  await expect(watch(service, [feedA], { ha: true }).take(1)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(service.attempts).toEqual([]);
});

test.each([404, 405, 501])('ha: a service that answers HEAD with %i gets one plain connection', async (status) => {
  const service = createScriptedService(['001']);
  service.headRefusals.push({ status });
  const { reached, reports } = watch(service, [feedA], { ha: true });
  await reached(isLive);
  expect(service.attempts).toMatchObject([{ origin: undefined }]);
  expect(service.pages).toEqual([]);
  reports.close();
});

test('ha: a service that rejects HEAD and answers GET gets one plain connection', async () => {
  const service = createScriptedService(['001']);
  service.headRefusals.push({ status: 403 }, { status: 403 });
  const { reached, reports } = watch(service, [feedA], { ha: true });
  await reached(isLive);
  expect(service.attempts).toMatchObject([{ origin: undefined }]);
  expect(service.pages).toEqual(['/api/v1/feeds']);
  reports.close();
});

test('ha: after a 400 without a code the origins are read again; if they are the same, it is the error', async () => {
  const origins = ['001'];
  const service = createScriptedService(origins);
  const { reached, take } = watch(service, [feedA], { transport: 'websocket', ha: true });
  await reached(isLive);
  origins.splice(0, 1, '002');
  service.refusals.push({ status: 400, code: null });
  service.live()[0]?.cut();
  await reached((state) => isLive(state) && 'origin' in state && state.origin === '002');
  service.refusals.push({ status: 400, code: null });
  service.live()[0]?.cut();
  await expect(take(1)).rejects.toMatchObject({ code: 'bad_request' });
});

/** A service whose WebSockets are on other hosts than its REST API. */
const apart = (origins: readonly string[], wsUrls: readonly string[]) => {
  const service = createScriptedService(origins);
  const heads: string[] = [];
  const fetch = (url: RequestInfo | URL, init?: RequestInit) => {
    if (init?.method === 'HEAD') heads.push(String(url));
    return service.requester.fetch(url, init);
  };
  return { service: { ...service, requester: { ...service.requester, wsUrls, fetch } }, heads };
};

test('wsUrls: sockets and the request for origins go there, events and pages to the base URL', async () => {
  const { service, heads } = apart(['001'], ['https://ws.test']);
  const socket = watch(service, [feedA], { transport: 'websocket', ha: true });
  await socket.reached(isLive);
  expect(service.attempts.map(({ url }) => url)).toEqual([`wss://ws.test/api/v1/ws?feedIDs=${feedA}`]);
  socket.reports.close();
  const events = watch(service, [feedA], { transport: 'sse', ha: true });
  await events.reached(isLive);
  expect(service.attempts[1]?.url).toBe(`http://scripted/api/v1/reports/stream?feedIDs=${feedA}`);
  expect(heads).toEqual(['https://ws.test/', 'https://ws.test/']);
  events.reports.close();
});

test('wsUrls: if one fails the next is tried, and kept while it works', async () => {
  const { service } = apart([], ['http://a.test', 'http://b.test']);
  service.refusals.push({ status: 503 });
  const { reached, take, reports } = watch(service, [feedA], { transport: 'websocket' });
  await reached(isLive);
  service.append(second(1_000));
  expect(await take(1)).toEqual([1_000]);
  service.live()[0]?.cut();
  await reached((state) => isLive(state) && service.attempts.length === 3);
  expect(service.attempts.map(({ url }) => new URL(url).host)).toEqual(['a.test', 'b.test', 'b.test']);
  reports.close();
});
