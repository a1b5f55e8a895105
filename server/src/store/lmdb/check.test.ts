import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { createDamageLog } from '../damage.ts';
import { encodeRun, openRun } from '../format/report-run.ts';
import { openStore } from '../open.ts';
import { CorruptRecordError, type StoredReport } from '../store.ts';
import { checkAgreement, recordChecks } from './check.ts';
import { putStream } from './directory.ts';
import { type Environment, openEnvironment } from './environment.ts';
import {
  encodeAppended,
  openReportTables,
  positionKey,
  type ReportTables,
  readCounters,
  reportKey,
  writeCounters,
  writePosition,
} from './report-tables.ts';

const { report } = await createSignedReports();
const t0 = 1_763_200_000;
const [first, second] = [secondStream(1), secondStream(2)];
const run = (feedId: FeedId, from: number, count: number): readonly StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(feedId, t0 + from + i, t0 + from + i));

let folder: string;
let environment: Environment;
let tables: ReportTables;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-check-'));
  const store = await openStore(folder, 'write');
  await store.reports.append([...run(first, 0, 130), ...run(second, 0, 5)]);
  await store.close();
  environment = openEnvironment(join(folder, 'reports'), false);
  tables = openReportTables(environment);
});
afterAll(async () => {
  await environment.root.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What is found after a change, which is then undone. */
const foundAfter = (change: () => void) => {
  let found: ReturnType<typeof checkAgreement> = [];
  const undone = new Error('undone');
  expect(() =>
    environment.root.transactionSync(() => {
      change();
      found = checkAgreement(environment, tables);
      throw undone;
    }),
  ).toThrow(undone);
  return found.map(({ table, reason }) => `${table}: ${reason}`);
};

test('agreement: the tables of an intact store agree', () => {
  expect(foundAfter(() => {})).toEqual([]);
});

test('agreement: keys that are cut short are passed over; the scan names them', () => {
  const cut = () => {
    tables.runs.put(Buffer.from('ab'), Buffer.from('cd'));
    tables.appended.put(Buffer.from('ab'), Buffer.from('cd'));
  };
  expect(foundAfter(cut)).toEqual([]);
});

test('scan: a record of any table whose key is cut short is corrupt', () => {
  const key = Buffer.from('ab');
  const value = Buffer.alloc(64);
  for (const [table, check] of Object.entries({ ...recordChecks, runs: openRun }))
    if (table !== 'meta') expect(() => check(key, value), table).toThrow(CorruptRecordError); // meta may have keys of later releases
});

test('agreement: counters are what the runs hold', () => {
  const { reportBytes } = readCounters(tables, createDamageLog());
  expect(foundAfter(() => writeCounters(tables, { reports: 136, reportBytes, isExact: true, rewrites: 0 }))).toEqual([
    `meta: the counters say 136 reports of ${reportBytes} bytes, the runs hold 135 of ${reportBytes}`,
  ]);
});

test('agreement: the last position is the end of the last batch, and batches follow each other', () => {
  expect(foundAfter(() => writePosition(tables, 140))).toEqual([
    'meta: the last position is 140, the last appended batch ends at 135',
  ]);
  const key = positionKey(140);
  expect(
    foundAfter(() => {
      tables.appended.put(key, encodeAppended(key, [reportKey(1, t0 * 1_000)]));
      writePosition(tables, 140);
    }),
  ).toEqual(['appended: the batch before position 140 ends at 135']);
});

test('agreement: a run begins after the run before it', () => {
  const key = reportKey(1, (t0 + 4) * 1_000);
  expect(foundAfter(() => void tables.runs.put(key, encodeRun(key, run(first, 3, 2))))).toContain(
    'runs: a run begins before the run before it ends',
  );
});

test('agreement: stream numbers and feed IDs are inverse in both directions', () => {
  const third = secondStream(3);
  const found = foundAfter(() => {
    putStream(tables, third, 1);
  });
  expect(found).toEqual([`numbers: stream number 1 and ${first} belong together in one direction only`]);
  expect(foundAfter(() => void tables.feedIds.clearSync())).toHaveLength(2);
});
