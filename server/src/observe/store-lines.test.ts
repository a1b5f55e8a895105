import { expect, test } from 'vitest';
import { storeLine } from './store-lines.ts';

/** The levels and fields of these events. */
const linesOf = (...events: readonly Parameters<typeof storeLine>[0][]) =>
  events.map(storeLine).map(({ level, fields }) => ({ level, ...fields }));

test('store log: a damaged record is an error that names it; an unexpected end says what to do, and how often it happened', () => {
  expect(
    linesOf(
      { kind: 'damaged', total: 1, table: 'tail', key: '00', reason: 'it does not match its checksum' },
      { kind: 'endedUnexpectedly', times: 1 },
      { kind: 'endedUnexpectedly', times: 3 },
    ),
  ).toMatchObject([
    { level: 'error', event: 'damaged', table: 'tail', key: '00', feedId: null },
    { level: 'warn', times: 1, message: expect.stringContaining('ended unexpectedly. Run: sealpost store verify.') },
    { level: 'error', times: 3, message: expect.stringContaining('3 times in a row') },
  ]);
});

test('store log: what retention deleted is one line with the count', () => {
  expect(linesOf({ kind: 'reportsDeleted', count: 86_400, endMs: Date.parse('2026-03-01T00:00:00Z') })).toEqual([
    { level: 'info', event: 'reportsDeleted', count: 86_400, before: '2026-03-01T00:00:00.000Z' },
  ]);
});

test('store log: a replica that is not used is a warning with the reason; its use again is a line with the duration', () => {
  const replica = 'postgres://db-2/prices';
  expect(
    linesOf(
      { kind: 'replicaUnused', replica, reason: 'It is behind the primary.' },
      { kind: 'replicaUsed', replica, seconds: 12.5 },
    ),
  ).toMatchObject([
    { level: 'warn', event: 'replicaUnused', replica, reason: 'It is behind the primary.' },
    { level: 'info', event: 'replicaUsed', replica, durationMs: 12_500 },
  ]);
});

test('store log: commits that the database lost are an error that says what to do', () => {
  expect(linesOf({ kind: 'commitsLost', reason: 'Restart this node.' })).toEqual([
    { level: 'error', event: 'commitsLost', reason: 'Restart this node.' },
  ]);
});

test.each([
  ['followingStopped', 'followingResumed'],
  ['durabilityReduced', 'durabilityRestored'],
] as const)('store log: %s is an error with the reason, once, and %s a line with the duration', (began, ended) => {
  expect(
    linesOf(
      { kind: began, reason: 'The database says so.', isNews: true },
      { kind: began, reason: 'The database says so.', isNews: false },
      { kind: ended, seconds: 12.5 },
    ),
  ).toMatchObject([
    { level: 'error', event: began, reason: 'The database says so.' },
    { level: 'debug', event: began, reason: 'The database says so.' },
    { level: 'info', event: ended, durationMs: 12_500 },
  ]);
});
