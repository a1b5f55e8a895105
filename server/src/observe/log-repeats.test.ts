import { expect, test } from 'vitest';
import { sampleRequest as request } from '../../../tests/support/samples.ts';
import type { LogLevel } from '../config/values.ts';
import { openLog } from './log.ts';

/** A log whose lines and timers the test holds. */
const open = (level: LogLevel = 'debug') => {
  const lines: string[] = [];
  const due: (() => void)[] = [];
  const log = openLog({
    level,
    destination: { write: (line) => void lines.push(line) },
    nowMs: () => 1_763_200_000_000,
    slowMs: 1_000,
    complaintsPerSecondMax: 3,
    later: (act) => void due.push(act),
  });
  return { ...log, lines, due, parsed: () => lines.map((line) => JSON.parse(line)) };
};

test('log: rejections are one warning per address and minute with their codes, at warn too', () => {
  const log = open('warn');
  for (const code of ['unauthorized', 'rate_limited', 'unauthorized'])
    log.observe(request({ status: 401, code, userId: null, address: '::ffff:192.0.2.9' }));
  log.observe(request({ status: 401, code: 'unauthorized', address: '2001:db8:1:2::5' }));
  log.observe(request({ status: 401, code: 'unauthorized', address: '2001:db8:1:2::6' }));
  log.observe(request({ status: 400, code: 'malformed_argument' }));
  expect([log.lines.length, log.due.length]).toEqual([0, 1]);
  log.due[0]?.();
  expect(log.parsed()).toMatchObject([
    { level: 'warn', event: 'rejections', address: '192.0.2.9', count: 3, codes: { unauthorized: 2, rate_limited: 1 } },
    { level: 'warn', event: 'rejections', address: '2001:db8:1:2::/64', count: 2, codes: { unauthorized: 2 } },
  ]);
  log.due[1]?.();
  expect(log.lines).toHaveLength(2);
});

test('log: rejections of more than 100 addresses in a minute are one line together', () => {
  const log = open('warn');
  for (let i = 0; i < 1_000; i += 1)
    log.observe(request({ status: 429, code: 'rate_limited', address: `192.0.${i >> 8}.${i & 255}` }));
  log.due[0]?.();
  expect(log.lines).toHaveLength(101);
  expect(log.parsed().at(-1)).toMatchObject({ event: 'rejections', address: null, count: 900 });
});

test('log: a failure that continues has its cause once, then counts, and its requests are lines at info', () => {
  const log = open();
  const fail = () =>
    log.observe(request({ status: 503, code: 'store_unavailable', durationMs: 2_000, error: unavailable }));
  const unavailable = new Error('connect ECONNREFUSED');
  for (let i = 0; i < 50; i += 1) fail();
  log.observe(request({ status: 500, code: 'internal_error', error: new TypeError('a bug') }));
  expect(log.parsed().flatMap(({ level, error }) => (level === 'error' ? [error.message] : []))).toEqual([
    'connect ECONNREFUSED',
    'a bug',
  ]);
  expect(log.parsed()[1]).toMatchObject({ level: 'info', status: 503, code: 'store_unavailable', slow: true });
  expect(log.parsed()[1]).not.toHaveProperty('error');
  const counted = { level: 'error', event: 'suppressed', of: 'request', codes: { store_unavailable: 49 } };
  log.due[0]?.();
  expect(log.parsed().at(-1)).toMatchObject({
    ...counted,
    error: expect.stringMatching(/^Error at .*repeats\.test\.ts/),
  });
  fail();
  log.due[1]?.();
  expect(log.parsed().at(-1)).toMatchObject({ ...counted, codes: { store_unavailable: 1 } });
  log.due[2]?.();
  fail();
  expect(log.parsed().at(-1)).toMatchObject({ level: 'error', error: { message: 'connect ECONNREFUSED' } });
});

test('log: failures of one place with other codes or causes each have their own', () => {
  const log = open();
  // A database's client makes all of its errors in one function.
  const failure = (code: string) => Object.assign(new Error(`as ${code}`), { code });
  const unavailable = (cause: Error) => new Error('The database cannot be used.', { cause });
  const codes = ['42501', '42501', '53100'];
  for (const error of [...codes.map(failure), ...codes.map((code) => unavailable(failure(code)))])
    log.observe(request({ status: 500, code: 'internal_error', error }));
  const logged = log.parsed().flatMap(({ error }) => (error ? [error.cause ?? error] : []));
  expect(logged.map(({ message }) => message)).toEqual(['as 42501', 'as 53100', 'as 42501', 'as 53100']);
});

test('log: a wrong ingest token is a warning with the address, further ones of it are counted', () => {
  const log = open('warn');
  const warning = { kind: 'warning', code: 'ingest_token_rejected', message: 'A wrong token.' } as const;
  for (let i = 0; i < 20; i += 1) log.observe({ ...warning, address: '::ffff:192.0.2.9' });
  log.observe({ kind: 'warning', code: 'worker_ended', message: 'A worker exited.' });
  log.due[0]?.();
  expect(log.parsed()).toMatchObject([
    { level: 'warn', event: 'warning', code: 'ingest_token_rejected', address: '192.0.2.9' },
    { level: 'warn', event: 'warning', code: 'worker_ended' },
    { event: 'rejections', address: '192.0.2.9', count: 20, codes: { ingest_token_rejected: 20 } },
  ]);
});
