import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openVerifier } from '@sealpost/server/ingest/verifier';
import { openStore } from '@sealpost/server/store/open';
import { CorruptRecordError, type ReportStore, type ScannedReport, type Store } from '@sealpost/server/store/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { checkStore } from './check.ts';

const { report, signerSets } = await createSignedReports();
const strangers = await createSignedReports('strangers');
const [stream, other, t0] = [secondStream(1), secondStream(2), 1_763_200_000];
const folder = mkdtempSync(join(tmpdir(), 'sealpost-check-'));
let store: Store;

beforeAll(async () => {
  store = await openStore(folder, 'write');
  await store.reports.append([
    report(stream, t0, t0),
    report(stream, t0 + 1, t0 + 5),
    { ...report(stream, t0 + 6, t0 + 7), observationsMs: (t0 + 8) * 1_000 },
    { ...report(other, t0 + 9, t0 + 9), feedId: stream },
    strangers.report(stream, t0 + 10, t0 + 10),
  ]);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The same reports with another scan. */
const changed = (changes: Partial<ReportStore>): ReportStore => ({ ...store.reports, ...changes });
const scanOf = (entries: readonly ScannedReport[]) => changed({ scan: async () => ({ entries }) });

const placeOf = (second: number) => ({
  table: 'reports',
  key: `${stream}/${second * 1_000}`,
  feedId: stream,
  observationsMs: second * 1_000,
  affects: 'one report',
});

test('store check: bodies must match their stream and window', async () => {
  expect(await checkStore(store.reports, {})).toEqual({
    reports: 5,
    streams: 1,
    problemCount: 2,
    problems: [
      { ...placeOf(t0 + 8), what: 'its body has another window' },
      { ...placeOf(t0 + 9), what: `its body is of stream ${other}` },
    ],
    complete: true,
  });
});

test('store check: with signatures, every quorum must be from a registered signer set', async () => {
  const verifier = openVerifier(1);
  verifier.use(signerSets);
  const { problemCount, problems } = await checkStore(store.reports, { verifier }).finally(verifier.close);
  expect(problemCount).toBe(3);
  expect(problems[2]).toEqual({
    ...placeOf(t0 + 10),
    what: 'unknown_config_digest: No signer set is registered for the config digest of the report.',
  });
});

test('store check: windows must ascend without overlaps, and damaged records are counted', async () => {
  const entries = [
    { report: report(stream, t0, t0 + 5) },
    { error: new CorruptRecordError('a report of stream 1 is cut short'), table: 'reports', key: '1/7' },
    { report: report(stream, t0 + 5, t0 + 9) },
    { report: report(stream, t0 + 2, t0 + 3) },
  ];
  const { problemCount, problems, reports } = await checkStore(scanOf(entries), {});
  expect([reports, problemCount]).toEqual([4, 3]);
  expect(problems.map(({ what }) => what)).toEqual([
    'a report of stream 1 is cut short',
    `its window overlaps that of the report observed at ${(t0 + 5) * 1_000} ms`,
    `it is stored after the report observed at ${(t0 + 9) * 1_000} ms`,
  ]);
});

test('store check: a thousand problems are listed, all are counted, none twice', async () => {
  const error = new CorruptRecordError('damaged');
  const entries = Array.from({ length: 1_200 }, (_, i) => ({ error, table: 'appended', key: `${i}` }));
  const findDamage = async () => [{ table: 'appended', key: '7', reason: 'the same' }, ...missing];
  const missing = [{ table: 'records', key: 'account/a', reason: 'damaged' }];
  const { problemCount, problems } = await checkStore(scanOf(entries), { findDamage });
  expect([problemCount, problems.length]).toEqual([1_201, 1_000]);
  const { problems: few } = await checkStore(scanOf([]), { findDamage });
  expect(few).toMatchObject([
    { affects: 'event streams that resume before these positions' },
    { affects: 'the access of one account' },
  ]);
});

test('store check: an interruption ends it after the slice, and says so', async () => {
  const endless = changed({ scan: async () => ({ entries: [], next: 'more' }) });
  const { complete } = await checkStore(endless, { signal: AbortSignal.abort('SIGINT') });
  expect(complete).toBe(false);
});
