import { expect, test } from 'vitest';
import { errorBody, type Scripted, scriptedFetch } from '../../tests/support/scripted-fetch.ts';
import { SealpostError } from './errors.ts';
import { createLatestMany } from './latest-many.ts';
import { readOptions } from './options.ts';
import { type BulkReports, bulk } from './reads.ts';
import type { Sleep } from './request/call.ts';
import { createRequester } from './request/requester.ts';

const ids = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `0x0003${i.toString(16).padStart(60, '0')}`);
const reportOf = (feedID: string) => ({ feedID, validFromTimestamp: 7, observationsTimestamp: 7, fullReport: '0x00' });

/** A clock that advances when everything waits for it. */
const createTime = () => {
  let nowMs = 0;
  const sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];
  const step = (): void => {
    sleepers.sort((a, b) => a.atMs - b.atMs);
    const next = sleepers.shift();
    nowMs = Math.max(nowMs, next?.atMs ?? 0);
    next?.wake();
  };
  const sleep: Sleep = (ms, signal) =>
    new Promise((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      const wake = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      sleepers.push({ atMs: nowMs + ms, wake });
      // Requests need a few turns of the event loop: they are answered before the clock advances.
      setTimeout(step, 1);
    });
  return { nowMs: () => nowMs, sleep };
};

type World = ReturnType<typeof createTime> & { readonly starts: number[]; refused: number };
type Server = (target: URL, world: World) => Scripted;

/** A server that takes one stream at a time, and so many requests in any second: by a window that slides, the strictest way to count. */
const plainServer =
  (limit: number, headers: (remaining: number) => Record<string, string> = () => ({})): Server =>
  ({ searchParams }, world) => {
    const now = world.nowMs();
    const recent = world.starts.filter((at) => at > now - 1_000).length;
    if (recent >= limit) {
      world.refused += 1;
      return { status: 429, body: { error: 'slow' }, headers: { 'Retry-After': '1' } };
    }
    world.starts.push(now);
    const feedId = searchParams.get('feedID');
    if (feedId === null) return { status: 400, body: { error: 'feedID?' } };
    return { status: 200, body: { report: reportOf(feedId) }, headers: headers(limit - recent - 1) };
  };

const open = (server: Server, options: object = {}) => {
  const world: World = { ...createTime(), starts: [], refused: 0 };
  const { fetch, asked } = scriptedFetch(({ url }) => server(new URL(url), world));
  const requester = createRequester(
    readOptions({
      baseUrl: 'http://a.test',
      userId: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f',
      secret: 'secret',
      fetch,
      retries: 0,
      sleep: world.sleep,
      ...options,
    }),
  );
  const latestMany = createLatestMany(requester, world.sleep, world.nowMs);
  return {
    requester,
    latestMany,
    world,
    asked,
    targets: () => asked.map(({ url }) => url.slice('http://a.test'.length)),
  };
};

const together: Server = ({ searchParams }) => {
  const asked = searchParams.get('feedIDs')?.split(',') ?? [];
  return { status: 200, body: { reports: asked.map(reportOf) } };
};
const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no error',
    (error: unknown) => (error instanceof SealpostError ? error.code : error),
  );

test('latestMany: one request if the server has the extension, in the order of the request, without duplicates', async () => {
  const { latestMany, targets } = open(together);
  const [a, b] = ids(2) as [string, string]; // two were asked for
  const { reports, missing } = await latestMany([b, a, b.toUpperCase().replace('0X', '0x')]);
  expect([reports.map(({ feedID }) => feedID), missing]).toEqual([[b, a], []]);
  expect(targets()).toEqual([`/api/v1/reports/latest?feedIDs=${b}%2C${a}&missing=true`]);
});

test('latestMany: more streams than fit take several requests, and a smaller limit of the server is learned', async () => {
  const many = open(together);
  expect((await many.latestMany(ids(230))).reports).toHaveLength(230);
  expect(many.asked).toHaveLength(3);
  const few = open((url, world) =>
    (url.searchParams.get('feedIDs')?.split(',').length ?? 0) > 40
      ? { status: 400, body: errorBody('malformed_argument', { argument: 'feedIDs', feedIdsMax: 40 }) }
      : together(url, world),
  );
  expect((await few.latestMany(ids(100))).reports.map(({ feedID }) => feedID)).toEqual(ids(100));
  expect(few.asked).toHaveLength(8);
  await few.latestMany(ids(80));
  expect(few.asked).toHaveLength(12);
});

test('latestMany: a missing entry is used only if it has a stream and a reason', async () => {
  const [a, b] = ids(2) as [string, string]; // two were asked for
  const body = {
    reports: null,
    missing: [null, 'x', { feedID: a, reason: 7, more: 'x' }, { feedID: b, reason: 'no_reports' }],
  };
  const { latestMany } = open(() => ({ status: 206, body }));
  expect((await latestMany([a, b])).missing).toEqual([{ feedID: a }, { feedID: b, reason: 'no_reports' }]);
});

test('latestMany: a 206 has missing, even if the server does not list them', async () => {
  const [a, b, c] = ids(3) as [string, string, string]; // three were asked for
  const body = { reports: [reportOf(b)], missing: [{ feedID: a, reason: 'no_reports' }] };
  const { latestMany } = open(() => ({ status: 206, body }));
  const { missing, details } = await latestMany([a, b, c]);
  expect(missing).toEqual([{ feedID: a, reason: 'no_reports' }, { feedID: c }]);
  expect(details.status).toBe(206);
});

test('latestMany: reports are in the order of the request, whatever the order of the response; so are those of bulk', async () => {
  const [a, b, c] = ids(3) as [string, string, string]; // three were asked for
  const { requester, latestMany } = open(() => ({
    status: 200,
    body: { reports: [reportOf(c), reportOf(a), reportOf(b)] },
  }));
  const idsOf = ({ reports }: BulkReports) => reports.map(({ feedID }) => feedID);
  expect(idsOf(await latestMany([b, c, a]))).toEqual([b, c, a]);
  expect(idsOf(await bulk(requester, [b, c, a], 1_763_200_000))).toEqual([b, c, a]);
});

test.each([
  [
    'a stream that was not asked for',
    (a: string, b: string) => [reportOf(a), reportOf(b), reportOf(ids(3)[2] as string)], // three were asked for
  ],
  ['two reports of one stream', (a: string, b: string) => [reportOf(a), reportOf(b), reportOf(a)]],
] as const)('latestMany: an answer with %s is not taken; bulk fails with unexpected_answer', async (_, answered) => {
  const [a, b] = ids(2) as [string, string]; // two were asked for
  const { requester, latestMany, targets } = open(({ searchParams }) => {
    const feedId = searchParams.get('feedID');
    return { status: 200, body: feedId === null ? { reports: answered(a, b) } : { report: reportOf(feedId) } };
  });
  expect((await latestMany([a, b])).reports.map(({ feedID }) => feedID)).toEqual([a, b]);
  expect(targets().map((target) => target.includes('feedIDs='))).toEqual([true, false, false]);
  expect(await codeOf(bulk(requester, [a, b], 1_763_200_000))).toBe('unexpected_answer');
});

test.each([
  ['400 of another server', { status: 400, body: { error: 'feedID is required' } }],
  [
    '400 of a Sealpost release without it',
    { status: 400, body: errorBody('missing_argument', { argument: 'feedID' }) },
  ],
  ['404', { status: 404, body: 'not found' }],
  ['401 without a code', { status: 401, body: {} }],
  ['422', { status: 422, body: {} }],
  ['500', { status: 500, body: {} }],
  ['an answer of another form', { status: 200, body: { report: reportOf(ids(1)[0] as string) } }], // one was asked for
] as const)('latestMany: after %s it asks for one stream at a time, and remembers that', async (_, refusal) => {
  const { latestMany, targets } = open(({ searchParams }) => {
    const feedId = searchParams.get('feedID');
    return feedId === null ? refusal : { status: 200, body: { report: reportOf(feedId) } };
  });
  expect((await latestMany(ids(3))).reports.map(({ feedID }) => feedID)).toEqual(ids(3));
  expect((await latestMany(ids(2))).reports).toHaveLength(2);
  expect(targets().map((target) => target.includes('feedIDs='))).toEqual([true, ...Array(5).fill(false)]);
});

test.each([
  ['a stream that may not be read', { status: 401, body: errorBody('stream_not_accessible') }, 'stream_not_accessible'],
  ['a wrong secret', { status: 401, body: errorBody('unauthorized') }, 'unauthorized'],
  ['a store that is away', { status: 503, body: errorBody('store_unavailable') }, 'store_unavailable'],
  ['a network that is away', new TypeError('fetch failed'), 'network_error'],
] as const)('latestMany: %s says nothing about the extension and ends the call', async (_, answer, code) => {
  const { latestMany, asked } = open(() => answer);
  expect(await codeOf(latestMany(ids(3)))).toBe(code);
  expect(asked).toHaveLength(1);
});

test('latestMany: 27 streams one by one stay under 10 requests a second, without a 429', async () => {
  const { latestMany, world } = open(plainServer(10));
  const { reports } = await latestMany(ids(27));
  expect(reports.map(({ feedID }) => feedID)).toEqual(ids(27));
  expect(world.refused).toBe(0);
  expect(world.nowMs()).toBeLessThan(3_500);
});

test.each([1, 3, 50])('latestMany: a rate limit of %d per second in responses is kept and used', async (limit) => {
  const told = (remaining: number) => ({
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': '1',
  });
  const { latestMany, world } = open(plainServer(limit, told));
  expect((await latestMany(ids(12))).reports).toHaveLength(12);
  // The first question has no limit to go by: where one is too many for the second, it is waited for as the server says.
  expect(world.refused).toBeLessThanOrEqual(limit === 1 ? 1 : 0);
  expect(world.nowMs()).toBeLessThan((12 / (limit * 0.9)) * 1_000 + 4_000);
});

test('latestMany: concurrent calls share one pace', async () => {
  const { latestMany, world } = open(plainServer(10));
  await latestMany(ids(1));
  const found = await Promise.all([latestMany(ids(9)), latestMany(ids(9)), latestMany(ids(9))]);
  expect(found.map(({ reports }) => reports.length)).toEqual([9, 9, 9]);
  expect(world.refused).toBe(0);
});

test('latestMany: if others use up the limit, it waits for Retry-After, and five 429 in a row end the call', async () => {
  let refusals = 2;
  const [limited] = [{ status: 429, body: errorBody('rate_limited'), headers: { 'Retry-After': '2' } }];
  const passing = open((url, world) => (refusals-- > 0 ? limited : together(url, world)));
  expect((await passing.latestMany(ids(2))).reports).toHaveLength(2);
  expect(passing.world.nowMs()).toBe(4_000);
  const never = open(() => limited);
  expect(await codeOf(never.latestMany(ids(2)))).toBe('rate_limited');
  expect(never.asked).toHaveLength(5);
});

test('latestMany: a reset in other units does not stop the call for years', async () => {
  const odd = { 'RateLimit-Limit': '10', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '1763200000' };
  const { latestMany, world } = open(plainServer(10, () => odd));
  await latestMany(ids(3));
  expect(world.nowMs()).toBeLessThan(5_000);
});

test('latestMany: one by one, a stream without a report is missing, another failure ends all', async () => {
  const [a, b] = ids(2) as [string, string]; // two were asked for
  const answers =
    (status: number, body: unknown): Server =>
    ({ searchParams }) => {
      const feedId = searchParams.get('feedID');
      if (feedId === null) return { status: 400, body: {} };
      return feedId === a ? { status, body } : { status: 200, body: { report: reportOf(feedId) } };
    };
  const without = open(answers(404, errorBody('report_not_found', { reason: 'no_reports' })));
  expect((await without.latestMany([a, b])).missing).toEqual([{ feedID: a, reason: 'no_reports' }]);
  const bare = open(answers(404, 'none'));
  expect((await bare.latestMany([a, b])).missing).toEqual([{ feedID: a }]);
  const forbidden = open(answers(401, errorBody('stream_not_accessible')));
  expect(await codeOf(forbidden.latestMany([a, ...ids(20)]))).toBe('stream_not_accessible');
  expect(forbidden.asked.length).toBeLessThan(5);
  const nowhere = open(() => ({ status: 404, body: '<html>' }));
  expect(await codeOf(nowhere.latestMany([a, b]))).toBe('http_404');
});

test('latestMany: a signal ends it at once, and the caller’s time-out covers all requests together', async () => {
  const controller = new AbortController();
  const aborted = open((url, world) => {
    if (world.starts.length === 4) controller.abort();
    return plainServer(10)(url, world);
  });
  expect(await codeOf(aborted.latestMany(ids(27), { signal: controller.signal }))).toBe('aborted');
  expect(aborted.asked.length).toBeLessThan(8);
  const gone = new AbortController();
  gone.abort();
  expect(await codeOf(open(together).latestMany(ids(2), { signal: gone.signal }))).toBe('aborted');
  const late = open(() => 'silence');
  expect(await codeOf(late.latestMany(ids(2), { timeoutMs: 20 }))).toBe('timeout');
});

test('latestMany: invalid arguments throw before anything is sent', async () => {
  const { latestMany, asked } = open(together);
  for (const wrong of [[], ['0x12'], 'text' as never]) // what a caller without types may pass
    expect(await codeOf(latestMany(wrong))).toBe('malformed_argument');
  expect(asked).toHaveLength(0);
});
