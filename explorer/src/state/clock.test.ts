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
  const { nowMs } = createClock(timers, () => machineMs);
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
  const clock = createClock(timers, () => machineMs);
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
  const clock = createClock(timers, () => machineMs);
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
