import { expect, test } from 'vitest';
import { clockMaxMs, createSandboxClock, type SandboxClock, speedBounds, stepMaxMs } from './clock.ts';

const start = Date.parse('2026-03-13T14:30:00Z');

/** A clock over a real time that the test sets. */
const sample = (options: { speed?: number; paused?: boolean } = {}) => {
  const real = { ms: 5_000 };
  return { real, clock: createSandboxClock({ startMs: start, monotonicMs: () => real.ms, ...options }) };
};

test('clock: time starts anywhere and runs at any speed, which may change', () => {
  const { real, clock } = sample({ speed: 60 });
  expect(clock.nowMs()).toBe(start);
  real.ms += 1_000;
  expect(clock.nowMs()).toBe(start + 60_000);
  clock.setSpeed(0.5);
  real.ms += 1_000;
  expect(clock.state()).toEqual({ nowMs: start + 60_500, speed: 0.5, paused: false, behindMs: 0 });
});

test('clock: a paused one stands still, steps, and resumes from there', () => {
  const { real, clock } = sample({ paused: true });
  real.ms += 9_000;
  expect(clock.nowMs()).toBe(start);
  expect(clock.step(10_000)).toBe(start + 10_000);
  expect(clock.state()).toEqual({ nowMs: start + 10_000, speed: 1, paused: true, behindMs: 0 });
  clock.resume();
  real.ms += 1_000;
  clock.pause();
  real.ms += 1_000;
  expect(clock.nowMs()).toBe(start + 11_000);
  clock.resume();
  clock.step(5_000); // while it runs
  real.ms += 1_000;
  expect(clock.nowMs()).toBe(start + 17_000);
});

test('clock: time waits for the reports, catches up for a while, and drops what it cannot make up for', () => {
  const { real, clock } = sample();
  clock.holdAt(start + 2_000);
  real.ms += 7_000;
  expect(clock.state()).toEqual({ nowMs: start + 2_000, speed: 1, paused: false, behindMs: 5_000 });
  clock.holdAt(start + 9_000);
  expect(clock.nowMs()).toBe(start + 7_000);
  real.ms += 60_000;
  clock.holdAt(start + 10_000);
  expect(clock.state()).toMatchObject({ nowMs: start + 10_000, behindMs: 10_000 });
  clock.setSpeed(2); // from where it is
  clock.holdAt(start + 90_000);
  real.ms += 1_000;
  expect(clock.nowMs()).toBe(start + 12_000);
});

test('clock: a step as long as a day waits for its reports, whatever else happens', () => {
  const { real, clock } = sample({ paused: true });
  clock.holdAt(start + 1_000);
  const target = clock.step(86_400_000);
  for (let ms = 1_000; ms < 86_400_000; ms += 3_600_000) {
    clock.holdAt(start + ms);
    real.ms += 1_000;
    expect(clock.nowMs()).toBe(start + ms);
  }
  clock.setSpeed(5);
  clock.holdAt(Number.POSITIVE_INFINITY);
  expect(clock.nowMs()).toBe(target);
  clock.holdAt(target + 1_000);
  clock.step(10_000);
  clock.pause(); // ends the step
  clock.holdAt(Number.POSITIVE_INFINITY);
  expect(clock.nowMs()).toBe(target + 1_000);
});

test.each([
  ['resumed', true, (clock: SandboxClock) => clock.resume(), 1],
  ['given another speed', false, (clock: SandboxClock) => clock.setSpeed(2), 2],
] as const)(
  'clock: %s during a step, time reaches the end of the step and runs on from there',
  (_, paused, change, speed) => {
    const { real, clock } = sample({ paused });
    clock.holdAt(start + 1_000);
    const target = clock.step(3_600_000);
    real.ms += 5_000;
    clock.holdAt(start + 2_000);
    change(clock);
    expect(clock.nowMs()).toBe(start + 2_000);
    clock.holdAt(Number.POSITIVE_INFINITY);
    expect(clock.nowMs()).toBe(target);
    real.ms += 60_000;
    expect(clock.state()).toEqual({ nowMs: target + 60_000 * speed, speed, paused: false, behindMs: 0 });
  },
);

test('clock: time never goes back, not by a lower bound nor by a machine whose time does', () => {
  const { real, clock } = sample();
  real.ms += 5_000;
  expect(clock.nowMs()).toBe(start + 5_000);
  clock.holdAt(start);
  real.ms -= 3_000;
  expect(clock.nowMs()).toBe(start + 5_000);
  clock.setSpeed(3);
  expect(clock.nowMs()).toBe(start + 5_000);
});

test('clock: a wait ends at its time, after a change of speed, a step, a raised bound, or when it is aborted', async () => {
  const clock = createSandboxClock({ startMs: start, speed: 0.01, monotonicMs: () => performance.now() });
  const reached = async (change: () => unknown): Promise<number> => {
    const waited = clock.waitUntil(clock.nowMs() + 2_000);
    change();
    await waited;
    return clock.nowMs();
  };
  expect(await reached(() => clock.setSpeed(1_000))).toBeGreaterThanOrEqual(start + 2_000);
  clock.pause();
  const pausedMs = clock.nowMs();
  expect(await reached(() => clock.step(2_000))).toBe(pausedMs + 2_000);
  clock.holdAt(clock.nowMs());
  clock.step(60_000);
  expect(await reached(() => clock.holdAt(pausedMs + 20_000))).toBe(pausedMs + 20_000);
  const controller = new AbortController();
  const waited = clock.waitUntil(clockMaxMs, controller.signal);
  controller.abort();
  await waited;
  expect(clock.nowMs()).toBe(pausedMs + 20_000);
});

test('clock: what it cannot do is an error, and changes nothing', () => {
  const { clock } = sample();
  for (const speed of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, speedBounds.max * 2])
    expect(() => clock.setSpeed(speed)).toThrow(`The speed is ${speed}, expected a number from 0.01 to 10000.`);
  for (const ms of [-1, 0.5, Number.NaN, stepMaxMs + 1]) expect(() => clock.step(ms)).toThrow(`The step is ${ms} ms`);
  expect(clock.state()).toEqual({ nowMs: start, speed: 1, paused: false, behindMs: 0 });
  expect(() => createSandboxClock({ startMs: clockMaxMs + 1, monotonicMs: () => 0 })).toThrow('The time is');
  const late = createSandboxClock({ startMs: clockMaxMs - 1_000, monotonicMs: () => 0 });
  expect(late.step(60_000)).toBe(clockMaxMs);
});
