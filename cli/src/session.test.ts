import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createInterruption } from './session.ts';

/** A process that notes with which codes it was to exit. */
const createHost = () => {
  const codes: unknown[] = [];
  const exit = (code: unknown) => codes.push(code);
  const host = Object.assign(new EventEmitter(), { exit }) as EventEmitter & Pick<NodeJS.Process, 'on' | 'exit'>; // the two that are used
  return { host, codes };
};

test('session: the first signal aborts, one within a second is the same key press, a later one exits with 130', () => {
  const { host, codes } = createHost();
  let nowMs = 5_000;
  const signal = createInterruption(host, () => nowMs)();
  expect(signal.aborted).toBe(false);
  host.emit('SIGTERM', 'SIGTERM');
  expect([signal.aborted, signal.reason]).toEqual([true, 'SIGTERM']);
  nowMs = 6_000;
  host.emit('SIGTERM', 'SIGTERM');
  host.emit('SIGINT', 'SIGINT');
  expect([signal.reason, codes]).toEqual(['SIGTERM', []]);
  nowMs = 6_001;
  host.emit('SIGTERM', 'SIGTERM');
  expect(codes).toEqual([130]);
});

test('session: the second that counts begins with the first signal, not with the last', () => {
  const { host, codes } = createHost();
  let nowMs = 0;
  createInterruption(host, () => nowMs)();
  for (nowMs = 0; nowMs <= 1_500; nowMs += 500) host.emit('SIGINT', 'SIGINT');
  expect(codes).toEqual([130]);
});

test('session: without a command that waits for them, signals end the process as usual', () => {
  const { host } = createHost();
  const interruption = createInterruption(host, () => 0);
  expect(host.eventNames()).toEqual([]);
  interruption(['SIGHUP']);
  interruption();
  expect(host.eventNames()).toEqual(['SIGINT', 'SIGTERM', 'SIGHUP']);
  expect(host.listenerCount('SIGTERM')).toBe(1);
});
