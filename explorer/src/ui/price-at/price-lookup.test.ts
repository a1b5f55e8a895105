import { SealpostError } from '@sealpost/client';
import { parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { reportOf } from '../../state/report.fixture.ts';
import { formatUtc } from '../format.ts';
import { explainMiss, explainTooOld, lookUpPrice, type PriceLookup } from './price-lookup.ts';

const { signal } = new AbortController();
const window = (validFromTimestamp: number, observationsTimestamp: number) => ({
  validFromTimestamp,
  observationsTimestamp,
  decoded: undefined,
});
const miss = (changes: Partial<Extract<PriceLookup, { kind: 'miss' }>>): Extract<PriceLookup, { kind: 'miss' }> => ({
  kind: 'miss',
  seconds: 1_794_734_900,
  reason: 'gap',
  previous: undefined,
  next: undefined,
  ...changes,
});

/** A server that refuses the moment itself, and does not answer for the neighbors either. */
const refusing = (error: SealpostError) => ({ at: async () => Promise.reject(error) });

test('a report whose fields are not known is found, with its window', async () => {
  const report = reportOf(parseFeedId(`0x0002${'ab'.repeat(30)}`), 5, 7);
  const fullReport = report.fullReport.replace(report.feedID.slice(2), `0fff${report.feedID.slice(6)}`);
  const server = { at: async () => ({ report: { ...report, fullReport }, details: {} as never }) }; // not read
  const found = expect.objectContaining({ validFromMs: 5_000, observationsMs: 7_000, decoded: undefined });
  expect(await lookUpPrice(server, report.feedID, 7, signal)).toEqual({ kind: 'found', seconds: 7, report: found });
});

test('a miss has the reason and the nearest two windows, even if their prices cannot be read', async () => {
  const details = { reason: 'gap', previous: { validFromTimestamp: 1, observationsTimestamp: 5 }, next: null };
  const error = new SealpostError('report_not_found', 'None.', { status: 404, details });
  expect(await lookUpPrice(refusing(error), '0x', 7, signal)).toEqual({
    kind: 'miss',
    seconds: 7,
    reason: 'gap',
    previous: { validFromTimestamp: 1, observationsTimestamp: 5, decoded: undefined },
    next: undefined,
  });
});

test('a time before the retention is explained with the oldest second', async () => {
  const error = new SealpostError('timestamp_out_of_bounds', 'Old.', { details: { oldestTimestamp: 1_794_734_897 } });
  const lookup = await lookUpPrice(refusing(error), '0x', 7, signal);
  expect(lookup).toEqual({ kind: 'too-old', seconds: 7, oldestTimestamp: 1_794_734_897 });
  expect(explainTooOld({ kind: 'too-old', oldestTimestamp: 1_794_734_897 }, formatUtc)).toBe(
    'This server keeps reports from 2026-11-15 09:28:17 UTC. Enter a later time.',
  );
});

test('other errors than a miss are thrown', async () => {
  const error = new SealpostError('unauthorized', 'No.', { status: 401 });
  await expect(lookUpPrice(refusing(error), '0x', 7, signal)).rejects.toBe(error);
});

test('a gap is explained with its first and last second', () => {
  const between = miss({ previous: window(1, 1_794_734_890), next: window(1_794_734_911, 1_794_734_911) });
  expect(explainMiss(between, 1_794_735_000, formatUtc)).toBe(
    'Nothing was observed from 2026-11-15 09:28:11 UTC to 2026-11-15 09:28:30 UTC, a gap of 20 s. A price is never carried over a gap.',
  );
});

test('a time after the newest report is in the future, or its report has not arrived', () => {
  const after = miss({ reason: 'not_yet', previous: window(1_794_734_890, 1_794_734_890) });
  expect(explainMiss(after, 1_794_734_899, formatUtc)).toBe(
    'That time is in the future. The newest report is valid to 2026-11-15 09:28:10 UTC.',
  );
  expect(explainMiss(after, 1_794_734_901, formatUtc)).toBe(
    'The newest report is valid to 2026-11-15 09:28:10 UTC; no later one has arrived. Try again in a moment.',
  );
});

test('a time before the first report, and a stream without reports, are explained', () => {
  expect(explainMiss(miss({ reason: 'before_first', next: window(1_794_734_911, 1_794_734_911) }), 0, formatUtc)).toBe(
    'The first report kept for this stream is valid from 2026-11-15 09:28:31 UTC.',
  );
  expect(explainMiss(miss({ reason: 'no_reports' }), 0, formatUtc)).toBe('This stream has no reports.');
});
