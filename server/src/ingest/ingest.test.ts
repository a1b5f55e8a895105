import {
  decodeFullReport,
  encodeFullReport,
  encodeReportBody,
  type FeedId,
  type ReportBody,
  toReportJson,
} from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { undecodedBody, undecodedLayouts, undecodedStream } from '../../../tests/support/exports/undecoded-bodies.ts';
import { heldHeapBytes } from '../../../tests/support/heap.ts';
import { act, openRunningIngest, type RunningIngest, testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from '../store/open.ts';
import { type Store, type StoredReport, StoreError } from '../store/store.ts';
import type { LineResult } from './report-line.ts';
import { verifyFullReport } from './verification.ts';

const { report, signerSets } = await createSignedReports();
const network = await createNetwork({ seed: 'tests' });
const now = 1_763_200_000;
const live = secondStream(1);
const gone = secondStream(2);
const fine = millisecondStream(3);
const foreign = secondStream(4);
let clockMs = now * 1_000;
let running: RunningIngest;

const streams = [
  testStream(live),
  testStream(fine),
  testStream(foreign, { networkType: 'mainnet' }),
  ...undecodedLayouts.map((layout) => testStream(undecodedStream(layout))),
  testStream(gone, { status: 'decommissioned', decommissionedAt: '2025-06-01T00:00:00.000000Z' }),
];

beforeAll(async () => {
  running = await openRunningIngest(streams, signerSets, () => clockMs);
});
afterAll(() => running.close());

const wire = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport) =>
  toReportJson(feedId, { validFromMs, observationsMs }, `0x${Buffer.from(fullReport).toString('hex')}`);
const line = (one: StoredReport): string => JSON.stringify(wire(one));
const submit = async (...lines: string[]): Promise<readonly LineResult[]> => running.ingest.submit(lines, 1);
const codeOf = async (text: string) => {
  const [result] = await submit(text);
  return [result?.result, result?.code];
};

/** A signed report whose body is not what a well-behaved network would sign. */
const signedBody = (change: Partial<Extract<ReportBody, { version: 3 }>>, feedId: FeedId = live): string => {
  const observations = now - 500;
  const body = {
    version: 3 as const,
    feedId,
    validFromTimestamp: observations,
    observationsTimestamp: observations,
    nativeFee: 1n,
    linkFee: 1n,
    expiresAt: now + 86_400,
    price: 1n,
    bid: 1n,
    ask: 1n,
  };
  return JSON.stringify({ fullReport: network.sign(encodeReportBody({ ...body, ...change }), 1) });
};

test('ingest: a verified report is stored and acknowledged, then readable', async () => {
  const one = report(live, now - 100, now - 100);
  expect(await submit(line(one))).toEqual([
    { line: 1, result: 'stored', feedID: live, observationsTimestamp: now - 100, code: null, message: null },
  ]);
  expect(running.store.reports.latest(live)?.json.toString()).toBe(`{"report":${line(one)}}`);
});

test('ingest: only fullReport is required, bare or inside report, hex in any case', async () => {
  const { fullReport } = wire(report(live, now - 99, now - 99));
  expect(await codeOf(JSON.stringify({ fullReport }))).toEqual(['stored', null]);
  const upper = wire(report(live, now - 98, now - 98))
    .fullReport.toUpperCase()
    .replace('0X', '0x');
  expect(await codeOf(JSON.stringify({ report: { fullReport: upper, note: 'ignored' } }))).toEqual(['stored', null]);
});

test('ingest: the same report again is a duplicate and changes nothing', async () => {
  const one = report(live, now - 97, now - 97);
  await submit(line(one));
  const position = await running.store.reports.position();
  expect(await codeOf(line(one))).toEqual(['duplicate', null]);
  expect(await codeOf(JSON.stringify({ fullReport: wire(one).fullReport }))).toEqual(['duplicate', null]);
  expect((await submit(line(one), line(one))).map(({ result }) => result)).toEqual(['duplicate', 'duplicate']);
  expect(await running.store.reports.position()).toBe(position);
});

test('ingest: the same key with other bytes is rejected, reported and not stored', async () => {
  const one = report(live, now - 96, now - 96);
  await submit(line(one));
  expect(await codeOf(line(report(live, now - 96, now - 96, 7n)))).toEqual(['refused', 'conflicting_report']);
  expect((await running.store.reports.at([live], now - 96))[0]?.fullReport).toEqual(one.fullReport);
  expect(running.events).toContainEqual(
    expect.objectContaining({ kind: 'refused', code: 'conflicting_report', feedId: live }),
  );
});

test('ingest: late reports are accepted into gaps, overlapping ones are not', async () => {
  await submit(line(report(live, now - 80, now - 71)), line(report(live, now - 60, now - 51)));
  expect(await codeOf(line(report(live, now - 70, now - 61)))).toEqual(['stored', null]);
  expect(await codeOf(line(report(live, now - 62, now - 49)))).toEqual(['refused', 'overlapping_window']);
});

const valid = wire(report(live, now - 40, now - 40));
const parts = decodeFullReport(valid.fullReport);
const [first, second] = parts.signatures as [(typeof parts.signatures)[0], (typeof parts.signatures)[0]];
const altered = (changes: Partial<typeof parts>) =>
  JSON.stringify({ ...valid, fullReport: encodeFullReport({ ...parts, ...changes }) });
const stranger = await createNetwork({ seed: 'stranger' });

test.each([
  ['not JSON', 'malformed_line', 'nonsense'],
  ['a number', 'malformed_line', '7'],
  ['a list', 'malformed_line', '[]'],
  ['no fullReport', 'malformed_line', '{"feedID":"x"}'],
  ['a fullReport that is no text', 'malformed_line', '{"fullReport":7}'],
  ['a line without end', 'malformed_line', JSON.stringify({ fullReport: `0x${'0'.repeat(20_000)}` })],
  ['bytes that are no report', 'malformed_report', '{"fullReport":"0x1234"}'],
  ['two reports in one', 'malformed_report', JSON.stringify({ fullReport: `${valid.fullReport},${valid.fullReport}` })],
  ['a report cut short', 'malformed_report', JSON.stringify({ fullReport: valid.fullReport.slice(0, -2) })],
  ['an altered body', 'altered_report', altered({ body: `0x${parts.body.slice(2, -2)}ff` })],
  [
    'an altered context',
    'altered_report',
    altered({ context: { ...parts.context, epochAndRound: `0x${'1'.repeat(64)}` } }),
  ],
  [
    'another config digest',
    'unknown_config_digest',
    altered({ context: { ...parts.context, configDigest: `0x${'1'.repeat(64)}` } }),
  ],
  ['a signature missing', 'wrong_signature_count', altered({ signatures: [first] })],
  ['the same signature twice', 'duplicate_signer', altered({ signatures: [first, first] })],
  ['a broken signature', 'malformed_signature', altered({ signatures: [first, { ...second, v: 9 }] })],
  [
    'the signers of another network',
    'unknown_config_digest',
    JSON.stringify({ fullReport: stranger.sign(parts.body, 1) }),
  ],
  ['a feedID that disagrees', 'mismatched_fields', JSON.stringify({ ...valid, feedID: gone })],
  ['a validFromTimestamp that disagrees', 'mismatched_fields', JSON.stringify({ ...valid, validFromTimestamp: now })],
  [
    'an observationsTimestamp as text',
    'mismatched_fields',
    JSON.stringify({ ...valid, observationsTimestamp: String(now - 40) }),
  ],
  ['an unknown stream', 'unknown_stream', signedBody({}, secondStream(99))],
  ['a stream of the other network', 'wrong_network', signedBody({}, foreign)],
  ['a decommissioned stream', 'decommissioned_stream', signedBody({}, gone)],
  ['a window that ends before it begins', 'malformed_window', signedBody({ validFromTimestamp: now - 499 })],
  ['an expiry before the observation', 'expiry_before_observation', signedBody({ expiresAt: now - 501 })],
  [
    'an observation older than retention',
    'older_than_retention',
    signedBody({ validFromTimestamp: now - 30 * 86_400 - 1, observationsTimestamp: now - 30 * 86_400 - 1 }),
  ],
  [
    'an observation ahead of the clock',
    'ahead_of_clock',
    signedBody({ validFromTimestamp: now + 6, observationsTimestamp: now + 6 }),
  ],
])('ingest: %s is rejected as %s, quarantined, and never readable', async (_, code, text) => {
  const position = await running.store.reports.position();
  expect(await codeOf(text)).toEqual(['refused', code]);
  expect(await running.store.reports.position()).toBe(position);
  const [kept] = await running.store.quarantine.list(1);
  expect(kept).toMatchObject({ code, line: text.slice(0, 8_192), message: expect.any(String) });
});

test('ingest: observations up to five seconds ahead pass, and the oldest second of retention', async () => {
  clockMs = (now + 100) * 1_000;
  expect(await codeOf(line(report(live, now + 105, now + 105)))).toEqual(['stored', null]);
  const oldest = now + 100 - 30 * 86_400;
  expect(await codeOf(line(report(live, oldest, oldest)))).toEqual(['stored', null]);
  clockMs = now * 1_000;
});

test('ingest: millisecond streams keep their milliseconds', async () => {
  const one = report(fine, now * 1_000 - 750, now * 1_000 - 500);
  expect(await submit(line(one))).toMatchObject([{ result: 'stored', observationsTimestamp: now - 1 }]);
  expect((await running.store.reports.at([fine], now - 1))[0]).toMatchObject({
    validFromMs: now * 1_000 - 750,
    observationsMs: now * 1_000 - 500,
  });
});

test.each(undecodedLayouts)('ingest: %s, signed by a quorum, is stored and read as it was signed', async (layout) => {
  const feedId = undecodedStream(layout);
  const sign = (observations: number, stream = feedId) => {
    const body = undecodedBody(layout, { feedId: stream, validFrom: observations - 4, observations });
    return JSON.stringify({ fullReport: network.sign(body, 1) });
  };
  const window = { validFromTimestamp: now - 304, observationsTimestamp: now - 300 };
  expect(await submit(sign(now - 300))).toMatchObject([
    { result: 'stored', code: null, observationsTimestamp: now - 300 },
  ]);
  expect(await codeOf(sign(now - 300))).toEqual(['duplicate', null]);
  expect(await codeOf(sign(now - 302))).toEqual(['refused', 'overlapping_window']);
  const { fullReport } = JSON.parse(sign(now - 300));
  expect(JSON.parse(`${running.store.reports.latest(feedId)?.json}`)).toEqual({
    report: { feedID: feedId, ...window, fullReport },
  });
  const minute = Math.floor((now - 300) / 60) * 60;
  expect(await running.store.reports.candles(feedId, { from: minute, to: minute + 59, resolution: 60 })).toEqual([]);
  expect(await codeOf(sign(now - 300, undecodedStream(layout, 9)))).toEqual(['refused', 'unknown_stream']);
  const altered = fullReport.replace(feedId.slice(2), secondStream(1).slice(2));
  expect(await codeOf(JSON.stringify({ fullReport: altered }))).toEqual(['refused', 'altered_report']);
});

test('ingest: a body without the head that every version has is rejected, also if a quorum signed it', async () => {
  const layout = 'version 4095, whose fields nobody knows';
  const body = undecodedBody(layout, { validFrom: now - 200, observations: now - 200 });
  const dirty = body.replace(body.slice(66, 68), '01') as typeof body; // still hex
  const cut = body.slice(0, 2 + 5 * 64) as typeof body; // still hex
  const elsewhere = `0x2${body.slice(3)}` as const;
  for (const wrong of [dirty, cut, elsewhere])
    expect(await codeOf(JSON.stringify({ fullReport: network.sign(wrong, 1) }))).toEqual([
      'refused',
      'malformed_report',
    ]);
});

test('ingest: results come in the order of the lines', async () => {
  const results = await submit(
    line(report(live, now - 30, now - 30)),
    'x',
    line(report(live, now - 100, now - 100)),
    signedBody({}, gone),
  );
  expect(results.map(({ line: number, result }) => [number, result])).toEqual([
    [1, 'stored'],
    [2, 'refused'],
    [3, 'duplicate'],
    [4, 'refused'],
  ]);
});

test('ingest: batches that wait for capacity all pass, in the order of submission', async () => {
  const small = await openRunningIngest(streams, signerSets, () => clockMs, { linesInFlightMax: 3 });
  try {
    const all = Array.from({ length: 30 }, (_, i) => report(live, now - 30 + i, now - 30 + i));
    const batches = Array.from({ length: 15 }, (_, i) => all.slice(i * 2, i * 2 + 2).map(line));
    const results = await Promise.all(batches.map((batch) => small.ingest.submit(batch, 1)));
    expect(results.flat().every(({ result }) => result === 'stored')).toBe(true);
    const { reports } = await small.store.reports.appendedAfter(0, 100);
    expect(reports.map(({ observationsMs }) => observationsMs)).toEqual(
      all.map(({ observationsMs }) => observationsMs),
    );
    expect(
      await small.ingest.submit(
        Array.from({ length: 9 }, () => 'x'),
        1,
      ),
    ).toHaveLength(9);
  } finally {
    await small.close();
  }
});

test.each([
  ['of its own is served behind a few lines of another one', true],
  ['that shares the order of another one waits for all of its lines', false],
] as const)('ingest: a sender %s', async (_, isOwn) => {
  const { ingest, close } = await openRunningIngest(streams, signerSets, () => clockMs);
  try {
    const all = Array.from({ length: 384 }, (_, i) => line(report(live, now - 400 + i, now - 400 + i)));
    const backfill = isOwn ? {} : undefined;
    let served = 0;
    const batches = Array.from({ length: 12 }, (_, i) => ingest.submit(all.slice(i * 32, i * 32 + 32), 1, backfill));
    for (const one of batches) void one.then((results) => (served += results.length));
    const newest = [now - 1, now].map((time) => line(report(live, time, time)));
    const results = await ingest.submit(newest, 1, isOwn ? {} : undefined);
    expect(results.map(({ result }) => result)).toEqual(['stored', 'stored']);
    if (isOwn) expect(served).toBeLessThanOrEqual(192);
    else expect(served).toBe(384);
    expect((await Promise.all(batches)).flat().every(({ result }) => result === 'stored')).toBe(true);
  } finally {
    await close();
  }
});

test('ingest: a sender leaves capacity for others, and its waiting batches pass in order', async () => {
  const { ingest, store, close } = await openRunningIngest(streams, signerSets, () => clockMs, { linesInFlightMax: 8 });
  try {
    const all = Array.from({ length: 24 }, (_, i) => report(live, now - 300 + i, now - 300 + i));
    const sender = {};
    let served = 0;
    const batches = Array.from({ length: 12 }, (_, i) =>
      ingest.submit(all.slice(i * 2, i * 2 + 2).map(line), 1, sender),
    );
    for (const one of batches) void one.then((results) => (served += results.length));
    await ingest.submit([line(report(live, now, now))], 1, {});
    expect(served).toBeLessThanOrEqual(12);
    await Promise.all(batches);
    const { reports } = await store.reports.appendedAfter(0, 100);
    const stored = reports.map(({ observationsMs }) => observationsMs).filter((ms) => ms < now * 1_000);
    expect(stored).toEqual(all.map(({ observationsMs }) => observationsMs));
  } finally {
    await close();
  }
});

test('ingest: batches that were stored take no memory, however long ingest is open', async () => {
  const heldAfter = async (batches: number): Promise<number> => {
    for (let i = 0; i < batches; i++) await running.ingest.submit([], 1);
    return heldHeapBytes();
  };
  const before = await heldAfter(1_000);
  expect((await heldAfter(30_000)) - before).toBeLessThan(500_000); // less than 17 bytes each
});

test.each(['store_unavailable', 'store_disk_full'] as const)(
  'ingest: after %s, batches that were submitted behind the failed one fail too, also those that wait for room',
  async (code) => {
    let asked = 0;
    let isFailing = true;
    let fail = (): void => {};
    const failure = new Promise<void>((resolve) => {
      fail = resolve;
    });
    const openFailing = async (folder: string): Promise<Store> => {
      const store = await openStore(folder, 'write');
      const append: Store['reports']['append'] = async (batch) => {
        asked += 1;
        if (!isFailing) return store.reports.append(batch);
        await failure;
        isFailing = false; // what comes behind would be stored
        throw new StoreError(code, 'It is not stored.');
      };
      return { ...store, reports: { ...store.reports, append } };
    };
    const rules = { linesInFlightMax: 2 };
    const { ingest, close } = await openRunningIngest(streams, signerSets, () => clockMs, rules, 1, openFailing);
    const lines = [700, 701, 702, 703].map((ago) => line(report(live, now - ago, now - ago)));
    const submitted = lines.map((text) => ingest.submit([text], 1));
    await expect.poll(() => asked).toBe(1);
    fail();
    const [first, ...behind] = await Promise.allSettled(submitted);
    expect(first).toMatchObject({ status: 'rejected', reason: { code } });
    for (const one of behind) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } });
    expect(asked).toBe(1);
    for (const text of lines) expect(await ingest.submit([text], 1)).toMatchObject([{ result: 'stored' }]);
    await close();
  },
);

test('ingest: a newly registered stream or signer set applies at once', async () => {
  const fresh = secondStream(50);
  expect(await codeOf(signedBody({}, fresh))).toEqual(['refused', 'unknown_stream']);
  const seen = running.reloaded();
  await running.store.admin.update('stream', [fresh], () => [testStream(fresh)], act);
  await seen;
  expect(await codeOf(signedBody({}, fresh))).toEqual(['stored', null]);
});

test('ingest: a feedID that begins with 0X rejects no line of its batch, and names its stream all the same', async () => {
  const times = Array.from({ length: 41 }, (_, i) => now - 900 + i);
  const reports = times.map((time) => wire(report(live, time, time)));
  const lines = reports.map((one, i) =>
    JSON.stringify(i === 20 ? { ...one, feedID: one.feedID.replace('0x', '0X') } : one),
  );
  const first = await submit(...lines);
  expect(first.map(({ result }) => result)).toEqual(times.map(() => 'stored'));
  const again = await submit(...lines);
  expect(again.map(({ result }) => result)).toEqual(times.map(() => 'duplicate'));
});

test('ingest: fullReport that begins with 0X, or a field of any type, rejects its own line only', async () => {
  const good = wire(report(live, now - 800, now - 800));
  const odd = [
    { ...good, fullReport: good.fullReport.replace('0x', '0X') },
    { ...good, feedID: { toString: 1 } },
    { ...good, feedID: `0X${'\0'.repeat(64)}` },
    { ...good, observationsTimestamp: 1e308 },
    { ...good, observationsTimestamp: [good.observationsTimestamp] },
    { ...good, validFromTimestamp: { valueOf: 'x' } },
  ];
  const results = await submit(
    ...odd.map((one) => JSON.stringify(one)),
    '{"fullReport":"\0"}',
    '\ud800',
    JSON.stringify(good),
  );
  expect(results.map(({ result }) => result)).toEqual([...Array.from({ length: 8 }, () => 'refused'), 'stored']);
});

test('ingest: whatever the verifier throws for a report, it is the verdict on that report', () => {
  const { fullReport } = wire(report(live, now - 700, now - 700));
  for (const thrown of [new RangeError('memory access out of bounds'), 'a text', undefined]) {
    const engine = {
      keccak256: () => {
        throw thrown;
      },
      recoverPublicKey: () => {
        throw thrown;
      },
    };
    expect(verifyFullReport(fullReport, signerSets, engine).code).toBe('check_failed');
  }
});

test('ingest: a retired signer set admits nothing new', async () => {
  const [digest] = [...signerSets.keys()] as [string];
  const seen = running.reloaded();
  await running.store.admin.update(
    'signerSet',
    [digest],
    ([set]) => [{ ...(set as NonNullable<typeof set>), retiredAt: '2026-01-01T00:00:00.000000Z' }],
    act,
  );
  await seen;
  expect(await codeOf(line(report(live, now - 10, now - 10)))).toEqual(['refused', 'retired_signer_set']);
});
