// Every fault that acts on reports, on a real node: the store keeps good reports, and clients that verify notice.
import { createClient, verify } from '@sealpost/client';
import { decodeFullReport, decodeReportBody, type FeedId, type ReportJson } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { undecodedBody } from '../../../tests/support/exports/undecoded-bodies.ts';
import { openEvents, openSocket } from '../../../tests/support/live-clients.ts';
import { at } from '../../../tests/support/running-api.ts';
import {
  btc,
  bulk,
  eth,
  type FaultedNode,
  latest,
  link,
  openFaultedNode,
  page,
  startSecond,
} from './faulted-node.fixture.ts';

let node: FaultedNode;
let second = startSecond;
beforeAll(async () => {
  node = await openFaultedNode();
});
afterAll(() => node?.stop());
afterEach(() => node.faults.clear());

const push = async (): Promise<number> => {
  second += 1;
  node.clock.ms = second * 1_000;
  await node.append(...[eth, btc].map((feedId) => ({ ...node.signed.report(feedId, second, second), price: 1n })));
  return second;
};

const read = async (target: string): Promise<readonly ReportJson[]> => {
  const body = (await (await node.get(target)).json()) as { report?: ReportJson; reports?: readonly ReportJson[] };
  return body.reports ?? (body.report ? [body.report] : []);
};
const verdictOf = (report: ReportJson): string => {
  const verdict = verify(report, node.signed.signerSets);
  return verdict.ok ? 'ok' : verdict.reason;
};
const priceOf = ({ fullReport }: ReportJson): unknown => {
  const body = decodeReportBody(decodeFullReport(fullReport).body);
  return 'price' in body && body.price;
};
/** Every way to read the report of a second that has a single one. */
const readings = (feedId: FeedId, when: number): Readonly<Record<string, string>> => ({
  latest: latest(feedId),
  latestMany: `/api/v1/reports/latest?feedIDs=${feedId}`,
  at: at(feedId, when),
  bulk: bulk([feedId], when),
  page: page(feedId, when),
});

test.each([
  ['wrong-signer', 'unregistered_signer'],
  ['few-signatures', 'wrong_signature_count'],
  ['altered-body', 'altered_report'],
])('%s: reports fail verification as %s on every route, for this stream alone', async (kind, verdict) => {
  const when = await push();
  const good = await read(latest(eth));
  node.faults.add({ kind, stream: 'ETH/USD' });
  for (const [name, target] of Object.entries(readings(eth, when))) {
    const reports = await read(target);
    expect([name, reports.map(verdictOf)]).toEqual([name, [verdict]]);
  }
  expect((await read(bulk([eth, btc], when))).map(verdictOf)).toEqual([verdict, 'ok']);
  const spoiled = await node.get(latest(eth));
  expect(spoiled.headers.get('ETag')).not.toBeNull();
  expect(((await spoiled.json()) as { report: ReportJson }).report).toMatchObject({
    feedID: eth,
    observationsTimestamp: when,
  });
  node.faults.clear();
  expect(await read(latest(eth))).toEqual(good);
});

test('every fault on reports acts on one whose fields are not known, too', async () => {
  const { sign } = await createNetwork({ seed: 'faults' });
  second += 1;
  node.clock.ms = second * 1_000;
  const at = { feedId: link, validFrom: second, observations: second };
  const body = undecodedBody('version 3 with a word more', at);
  const fullReport = Buffer.from(sign(body, second).slice(2), 'hex');
  await node.append({ feedId: link, validFromMs: node.clock.ms, observationsMs: node.clock.ms, fullReport });
  const good = await read(latest(link));
  for (const [kind, verdict] of [
    ['two-reports', 'ok'],
    ['wrong-window', 'ok'],
    ['altered-body', 'altered_report'],
    ['wrong-signer', 'unregistered_signer'],
    ['few-signatures', 'wrong_signature_count'],
  ]) {
    node.faults.add({ kind, stream: 'LINK/USD' });
    const both = [...(await read(latest(link))), ...(await read(latest(link)))]; // one of two reports goes to every other reader
    expect([kind, both.map(verdictOf)]).toEqual([kind, [verdict, verdict]]);
    expect(both).not.toEqual([...good, ...good]);
    node.faults.clear();
  }
});

test.each(['wrong-signer', 'few-signatures', 'altered-body'])('%s: live messages have it too', async (kind) => {
  const socket = await openSocket(node.url, `/api/v1/ws?feedIDs=${eth},${btc}`, node.reader);
  const events = await openEvents(node.url, `/api/v1/reports/stream?feedIDs=${eth}`, node.reader);
  node.faults.add({ kind, stream: 'ETH/USD' });
  await push();
  await expect.poll(() => [socket.reports().length, events.reports().length]).toEqual([2, 1]);
  const verdicts = socket.reports().map((report) => [report.feedID, verdictOf(report as ReportJson) === 'ok']);
  expect(new Map(verdicts as [string, boolean][])).toEqual(
    new Map([
      [eth, false],
      [btc, true],
    ]),
  );
  expect(verdictOf(events.reports()[0] as ReportJson)).not.toBe('ok');
  socket.webSocket.terminate();
  events.close();
});

test('altered-body: the SDK decodes another price than the one signed', async () => {
  await push();
  const client = createClient({ baseUrl: node.url, ...node.reader });
  const good = (await client.latest(eth)).report;
  node.faults.add('altered-body');
  const altered = (await client.latest(eth)).report;
  expect([priceOf(good), priceOf(altered)]).toEqual([10n ** 18n, 10n ** 18n - 10n ** 16n - 1n]);
  expect(verify(altered, (await client.signers()).signers)).toMatchObject({ ok: false });
});

test('wrong-window: reports verify, and are of another time than asked for', async () => {
  const when = await push();
  node.faults.add('wrong-window=-2m,stream=ETH/USD');
  for (const [name, target] of Object.entries(readings(eth, when))) {
    const reports = await read(target);
    const shown = reports.map((report) => [verdictOf(report), report.validFromTimestamp, report.observationsTimestamp]);
    expect([name, shown]).toEqual([name, [['ok', when - 120, when - 120]]]);
  }
  const socket = await openSocket(node.url, `/api/v2/ws?feedIDs=${eth}`, node.reader);
  const next = await push();
  await expect.poll(() => socket.reports().length).toBe(1);
  expect(socket.reports()[0]).toMatchObject({ observationsTimestampMs: (next - 120) * 1_000 });
  socket.webSocket.terminate();
});

test('two-reports: answers alternate between two prices of one window, and live connections get both', async () => {
  const when = await push();
  node.faults.add('two-reports,stream=ETH/USD');
  const seen = [];
  for (let i = 0; i < 4; i += 1) seen.push(...(await read(at(eth, when))));
  expect(seen.map(verdictOf)).toEqual(['ok', 'ok', 'ok', 'ok']);
  expect(
    new Set(
      seen.map(({ validFromTimestamp, observationsTimestamp }) => `${validFromTimestamp} ${observationsTimestamp}`),
    ).size,
  ).toBe(1);
  const [first, second] = seen.map(priceOf);
  expect(first).not.toBe(second);
  expect(seen.map(priceOf)).toEqual([first, second, first, second]);
  const socket = await openSocket(node.url, `/api/v1/ws?feedIDs=${eth}`, node.reader);
  const next = await push();
  await expect.poll(() => socket.reports().length).toBe(2);
  const both = socket.reports() as readonly ReportJson[];
  expect(both.map((report) => [verdictOf(report), report.observationsTimestamp])).toEqual([
    ['ok', next],
    ['ok', next],
  ]);
  expect(priceOf(both[0] as ReportJson)).not.toBe(priceOf(both[1] as ReportJson));
  socket.webSocket.terminate();
});

test('stop: the last report stays the latest, later ones are nowhere, and all are back once it is removed', async () => {
  const last = await push();
  const socket = await openSocket(node.url, `/api/v1/ws?feedIDs=${eth},${btc}`, node.reader);
  node.clock.ms += 500;
  node.faults.add('stop,stream=ETH/USD');
  const [, end] = [await push(), await push()];
  expect((await read(latest(eth)))[0]?.observationsTimestamp).toBe(last);
  expect(
    (await read(`/api/v1/reports/latest?feedIDs=${eth},${btc}`)).map(
      ({ observationsTimestamp }) => observationsTimestamp,
    ),
  ).toEqual([last, end]);
  const gone = await node.get(at(eth, end));
  expect([gone.status, await gone.json()]).toMatchObject([
    404,
    { reason: 'not_yet', previous: { observationsTimestamp: last }, next: null },
  ]);
  const partial = await node.get(`${bulk([eth, btc], end)}&missing=true`);
  expect([partial.status, ((await partial.json()) as { missing: unknown }).missing]).toEqual([
    206,
    [{ feedID: eth, reason: 'not_yet' }],
  ]);
  expect((await read(page(eth, last))).map(({ observationsTimestamp }) => observationsTimestamp)).toEqual([last]);
  const coverage = await node.get(`/api/v1/reports/coverage?feedID=${eth}&from=${last}&to=${end}`);
  expect(await coverage.json()).toMatchObject({ gaps: [{ from: last + 1, to: end }] });
  await expect.poll(() => socket.reports().length).toBe(2);
  expect(socket.reports().map(({ feedID }) => feedID)).toEqual([btc, btc]);
  socket.webSocket.terminate();
  node.faults.clear();
  expect((await read(latest(eth)))[0]?.observationsTimestamp).toBe(end);
});

test('gap: reports of its time are left out, also later and for clients that catch up', async () => {
  const before = await push();
  const events = await openEvents(node.url, `/api/v1/reports/stream?feedIDs=${eth}`, node.reader);
  node.clock.ms += 500;
  node.faults.add('gap,for=1s,stream=ETH/USD');
  const [within, after, end] = [await push(), await push(), await push()];
  expect((await read(page(eth, before))).map(({ observationsTimestamp }) => observationsTimestamp)).toEqual([
    before,
    after,
    end,
  ]);
  expect(await (await node.get(at(eth, within))).json()).toMatchObject({
    reason: 'gap',
    previous: { observationsTimestamp: before },
    next: { observationsTimestamp: after },
  });
  await expect.poll(() => events.reports().map((report) => report.observationsTimestamp)).toEqual([after, end]);
  events.close();
  const [first] = events.events;
  const again = await openEvents(node.url, `/api/v1/reports/stream?feedIDs=${eth}`, node.reader, Date.now(), first?.id);
  await expect.poll(() => again.reports().map((report) => report.observationsTimestamp)).toEqual([end]);
  again.close();
});

test.each(['missing,stream=ETH/USD', 'stop,stream=ETH/USD', 'gap,for=2s,stream=ETH/USD', 'wrong-signer'])(
  '%s: candles and coverage of several streams have what those of one have',
  async (fault) => {
    const from = await push();
    node.clock.ms += 500;
    node.faults.add(fault);
    for (let i = 0; i < 4; i += 1) await push();
    const range = `from=${from}&to=${second}`;
    const ask = async (path: string, query: string) =>
      (await node.get(`/api/v1/reports/${path}?${query}&${range}`)).json() as Promise<Record<string, never>>; // compared below
    const several = `feedIDs=${eth},${btc}`;
    const [candles, coverage] = [
      await ask('candles/bulk', `${several}&resolution=1`),
      await ask('coverage/bulk', several),
    ];
    expect(candles.streams?.[1]).toMatchObject({ candles: { length: 5 } });
    for (const [i, feedId] of [eth, btc].entries()) {
      const own = await ask('candles', `feedID=${feedId}&resolution=1`);
      expect(candles.streams?.[i]).toEqual({ feedID: feedId, ...own });
      const { coveredSeconds } = await ask('coverage', `feedID=${feedId}`);
      const [newest] = await read(latest(feedId));
      const newestMs = newest && newest.observationsTimestamp * 1_000;
      expect(coverage.streams?.[i]).toMatchObject({ feedID: feedId, coveredSeconds, ...(newestMs && { newestMs }) });
      if (newestMs === undefined) expect(coverage.streams?.[i]).not.toHaveProperty('newestMs');
    }
  },
);

test('gap: with a probability, the same reports are missing from every answer', async () => {
  const from = second + 1;
  node.clock.ms = from * 1_000;
  node.faults.add('gap,for=1h,probability=0.5,stream=ETH/USD');
  for (let i = 0; i < 20; i += 1) await push();
  const paged = (await read(page(eth, from, 50))).map(({ observationsTimestamp }) => observationsTimestamp);
  expect(paged.length).toBeGreaterThan(2);
  expect(paged.length).toBeLessThan(18);
  const single: number[] = [];
  for (let when = from; when <= second; when += 1)
    if ((await node.get(at(eth, when))).status === 200) single.push(when);
  expect(single).toEqual(paged);
  expect((await read(latest(eth)))[0]?.observationsTimestamp).toBe(paged.at(-1));
});

test('faults: the same seed, faults and requests give the same statuses and the same bytes', async () => {
  const run = async (): Promise<readonly string[]> => {
    const fresh = await openFaultedNode();
    for (const line of [
      'status=503,probability=0.2',
      'wrong-signer,probability=0.3',
      'two-reports,probability=0.8',
      'wrong-window,probability=0.2',
      'truncate,probability=0.2',
    ])
      fresh.faults.add(line);
    const answers: string[] = [];
    for (let i = 0; i < 30; i += 1) {
      const answer = await fresh.get(latest(i % 3 === 0 ? btc : eth));
      const text = await answer.text().catch(() => 'cut');
      answers.push(`${answer.status} ${answer.status === 200 ? text : ''}`);
    }
    await fresh.stop();
    return answers;
  };
  const first = await run();
  expect(await run()).toEqual(first);
  expect(new Set(first).size).toBeGreaterThan(4);
});
