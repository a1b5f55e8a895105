import { expect, test } from 'vitest';
import { createClock, type Timers } from './clock.ts';

const openTimers = () => {
  const page = { hidden: false };
  const ticks: (() => void)[] = [];
  const views: (() => void)[] = [];
  const timers = {
    setInterval: (tick: () => void) => ticks.push(tick),
    document: {
      get hidden() {
        return page.hidden;
      },
      addEventListener: (_name: string, listener: () => void) => void views.push(listener),
    },
  } as unknown as Timers; // the parts that a clock uses
  return {
    timers,
    page,
    tick: () => ticks.forEach((one) => void one()),
    comesIntoView: () => views.forEach((one) => void one()),
  };
};

test('clock: follows this machine, but not while the page is hidden', () => {
  const { timers, page, tick } = openTimers();
  let machineMs = 1_000;
  const readMs = () => machineMs;
  const { nowMs } = createClock(timers, readMs, readMs);
  expect(nowMs.value).toBe(1_000);
  machineMs = 1_500;
  tick();
  expect(nowMs.value).toBe(1_500);
  page.hidden = true;
  machineMs = 9_000;
  tick();
  expect(nowMs.value).toBe(1_500);
});

test('clock: follows the server once its time is known, halfway between request and response', async () => {
  const { timers, tick, comesIntoView } = openTimers();
  let machineMs = 1_000;
  const readMs = () => machineMs;
  const clock = createClock(timers, readMs, readMs);
  let answer = Promise.resolve(50_000);
  clock.follow(() => {
    machineMs += 200;
    return answer;
  });
  await answer;
  await Promise.resolve();
  expect(clock.nowMs.value).toBe(50_100);
  machineMs += 400;
  tick();
  expect(clock.nowMs.value).toBe(50_500);
  answer = Promise.reject(new Error('no server'));
  comesIntoView();
  await answer.catch(() => {});
  await Promise.resolve();
  tick();
  expect(clock.nowMs.value).toBe(50_700);
});

test('clock: in a sandbox it runs by sandbox time, at its speed, and stands still while that is paused', () => {
  const { timers, tick } = openTimers();
  let machineMs = 1_000;
  const readMs = () => machineMs;
  const clock = createClock(timers, readMs, readMs);
  clock.runFrom(5_000_000, 60);
  expect(clock.nowMs.value).toBe(5_000_000);
  machineMs += 500;
  tick();
  expect(clock.nowMs.value).toBe(5_030_000);
  clock.runFrom(5_030_000, 0);
  machineMs += 500;
  tick();
  expect(clock.nowMs.value).toBe(5_030_000);
});

/** A clock on a machine that the test sets, whose server answers in turn; without an answer it is unreachable. */
const openFollowing = () => {
  const { timers, page, tick, comesIntoView } = openTimers();
  const time = { machineMs: 1_000, steadyMs: 7 };
  const answers: number[] = [];
  let asks = 0;
  const clock = createClock(
    timers,
    () => time.machineMs,
    () => time.steadyMs,
  );
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return {
    clock,
    page,
    time,
    answers,
    settle,
    comesIntoView,
    asks: () => asks,
    follow: async () => {
      clock.follow(async () => {
        asks += 1;
        const answer = answers.shift();
        if (answer === undefined) throw new Error('no server');
        return answer;
      });
      await settle();
    },
    /** Both clocks run, tick by tick. */
    pass: async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 500) {
        time.machineMs += 500;
        time.steadyMs += 500;
        tick();
        await settle();
      }
    },
  };
};

const minuteMs = 60_000;

test('clock: a first request that fails is repeated until the server answers, and then no more', async () => {
  const { clock, answers, asks, follow, pass } = openFollowing();
  await follow();
  expect(asks()).toBe(1);
  await pass(10 * minuteMs);
  const failed = asks();
  expect(failed).toBeGreaterThan(5);
  expect(failed).toBeLessThan(40); // it backs off
  answers.push(5_000_000);
  await pass(minuteMs);
  expect(asks()).toBe(failed + 1);
  await pass(10 * minuteMs);
  expect(asks()).toBe(failed + 1);
  expect(clock.read()).toBeGreaterThan(5_000_000);
});

test('clock: a server that answers is asked once', async () => {
  const { clock, answers, asks, follow, pass } = openFollowing();
  answers.push(50_000);
  await follow();
  await pass(60 * minuteMs);
  expect(asks()).toBe(1);
  expect(clock.nowMs.value).toBe(50_000 + 60 * minuteMs);
});

test('clock: a hidden page repeats nothing; it asks when it is visible again', async () => {
  const { page, time, asks, follow, pass, comesIntoView, settle } = openFollowing();
  page.hidden = true;
  await follow();
  time.machineMs += 60 * minuteMs;
  await pass(10 * minuteMs);
  expect(asks()).toBe(1);
  page.hidden = false;
  comesIntoView();
  await settle();
  expect(asks()).toBe(2);
});

test.each([-60, 60])('clock: a machine clock that changes by %i minutes is noticed', async (minutes) => {
  const { clock, time, answers, asks, follow, pass } = openFollowing();
  answers.push(10_000_000);
  await follow();
  await pass(minuteMs);
  time.machineMs += minutes * minuteMs;
  answers.push(10_060_500);
  await pass(500);
  expect(asks()).toBe(2);
  expect(clock.nowMs.value).toBe(10_060_500);
  await pass(10 * minuteMs);
  expect(asks()).toBe(2);
  expect(clock.nowMs.value).toBe(10_660_500);
});

test('clock: until the server answers, a machine clock that was set back counts for nothing', async () => {
  const { clock, time, answers, follow, pass } = openFollowing();
  answers.push(10_000_000);
  await follow();
  time.machineMs -= 60 * minuteMs;
  await pass(minuteMs);
  expect(clock.read()).toBe(10_060_000);
});

test('clock: after a sleep, in which the steady clock of some browsers stops, the time is right before the server answers', async () => {
  const { clock, page, time, answers, follow } = openFollowing();
  answers.push(10_000_000);
  await follow();
  page.hidden = true;
  time.machineMs += 60 * minuteMs;
  expect(clock.read()).toBe(10_000_000 + 60 * minuteMs);
});

test('clock: an answer that was on its way while the machine clock changed is not used', async () => {
  const { clock, time, answers, asks, settle, pass, follow } = openFollowing();
  answers.push(10_000_000);
  const following = follow();
  time.machineMs += 60 * minuteMs; // asked, not yet answered
  await following;
  await settle();
  answers.push(10_000_000);
  await pass(minuteMs);
  expect(asks()).toBe(2);
  expect(clock.read()).toBeGreaterThanOrEqual(10_000_000);
  expect(clock.read()).toBeLessThanOrEqual(10_000_000 + minuteMs);
});

test('clock: in a sandbox, whose time is read again and again, the server is not asked', async () => {
  const { clock, time, asks, follow, pass } = openFollowing();
  await follow();
  clock.runFrom(5_000_000, 60);
  time.machineMs -= 60 * minuteMs;
  await pass(10 * minuteMs);
  expect(asks()).toBe(1);
  expect(clock.read()).toBe(5_000_000 + 60 * 10 * minuteMs);
});
