// What a process does at its exit, by the state of the gate. That threads are not ended inside a transaction is tested with LMDB (exit.test.ts).
import { expect, test } from 'vitest';
import { type ExitGate, enterGate, watchExit } from './exit-gate.ts';

/** Calls what was registered for the exit of this process, without exiting. Returns whether it would be killed. */
const exitWith = (prepare: (gate: ExitGate) => void): boolean => {
  let isKilled = false;
  const before = process.listeners('exit');
  const { gate, over } = watchExit(() => {
    isKilled = true;
  }, 20);
  const listener = process.listeners('exit').find((one) => !before.includes(one));
  prepare(gate);
  listener?.(0);
  over();
  expect(process.listeners('exit')).not.toContain(listener);
  return isKilled;
};

test('exit gate: a thread that is loading, or in an act, and does not finish in time is killed with the process', () => {
  expect(exitWith(() => {})).toBe(true);
  let inAct: boolean | undefined;
  const { act, leave } = enterGate(new Int32Array(new SharedArrayBuffer(4)));
  expect(act(() => 'result')).toBe('result');
  leave();
  exitWith((gate) => {
    const entered = enterGate(gate);
    entered.leave();
    entered.act(() => {
      inAct = Atomics.load(gate, 0) !== 0;
    });
  });
  expect(inAct).toBe(true);
});

test('exit gate: a thread that is idle does not hold up the exit, whatever its acts returned or threw', () => {
  expect(
    exitWith((gate) => {
      const { act, leave } = enterGate(gate);
      leave();
      expect(act(() => 1)).toBe(1);
      expect(() =>
        act(() => {
          throw new Error('failed');
        }),
      ).toThrow('failed');
    }),
  ).toBe(false);
});

test('exit gate: many threads have one listener of the process, which goes with the last of them', () => {
  const before = process.listenerCount('exit');
  const watches = Array.from({ length: 20 }, () => watchExit());
  expect(process.listenerCount('exit')).toBe(before + 1);
  for (const { over } of watches) over();
  expect(process.listenerCount('exit')).toBe(before);
});
