// Our client against the real service, call by call; what it gives is held against the store.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createClient, SealpostError, verify } from '@sealpost/client';
import { encodeReportBody, parseFeedId, type ReportBody, type ReportJson, toSignerSetsJson } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StoredReport } from '../server/src/store/store.ts';
import { testStream } from './door.ts';
import { type Credentials, openService, type Service } from './running-api.ts';
import { createSignedReports, millisecondStream, type SignedReports, secondStream } from './signed-reports.ts';

const now = 1_763_200_000;
const [first, second, empty, hidden] = [secondStream(1), secondStream(2), secondStream(3), secondStream(4)];
const fine = millisecondStream(5);
let signed: SignedReports;
let service: Service;
let account: Credentials;
let stored: readonly StoredReport[];

const clientOf = (options: object = {}) =>
  createClient({ baseUrl: service.url, ...account, nowMs: () => now * 1_000, ...options });

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
    ...[first, second, empty, fine].map((feedId) => testStream(feedId)),
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
    report(hidden, now - 5, now - 5),
    ...[100, 400, 900, 1_300].map((ms) => report(fine, (now - 9) * 1_000 + ms, (now - 9) * 1_000 + ms)),
  ];
  await service.append(stored);
});
afterAll(() => service.close());

const of = (feedId: string) => stored.filter((one) => one.feedId === feedId).map(shown);

test('client: latest, at and bulk give what is stored, and it verifies', async () => {
  const client = clientOf();
  expect((await client.latest(first)).report).toEqual(of(first).at(-1));
  expect((await client.at(second, now - 12)).report).toEqual(of(second)[0]);
  const { reports, missing, details } = await client.bulk([second, empty, first], now - 10);
  expect(reports).toEqual([of(second)[0], of(first).find((one) => one.observationsTimestamp === now - 10)]);
  expect(missing).toEqual([{ feedID: empty, reason: 'no_reports' }]);
  expect(details).toMatchObject({ status: 206, requestId: expect.any(String), serverTimeMs: expect.any(Number) });
  const { signers } = await client.signers();
  expect(signers).toEqual(toSignerSetsJson(signed.signerSets));
  for (const report of reports) expect(verify(report, signers).ok).toBe(true);
});

test('client: a miss is an error that explains itself', async () => {
  await expect(clientOf().at(first, now - 35)).rejects.toMatchObject({
    code: 'report_not_found',
    status: 404,
    details: {
      reason: 'gap',
      previous: { validFromTimestamp: now - 41, observationsTimestamp: now - 41 },
      next: { validFromTimestamp: now - 30, observationsTimestamp: now - 30 },
    },
  });
});

test('client: pages give the whole span once, whatever their size, on both sides of a gap', async () => {
  const client = clientOf();
  for (const limit of [1, 7, 50, 1_000]) {
    const read: ReportJson[] = [];
    for await (const { reports } of client.pages(first, { from: now - 60, to: now - 2, limit })) read.push(...reports);
    expect(read, `limit ${limit}`).toEqual(of(first).filter((one) => one.observationsTimestamp <= now - 2));
  }
  const fineRead: ReportJson[] = [];
  for await (const { reports } of client.pages(fine, { from: now - 60, limit: 3 })) fineRead.push(...reports);
  expect(fineRead).toEqual(of(fine));
  expect(await client.page(first, now - 60, 5)).toMatchObject({ more: true, nextStartTimestamp: now - 55 });
});

test('client: following gives reports that come in meanwhile, each once', async () => {
  const fresh = [signed.report(second, now - 4, now - 3), signed.report(second, now - 2, now - 1)];
  const client = clientOf({ sleep: async () => void (await service.append(fresh.splice(0, 1))) });
  const expected = [...of(second), ...fresh.map(shown)];
  const read: ReportJson[] = [];
  for await (const { reports } of client.pages(second, { from: now - 20, to: now - 1, follow: true }))
    read.push(...reports);
  expect(read).toEqual(expected);
});

test('client: discovery and feeds list what the caller may see', async () => {
  const client = clientOf();
  const names = async (filters: object) => (await client.discovery(filters)).feeds.map(({ feedId }) => feedId);
  expect(await names({ baseAsset: ['secret', 'nothing'], hidden: true })).toEqual([hidden]);
  expect(await names({ baseAsset: 'secret' })).toEqual([]);
  expect(await names({ createdAfter: '2025-01-01' })).toEqual([]);
  expect((await client.feeds()).feeds.map(({ feedID }) => feedID)).toEqual([first, second, empty, hidden, fine].sort());
});

test('client: coverage and candles are those of the store', async () => {
  const client = clientOf();
  const { coverage } = await client.coverage(first, { from: now - 60, to: now - 1 });
  expect(coverage).toMatchObject({ coveredSeconds: 50, gaps: [{ from: now - 40, to: now - 31, seconds: 10 }] });
  const { candles } = await client.candles(first, { from: now - 60, to: now - 1, resolution: 3_600 });
  expect(candles.reduce((sum, { reports }) => sum + reports, 0)).toBe(50);
  expect(candles.at(-1)?.close).toBe(60n * 10n ** 18n);
});

test('client: without credentials, what is open to everyone', async () => {
  const client = createClient({ baseUrl: service.url });
  expect((await client.discovery()).feeds).toHaveLength(4);
  expect(Object.keys((await client.signers()).signers)).toEqual([...signed.signerSets.keys()]);
  expect((await client.time()).serverTimeMs).toBe(now * 1_000);
  expect((await client.status()).status.streams.total).toBe(4);
  await expect(client.latest(first)).rejects.toMatchObject({ code: 'missing_credentials' });
});

test.each([
  ['a wrong secret', { secret: 'wrong' }, 'unauthorized'],
  ['an unknown user', { userId: '00000000-0000-4000-8000-000000000000' }, 'unauthorized'],
])('client: %s is a typed error, asked once', async (_, options, code) => {
  const before = service.events.length;
  await expect(clientOf(options).latest(first)).rejects.toMatchObject({ code, status: 401, retryable: false });
  expect(service.events.length - before).toBe(1);
});

test('client: a stream that may not be read is a typed error with advice', async () => {
  const error = await clientOf()
    .latest(secondStream(99))
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SealpostError);
  expect(error).toMatchObject({
    code: 'stream_not_accessible',
    advice: 'List the streams that you may read with feeds().',
    requestId: expect.any(String),
  });
});

test.each([
  ['ahead', 90_000],
  ['behind', -3_600_000],
])('client: a clock that is far %s is corrected by the server’s, with one warning', async (_, skewMs) => {
  const warnings: unknown[] = [];
  const client = clientOf({
    nowMs: () => now * 1_000 + skewMs,
    onWarning: (warning: { code: string }) => void warnings.push(warning.code),
  });
  expect((await client.latest(first)).report).toEqual(of(first).at(-1));
  await client.latest(second);
  expect(warnings).toEqual(['clock_skew']);
});

/** An address where someone listened a moment ago. */
const abandonedUrl = async (): Promise<string> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
};

test('client: a base URL where nobody listens is passed over', async () => {
  const warnings: unknown[] = [];
  const client = createClient({
    ...account,
    baseUrls: [await abandonedUrl(), service.url],
    nowMs: () => now * 1_000,
    onWarning: ({ code }) => void warnings.push(code),
  });
  expect((await client.latest(first)).report).toEqual(of(first).at(-1));
  expect(warnings).toEqual(['failover']);
});

test('client: a report of a later schema is judged by its signatures, and not decoded', async () => {
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
  const report = { feedID: later as string, validFromTimestamp: 1, observationsTimestamp: 1, fullReport };
  expect(verify(report, signers)).toMatchObject({ ok: true, decoded: undefined });
  expect(verify({ ...report, feedID: first }, signers)).toMatchObject({ reason: 'mismatched_fields' });
});
