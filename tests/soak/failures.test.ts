import { expect, test } from 'vitest';
import { tallyControl } from '../support/full-count.ts';
import { describeAnswer } from './answers.ts';
import { type Allowance, type Failure, judgeFailures } from './failures.ts';

const allowance: Allowance = { kinds: ['published'], failure: /^503 store_/, forMs: 1_000, why: 'history answers 503' };
const events = [
  { name: 'fail-over', fromMs: 1_000, toMs: 2_000, allows: [allowance] },
  { name: 'restart', fromMs: 5_000, toMs: 6_000, allows: [] },
];
const failure = (atMs: number, text = '503 store_unavailable', kind: Failure['kind'] = 'published'): Failure => ({
  atMs,
  kind,
  text,
});

test('failures: one is allowed while its event lasts, and for the time that is given after it', () => {
  const { forbidden, allowed } = judgeFailures([failure(1_000), failure(1_500), failure(3_000)], events);
  expect(forbidden).toEqual([]);
  expect(allowed).toEqual([{ event: 'fail-over', kind: 'published', why: 'history answers 503', count: 3 }]);
});

test('failures: earlier, later, of another kind, with another text or during another event, it is forbidden (control)', () => {
  const failures = [
    failure(999),
    failure(3_001),
    failure(1_500, '503 store_unavailable', 'bare'),
    failure(1_500, 'direct 503 store_unavailable'),
    failure(5_500),
  ];
  const { forbidden, allowed } = judgeFailures(failures, events);
  expect(forbidden).toEqual(failures);
  expect(allowed).toEqual([]);
  tallyControl({ 'forbidden failures found': forbidden.length });
});

test('failures: an answer is described by its status and code, wherever the body has it', () => {
  const body = `{"error":"${'x'.repeat(500)}","code":"clock_skew"}`;
  expect(describeAnswer(400, body)).toMatch(/^400 clock_skew \{"error":"x+$/);
  expect(describeAnswer('failed', '')).toBe('failed  ');
});

test('failures: one that two events allow is counted once, for the later one', () => {
  const again = { name: 'kill', fromMs: 1_400, toMs: 1_600, allows: [allowance] };
  const { allowed } = judgeFailures([failure(1_500)], [...events.slice(0, 1), again]);
  expect(allowed).toEqual([{ event: 'kill', kind: 'published', why: 'history answers 503', count: 1 }]);
});
