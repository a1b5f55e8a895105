import { parseFeedId, type Stream } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { testStream } from '../../../tests/support/running-ingest.ts';
import { createDecisions, type FaultSubject, faultsMax } from './decisions.ts';
import { createFaults } from './faults.ts';
import { createRequestLog } from './request-log.ts';

const [one, two] = ['01', '02'].map((end) => parseFeedId(`0x0003${'0'.repeat(58)}${end}`)) as [never, never];
const account = '11111111-2222-4333-8444-555555555555';
const subject: FaultSubject = { route: 'reportLatest', account, feedIds: [one] };

const sample = (seed = 'seed') => {
  const clock = { ms: 1_000_000 };
  return { clock, decisions: createDecisions({ seed, nowMs: () => clock.ms, objection: () => undefined }) };
};
type Sample = ReturnType<typeof sample>['decisions'];

const outcomes = (decisions: Sample, times: number, about = subject): readonly boolean[] =>
  Array.from({ length: times }, () => decisions.first('reset', about) !== undefined);

test('faults: the same seed and requests give the same decisions, another seed or ID others', () => {
  const run = (seed: string, line: string) => {
    const { decisions } = sample(seed);
    decisions.add(line);
    return outcomes(decisions, 200).map(Number).join('');
  };
  const first = run('a', 'reset,probability=0.3');
  expect(run('a', 'reset,probability=0.3')).toBe(first);
  expect(run('b', 'reset,probability=0.3')).not.toBe(first);
  expect(run('a', 'reset,probability=0.3,id=other')).not.toBe(first);
  expect(first.replaceAll('0', '').length).toBe(59);
});

test('faults: a tracked fault is its own, also when another one has its ID', () => {
  const { decisions } = sample();
  const tracked = decisions.addTracked('reset,id=one');
  outcomes(decisions, 3);
  expect(tracked.listed()).toMatchObject({ id: 'one', matched: 3, applied: 3 });
  decisions.remove('one');
  decisions.add('reset,id=one');
  outcomes(decisions, 2);
  expect([tracked.remove(), tracked.listed().applied]).toEqual([false, 3]);
  expect(decisions.list()).toMatchObject([{ id: 'one', applied: 2 }]);
  const other = decisions.addTracked('reset,id=two');
  expect([other.remove(), other.remove(), decisions.list().length]).toEqual([true, false, 1]);
});

test('faults: after a clear, decisions begin anew', () => {
  const { decisions } = sample();
  decisions.add('reset,probability=0.5');
  const first = outcomes(decisions, 50);
  decisions.clear();
  expect(decisions.add('reset,probability=0.5').id).toBe('f1');
  expect(outcomes(decisions, 50)).toEqual(first);
});

test('faults: skip lets requests pass, count ends it, and both are shown', () => {
  const { decisions } = sample();
  decisions.add('reset,skip=2,count=2');
  expect(outcomes(decisions, 6)).toEqual([false, false, true, true, false, false]);
  expect(decisions.list()).toMatchObject([{ id: 'f1', state: 'exhausted', matched: 4, applied: 2 }]);
});

test('faults: from, to and for are sandbox time', () => {
  const { clock, decisions } = sample();
  decisions.add({ kind: 'reset', from: '10s', for: '5s' });
  const states = [0, 9_999, 1, 4_999, 1].map((ms) => {
    clock.ms += ms;
    return [decisions.list()[0]?.state, decisions.first('reset', subject) !== undefined];
  });
  expect(states).toEqual([
    ['waiting', false],
    ['waiting', false],
    ['active', true],
    ['active', true],
    ['over', false],
  ]);
  expect(() => decisions.add({ kind: 'reset', to: '1970-01-01T00:00:01Z' })).toThrow(
    'to is "1970-01-01T00:00:01Z", expected a time after 1970-01-01T00:16:55.000Z, when the fault starts.',
  );
});

test('faults: times are relative to when a fault was scheduled, and none is later than a sandbox gets', () => {
  const { clock, decisions } = sample();
  expect(decisions.add({ kind: 'reset', for: '5s' }, 999_000)).toMatchObject({ fromMs: 999_000, toMs: 1_004_000 });
  expect(decisions.add({ kind: 'reset', from: '2s' })).toMatchObject({ fromMs: clock.ms + 2_000 });
  for (const field of ['from', 'to'])
    for (const far of ['999999999d', '9999-12-31T23:59:59Z'])
      expect(() => decisions.add({ kind: 'reset', [field]: far })).toThrow(
        `${field} is "${far}", expected a time up to 2106-`,
      );
  expect(decisions.list().length).toBe(2);
});

test('faults: the way back restores those that were set, with their counts and IDs', () => {
  const { decisions } = sample();
  decisions.add('reset,id=one');
  outcomes(decisions, 3);
  const before = decisions.list();
  const undo = decisions.mark();
  decisions.clear();
  decisions.add('latency=1ms');
  undo();
  expect(decisions.list()).toEqual(before);
  expect(decisions.add('latency=1ms').id).toBe('f1');
});

test('faults: a fault acts on its routes, accounts and streams alone', () => {
  const { decisions } = sample();
  const streams = new Map<never, Stream>([
    [one, testStream(one, { name: 'ETH/USD-Streams-CexPrice' })],
    [two, testStream(two, { name: 'BTC/USD-Streams-CexPrice' })],
  ]);
  decisions.useCatalog(() => streams);
  const acts = (line: string, about: FaultSubject): boolean => {
    decisions.clear();
    decisions.add(line);
    return outcomes(decisions, 1, about)[0] === true;
  };
  expect(acts('reset,route=reportLatest', subject)).toBe(true);
  expect(acts('reset,route=reportBulk+reportPage', subject)).toBe(false);
  expect(acts('reset,route=reportLatest', { ...subject, route: undefined })).toBe(false);
  expect(acts(`reset,account=${account.toUpperCase()}`, subject)).toBe(true);
  expect(acts(`reset,account=${account}`, { ...subject, account: undefined })).toBe(false);
  expect(acts('reset,stream=eth/usd', subject)).toBe(true);
  expect(acts('reset,stream=BTC/USD', subject)).toBe(false);
  expect(acts('reset,stream=BTC/USD', { ...subject, feedIds: [one, two] })).toBe(true);
  expect(acts(`reset,stream=${one}`, subject)).toBe(true);
  expect(acts('reset,stream=ETH/USD', { ...subject, feedIds: [] })).toBe(false);
  expect(() => decisions.add('reset,stream=ETH/USDT')).toThrow(
    'stream: No stream is named "ETH/USDT". Similar: ETH/USD-Streams-CexPrice, BTC/USD-Streams-CexPrice.',
  );
});

test('faults: a report is always left out or never, whoever asks', () => {
  const { clock, decisions } = sample();
  decisions.add('gap,to=100s,probability=0.5');
  clock.ms += 500_000; // a gap stays after its time
  const hidden = () =>
    Array.from({ length: 101 }, (_, i) => decisions.hiding(subject, one, 1_000_000 + i * 1_000) !== undefined);
  const first = hidden();
  expect(hidden()).toEqual(first);
  expect(first.filter(Boolean).length).toBeGreaterThan(30);
  expect([first.at(-1), decisions.hiding(subject, one, 999_999)]).toEqual([false, undefined]);
});

test('faults: IDs are given or counted, and each is there once', () => {
  const { decisions } = sample();
  decisions.add('reset,id=f2');
  expect([decisions.add('reset').id, decisions.add('reset').id]).toEqual(['f1', 'f3']);
  expect(() => decisions.add('reset,id=f3')).toThrow('id is "f3", expected one that no other fault has.');
  expect([decisions.remove('f3'), decisions.remove('f3'), decisions.remove('f9')]).toEqual([true, false, false]);
});

test('faults: their number is bounded, and those that are over make way', () => {
  const { decisions } = sample();
  decisions.add('reset,count=1,id=done');
  decisions.add('stop,for=1ms,id=stopped');
  for (let i = 2; i < faultsMax; i += 1) decisions.add('latency=1ms');
  expect(() => decisions.add('latency=1ms')).toThrow(
    '100 faults are set, the maximum. Remove one first, or clear them.',
  );
  outcomes(decisions, 1);
  decisions.add('latency=1ms');
  expect(decisions.list().map(({ id }) => id)).not.toContain('done');
  expect(decisions.list()).toHaveLength(faultsMax);
});

test('faults: a report that is properly signed cannot be made without the keys', () => {
  const { add } = createFaults({ seed: 'a', nowMs: () => 0 });
  expect(() => add('two-reports')).toThrow('kind is "two-reports", which needs the keys of the oracles.');
});

test('request log: the last requests are kept in the order of their arrival', () => {
  const requestLog = createRequestLog(3);
  const rows = Array.from({ length: 10 }, (_, atMs) =>
    requestLog.add({ atMs, method: 'GET', route: null, path: '/', query: {}, account: null }),
  );
  rows[9]?.answered(200);
  rows[8]?.faulted('f1');
  rows[8]?.faulted('f1');
  expect(requestLog.list().map(({ atMs, status, faults }) => [atMs, status, faults])).toEqual([
    [7, null, []],
    [8, null, ['f1']],
    [9, 200, []],
  ]);
});
