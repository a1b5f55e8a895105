import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Answer } from './answer.ts';
import { answerMaxMs, withinDeadline } from './pipeline.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new Promise<Answer>(() => {});
const answer: Answer = { status: 200, cacheControl: 'no-store' };

test('answer deadline: an answer and an error in time pass unchanged, and no timer is left', async () => {
  expect(await withinDeadline(Promise.resolve(answer))).toBe(answer);
  await expect(withinDeadline(Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(vi.getTimerCount()).toBe(0);
});

test('answer deadline: a handler that does not answer is 503 with its cause, and one that began later is not', async () => {
  const outcomes: unknown[] = [];
  withinDeadline(never).catch((error) => outcomes.push(error));
  await vi.advanceTimersByTimeAsync(5_000);
  withinDeadline(never).catch((error) => outcomes.push(error));
  await vi.advanceTimersByTimeAsync(answerMaxMs - 5_000);
  expect(outcomes).toMatchObject([
    { code: 'store_unavailable', cause: { message: 'The handler did not answer within 30000 ms.' } },
  ]);
  await vi.advanceTimersByTimeAsync(6_000);
  expect(outcomes).toHaveLength(2);
});
