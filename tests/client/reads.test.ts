// Our client against the real service, call by call; what it gives is held against the store. Everything runs twice: on our server, and on one
// that has none of our extensions.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createClient, decode, SealpostError, verify } from '@sealpost/client';
import { encodeReportBody, parseFeedId, type ReportBody, type ReportJson, toSignerSetsJson } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoredReport } from '../../server/src/store/store.ts';
import { openSpecProxy, type SpecProxy } from '../support/proxies/spec-proxy.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, millisecondStream, type SignedReports, secondStream } from '../support/signed-reports.ts';

const now = 1_763_200_000;
const [first, second, empty, hidden] = [secondStream(1), secondStream(2), secondStream(3), secondStream(4)];
const fine = millisecondStream(5);
/** Streams that grow while they are followed, one for each server. */
const growing = [secondStream(6), secondStream(7)] as const;
let signed: SignedReports;
let service: Service;
let proxy: SpecProxy;
let account: Credentials;
let stored: readonly StoredReport[];

/** A stored report as the API shows it. */
const shown = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): ReportJson => ({
  feedID: feedId,
  validFromTimestamp: Math.floor(validFromMs / 1_000),
  observationsTimestamp: Math.floor(observationsMs / 1_000),
  fullReport: `0x${Buffer.from(fullReport).toString('hex')}`,
});

beforeAll(async () => {
  signed = await createSignedReports();
  const { report, signerSets } = signed;
  const streams = [
    ...[first, second, empty, fine, ...growing].map((feedId) => testStream(feedId)),
    testStream(hidden, { hidden: true, baseAsset: 'SECRET' }),
  ];
  service = await openService(streams, signerSets, () => now * 1_000);
  account = await service.addAccount(['public', `feed:${hidden}`]);
  const priced = (at: number, price: bigint) => ({ ...report(first, at, at, price), price });
  stored = [
    // Every second of a minute, but for a gap of ten.
    ...Array.from({ length: 60 }, (_, i) => i)
      .filter((i) => i < 20 || i >= 30)
      .map((i) => priced(i + now - 60, BigInt(i + 1) * 10n ** 18n)),
    report(second, now - 20, now - 5),
    ...growing.map((feedId) => report(feedId, now - 20, now - 5)),
    report(hidden, now - 5, now - 5),
    ...[100, 400, 900, 1_300].map((ms) => report(fine, (now - 9) * 1_000 + ms, (now - 9) * 1_000 + ms)),
  ];
  await service.append(stored);
  // Few reports in a page: what a server returns at most is not defined either.
  proxy = await openSpecProxy(() => service.url, { nowMs: () => now * 1_000, pageMax: 20 });
});
afterAll(async () => {
  await proxy.close();
  await service.close();
});

const of = (feedId: string) => stored.filter((one) => one.feedId === feedId).map(shown);

/** An address where someone listened a moment ago. */
const abandonedUrl = async (): Promise<string> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
};

describe.each(['our server', 'a server without our extensions'] as const)('client on %s', (name) => {
  const isOurs = name === 'our server';
  const baseUrl = (): string => (isOurs ? service : proxy).url;
  const clientOf = (options: object = {}) =>
    createClient({ baseUrl: baseUrl(), ...account, nowMs: () => now * 1_000, ...options });

  test('latest, at and bulk give what is stored, and it verifies', async () => {
    const client = clientOf();
    expect((await client.latest(first)).report).toEqual(of(first).at(-1));
    expect((await client.at(second, now - 12)).report).toEqual(of(second)[0]);
    const { reports, missing, details } = await client.bulk([second, empty, first], now - 10);
    expect(reports).toEqual([of(second)[0], of(first).find((one) => one.observationsTimestamp === now - 10)]);
    expect(missing).toEqual([isOurs ? { feedID: empty, reason: 'no_reports' } : { feedID: empty }]);
    expect(details).toMatchObject({ status: 206, serverTimeMs: expect.any(Number) });
    expect(details.requestId).toEqual(isOurs ? expect.any(String) : undefined);
    const signers = toSignerSetsJson(signed.signerSets);
    if (isOurs) expect((await client.signers()).signers).toEqual(signers);
    else await expect(client.signers()).rejects.toMatchObject({ code: 'not_supported' });
    for (const report of reports) expect(verify(report, signers).ok).toBe(true);
  });

  test('latestMany gives the newest report of each stream, and which have none', async () => {
    const { reports, missing } = await clientOf().latestMany([second, empty, first]);
    expect(reports).toEqual([of(second)[0], of(first).at(-1)]);
    expect(missing).toEqual([isOurs ? { feedID: empty, reason: 'no_reports' } : { feedID: empty }]);
  });

  test('a miss is an error that explains itself', async () => {
    await expect(clientOf().at(first, now - 35)).rejects.toMatchObject({
      code: 'report_not_found',
      status: 404,
      isInferred: !isOurs,
      details: isOurs
        ? {
            reason: 'gap',
            previous: { validFromTimestamp: now - 41, observationsTimestamp: now - 41 },
            next: { validFromTimestamp: now - 30, observationsTimestamp: now - 30 },
          }
        : { serverDateMs: now * 1_000 },
    });
  });

  test('pages give the whole span once, whatever their size, on both sides of a gap', async () => {
    const client = clientOf();
    for (const limit of [1, 7, 50, 1_000]) {
      const read: ReportJson[] = [];
      for await (const { reports } of client.pages(first, { from: now - 60, to: now - 2, limit }))
        read.push(...reports);
      expect(read, `limit ${limit}`).toEqual(of(first).filter((one) => one.observationsTimestamp <= now - 2));
    }
    const fineRead: ReportJson[] = [];
    for await (const { reports } of client.pages(fine, { from: now - 60, limit: 3 })) fineRead.push(...reports);
    expect(fineRead).toEqual(of(fine));
    expect(await client.page(first, now - 60, 5)).toMatchObject({ more: true, nextStartTimestamp: now - 55 });
  });

  test('following gives reports that come in meanwhile, each once', async () => {
    const feedId = growing[isOurs ? 0 : 1];
    const fresh = [signed.report(feedId, now - 4, now - 3), signed.report(feedId, now - 2, now - 1)];
    const client = clientOf({ sleep: async () => void (await service.append(fresh.splice(0, 1))) });
    const expected = [...of(feedId), ...fresh.map(shown)];
    const read: ReportJson[] = [];
    for await (const { reports } of client.pages(feedId, { from: now - 20, to: now - 1, follow: true }))
      read.push(...reports);
    expect(read).toEqual(expected);
  });

  test('discovery and feeds list what the caller may see', async () => {
    const client = clientOf();
    const names = async (filters: object) => (await client.discovery(filters)).feeds.map(({ feedId }) => feedId);
    expect(await names({ baseAsset: ['secret', 'nothing'], hidden: true })).toEqual([hidden]);
    expect(await names({ baseAsset: 'secret' })).toEqual([]);
    expect(await names({ createdAfter: '2025-01-01' })).toEqual([]);
    expect((await client.feeds()).feeds.map(({ feedID }) => feedID)).toEqual(
      [first, second, empty, hidden, fine, ...growing].sort(),
    );
  });

  test('coverage and candles are those of the store, or an error that says what to do', async () => {
    const client = clientOf();
    if (!isOurs) {
      const span = { from: now - 60, to: now - 1, resolution: 60 };
      await expect(client.candlesMany([first], span)).rejects.toMatchObject({ code: 'not_supported' });
      for (const call of [client.coverage(first, span), client.candles(first, span)])
        await expect(call).rejects.toMatchObject({ code: 'not_supported', advice: expect.stringContaining('pages()') });
      return;
    }
    const { coverage } = await client.coverage(first, { from: now - 60, to: now - 1 });
    expect(coverage).toMatchObject({ coveredSeconds: 50, gaps: [{ from: now - 40, to: now - 31, seconds: 10 }] });
    const { candles } = await client.candles(first, { from: now - 60, to: now - 1, resolution: 3_600 });
    expect(candles.reduce((sum, { reports }) => sum + reports, 0)).toBe(50);
    expect(candles.at(-1)?.close).toBe(60n * 10n ** 18n);
    const many = await client.candlesMany([empty, first], { from: now - 60, to: now - 1, resolution: 3_600 });
    expect(many.streams).toEqual([
      { feedID: empty, candles: [] },
      { feedID: first, candles },
    ]);
  });

  test('without credentials, what is open to everyone', async () => {
    const client = createClient({ baseUrl: baseUrl() });
    expect((await client.discovery()).feeds).toHaveLength(6);
    expect((await client.time()).serverTimeMs).toBe(now * 1_000);
    if (isOurs) {
      expect(Object.keys((await client.signers()).signers)).toEqual([...signed.signerSets.keys()]);
      expect((await client.status()).status.streams.total).toBe(6);
    } else await expect(client.status()).rejects.toMatchObject({ code: 'not_supported' });
    await expect(client.latest(first)).rejects.toMatchObject({ code: 'missing_credentials' });
  });

  test.each([
    ['a wrong secret', { secret: 'wrong' }, 'unauthorized'],
    ['an unknown user', { userId: '00000000-0000-4000-8000-000000000000' }, 'unauthorized'],
  ])('%s is a typed error, asked once', async (_, options, code) => {
    const before = service.events.length;
    await expect(clientOf(options).latest(first)).rejects.toMatchObject({ code, status: 401, retryable: false });
    expect(service.events.length - before).toBe(1);
  });

  test('a stream that may not be read is a typed error with advice', async () => {
    const error = await clientOf()
      .latest(secondStream(99))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SealpostError);
    expect(error).toMatchObject(
      isOurs
        ? {
            code: 'stream_not_accessible',
            advice: 'List the streams that you may read with feeds().',
            requestId: expect.any(String),
          }
        : {
            code: 'unauthorized',
            advice: 'Check the user ID and secret, and that the account may read every requested stream.',
            requestId: undefined,
          },
    );
  });

  test.each([
    ['ahead', 90_000],
    ['behind', -3_600_000],
  ])('a clock that is far %s is corrected by the server’s, with one warning', async (_, skewMs) => {
    const warnings: unknown[] = [];
    const client = clientOf({
      nowMs: () => now * 1_000 + skewMs,
      onWarning: (warning: { code: string }) => void warnings.push(warning.code),
    });
    expect((await client.latest(first)).report).toEqual(of(first).at(-1));
    await client.latest(second);
    expect(warnings).toEqual(['clock_skew']);
  });

  test('a base URL that refuses connections is skipped', async () => {
    const warnings: unknown[] = [];
    const client = createClient({
      ...account,
      baseUrls: [await abandonedUrl(), baseUrl()],
      nowMs: () => now * 1_000,
      onWarning: ({ code }) => void warnings.push(code),
    });
    expect((await client.latest(first)).report).toEqual(of(first).at(-1));
    expect(warnings).toEqual(['failover']);
  });
});

test('client: sockets may be on another host than the rest', async () => {
  const [reading, live] = [await openSpecProxy(() => service.url, { push: false }), proxy];
  const wsUrl = live.url.replace('http', 'ws');
  const client = createClient({ baseUrl: reading.url, wsUrl, ...account, nowMs: () => now * 1_000 });
  const before = live.answered.length;
  const reports = client.stream([second], { transport: 'websocket', from: now - 30 });
  expect((await reports.next()).value).toEqual(of(second)[0]);
  await expect.poll(() => reports.state.phase).toBe('live');
  expect(live.answered.slice(before)).toEqual([[`/api/v1/ws?feedIDs=${second}`, 'ws']]);
  expect(reading.answered.every(([target]) => target.startsWith('/api/v1/reports/page?'))).toBe(true);
  reports.close();
  await reading.close();
});

test('client: a report whose fields are unknown is verified, its window too, but not decoded', async () => {
  const signers = toSignerSetsJson(signed.signerSets);
  const network = await createNetwork({ seed: 'tests' });
  const later = parseFeedId(`0x00ff${'0'.repeat(60)}`);
  const known = {
    version: 2,
    feedId: parseFeedId(`0x0002${'0'.repeat(60)}`),
    validFromTimestamp: 1,
    observationsTimestamp: 1,
  };
  const body = encodeReportBody({ ...known, nativeFee: 0n, linkFee: 0n, expiresAt: 9, price: 1n } as ReportBody); // of the version that it says
  const fullReport = network.sign(`0x${later.slice(2)}${body.slice(66)}`, 1);
  const report = { feedID: later as string, validFromTimestamp: 1, observationsTimestamp: 1, fullReport }; // ReportJson has no brand
  expect(verify(report, signers)).toMatchObject({ ok: true, decoded: undefined });
  expect(() => decode(report)).toThrow(expect.objectContaining({ name: 'SealpostError', code: 'unknown_schema' }));
  for (const change of [{ feedID: first }, { validFromTimestamp: 0 }, { observationsTimestamp: 2 }])
    expect(verify({ ...report, ...change }, signers)).toMatchObject({ reason: 'mismatched_fields' });
});
