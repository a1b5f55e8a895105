import { SealpostError } from '@sealpost/client';
import { parseFeedId, type ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { reportOf } from '../state/report.fixture.ts';
import { readAddressMs, readReportAt, readSide, type Side } from './neighbors.ts';
import { createSteps } from './steps.ts';

const secondStream = parseFeedId(`0x0002${'1'.repeat(60)}`);
const millisecondStream = parseFeedId(`0x1002${'1'.repeat(60)}`);

const details = { status: 200, requestId: undefined } as never; // not read
const windowOf = (report: ReportJson | undefined) => report ?? null;

/** Answers as the API does, from reports in ascending order. */
const readerOf = (reports: readonly ReportJson[]) => ({
  at: async (_: string, second: number) => {
    const report = reports.find((one) => one.validFromTimestamp <= second && second <= one.observationsTimestamp);
    if (report !== undefined) return { report, details };
    throw new SealpostError('report_not_found', 'No report.', {
      details: { previous: windowOf(reports.findLast((one) => one.observationsTimestamp < second)), next: null },
    });
  },
  page: async (_: string, start: number, limit = 10) => ({
    reports: reports.filter((one) => one.observationsTimestamp >= start).slice(0, limit),
    more: false,
    nextStartTimestamp: 0,
    details,
  }),
});

const { signal } = new AbortController();
const a = reportOf(secondStream, 100, 109);
const b = reportOf(secondStream, 110, 119);
const c = reportOf(secondStream, 150, 159);
const seconds = readerOf([a, b, c]);

test('neighbors: the reports on both sides are found', async () => {
  expect(await readSide(seconds, b, 'previous', signal)).toEqual({ kind: 'report', report: a, gapMs: 0 });
  expect(await readSide(seconds, a, 'next', signal)).toEqual({ kind: 'report', report: b, gapMs: 0 });
});

test('neighbors: across a gap, the report on its other side is found, and the length of the gap', async () => {
  expect(await readSide(seconds, b, 'next', signal)).toEqual({ kind: 'report', report: c, gapMs: 30_000 });
  expect(await readSide(seconds, c, 'previous', signal)).toEqual({ kind: 'report', report: b, gapMs: 30_000 });
});

test('neighbors: the first and the newest report have an end', async () => {
  expect(await readSide(seconds, a, 'previous', signal)).toEqual({ kind: 'end', why: 'first' });
  expect(await readSide(seconds, c, 'next', signal)).toEqual({ kind: 'end', why: 'newest' });
});

test('neighbors: a failed read is a side, not an end', async () => {
  const error = new SealpostError('network_error', 'No answer.');
  const broken = { at: () => Promise.reject(error), page: () => Promise.reject(error) };
  expect(await readSide(broken, b, 'previous', signal)).toEqual({ kind: 'failed', error });
  expect(await readSide(broken, b, 'next', signal)).toEqual({ kind: 'failed', error });
});

test('neighbors: reports of a millisecond stream within one second are stepped through one by one', async () => {
  const fast = [
    reportOf(millisecondStream, 90_000, 99_999),
    reportOf(millisecondStream, 100_000, 100_249),
    reportOf(millisecondStream, 100_250, 100_499),
    reportOf(millisecondStream, 100_500, 101_100),
    reportOf(millisecondStream, 130_000, 130_100),
  ];
  const reader = readerOf(fast);
  const walk = async (from: ReportJson, direction: 'previous' | 'next') => {
    const gaps: number[] = [];
    const seen = [from];
    let side: Side = await readSide(reader, from, direction, signal);
    while (side.kind === 'report') {
      seen.push(side.report);
      gaps.push(side.gapMs);
      side = await readSide(reader, side.report, direction, signal);
    }
    return { seen, gaps };
  };
  const [first, last] = [fast[0] as ReportJson, fast[4] as ReportJson]; // of the list above
  expect(await walk(first, 'next')).toEqual({ seen: fast, gaps: [0, 0, 0, 28_899] });
  expect(await walk(last, 'previous')).toEqual({ seen: [...fast].reverse(), gaps: [28_899, 0, 0, 0] });
});

/** A stream of live reports that the test pushes. */
const createWatched = () => {
  let push: ((live: never) => void) | undefined;
  return {
    live: {
      watch: (_: readonly string[], onReport?: (live: never) => void) => {
        push = onReport;
        return () => {
          push = undefined;
        };
      },
    },
    push: (report: ReportJson) => push?.({ report } as never), // steps read only the report
    isWatched: () => push !== undefined,
  };
};

/** Waits until what was started has finished. */
const settle = () => new Promise((done) => setTimeout(done));

test('steps: after the newest report, the next one is known as soon as it arrives', async () => {
  const watched = createWatched();
  const steps = createSteps(readerOf([a, b]), watched.live, secondStream);
  steps.look(b);
  await settle();
  expect(steps.sides.value.get(b.fullReport)?.next).toMatchObject({ kind: 'end' });
  watched.push(c);
  expect(steps.sides.value.get(b.fullReport)?.next).toEqual({ kind: 'report', report: c, gapMs: 30_000 });
  expect(steps.sides.value.get(c.fullReport)?.previous).toEqual({ kind: 'report', report: b, gapMs: 30_000 });
  expect(steps.find(159, undefined)).toBe(c);
  steps.close();
  expect(watched.isWatched()).toBe(false);
});

test('steps: a report that was read as a neighbor is not read again', async () => {
  const steps = createSteps(seconds, createWatched().live, secondStream);
  steps.look(b);
  await settle();
  expect([steps.find(109, undefined), steps.find(159, undefined)]).toEqual([a, c]);
  expect(steps.sides.value.get(a.fullReport)?.next).toEqual({ kind: 'report', report: b, gapMs: 0 });
  steps.close();
});

test('steps: the report on screen and those next to it stay, however many reports arrive', async () => {
  const watched = createWatched();
  const steps = createSteps(readerOf([a, b]), watched.live, secondStream);
  steps.keep(115, undefined, b);
  steps.look(b);
  await settle();
  const arrived = Array.from({ length: 250 }, (_, i) => reportOf(secondStream, 120 + i, 120 + i));
  for (const report of arrived) watched.push(report);
  expect(steps.find(115, undefined)).toBe(b);
  expect(steps.find(109, undefined)).toBe(a);
  expect(steps.find(120, undefined)).toBe(arrived[0]);
  expect(steps.find(150, undefined)).toBeUndefined();
  expect(steps.sides.value.get(b.fullReport)).toMatchObject({ previous: { report: a }, next: { report: arrived[0] } });
  const [next, afterNext] = arrived;
  if (next !== undefined) steps.look(next);
  expect(steps.find(121, undefined)).toBe(afterNext);
  steps.close();
});

test('an address with a millisecond has the report of that millisecond in its second, or none', async () => {
  const first = reportOf(millisecondStream, 5_000, 5_200);
  const second = reportOf(millisecondStream, 5_201, 5_900);
  const later = reportOf(millisecondStream, 5_901, 6_400);
  const reader = readerOf([first, second, later]);
  const read = (timestamp: number, ms: number | undefined) =>
    readReportAt(reader, { feedId: millisecondStream, timestamp, ms }, signal);
  expect(await read(5, 5_900)).toBe(second);
  expect(await read(5, undefined)).toBe(first);
  for (const ms of [5_901, 6_400]) await expect(read(5, ms)).rejects.toMatchObject({ code: 'report_not_found' });
});

test('address: milliseconds choose a report of the second; anything else is named and ignored', () => {
  const read = (text: string | null, feedId = millisecondStream) => readAddressMs(feedId, 1_794_734_897, text);
  expect(read(null)).toEqual({ ms: undefined, problem: undefined });
  expect(read('1794734897123')).toEqual({ ms: 1_794_734_897_123, problem: undefined });
  for (const text of ['', 'abc', '12.5', '-1', '9'.repeat(16)])
    expect(read(text)).toEqual({ ms: undefined, problem: 'Expected Unix milliseconds, such as 1794734897000.' });
  expect(read('1794734898000')).toEqual({
    ms: undefined,
    problem: '1794734898000 is not in second 1794734897: expected 1794734897000 to 1794734897999.',
  });
  expect(read('1794734897123', secondStream).problem).toBe('The reports of this stream have whole seconds.');
});
