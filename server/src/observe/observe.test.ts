import { errorTable } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { countedCodes, createObserver, type Observation } from './observe.ts';

const committed: Observation = { kind: 'committed', seconds: 0.004 };

test('observer: every listener is told, in order', () => {
  const told: string[] = [];
  const observe = createObserver([({ kind }) => told.push(`first ${kind}`), ({ kind }) => told.push(`second ${kind}`)]);
  observe(committed);
  observe({ kind: 'draining', reason: 'SIGTERM' });
  expect(told).toEqual(['first committed', 'second committed', 'first draining', 'second draining']);
});

test('observer: a listener that throws reaches neither the caller nor the others, who are told of it', () => {
  const told: Observation[] = [];
  const error = new Error('no space left');
  const observe = createObserver([
    () => {
      throw error;
    },
    (observation) => told.push(observation),
  ]);
  expect(() => observe(committed)).not.toThrow();
  const message = 'A listener failed at an observation of the kind committed.';
  expect(told).toEqual([{ kind: 'warning', code: 'listener_failed', message, error }, committed]);
});

test('observer: when every listener throws the caller still does not notice', () => {
  const fail = () => {
    throw new Error('broken');
  };
  expect(() => createObserver([fail, fail])(committed)).not.toThrow();
});

test('observer: every 401 and 429 of the error table is counted as what it is', () => {
  const codes = Object.entries(errorTable);
  const withStatus = (status: number) => codes.filter(([, row]) => row.status === status).map(([code]) => code);
  expect(countedCodes.authFailure).toEqual(expect.arrayContaining(withStatus(401)));
  expect([...countedCodes.rateLimited].sort()).toEqual(withStatus(429).sort());
});
