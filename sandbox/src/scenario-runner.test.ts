import { decodeFullReport } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { parseFault } from './faults/parse.ts';
import { sampleStart, startSampleRunner } from './scenario-runner.fixture.ts';

const secondsOf = (lines: readonly string[]): readonly number[] =>
  lines.map((line) => JSON.parse(line).observationsTimestamp - sampleStart);

test('scenario runner: the record of what happened, run as a scenario, gives the same bytes', async () => {
  const live = await startSampleRunner({ events: [{ at: '3s', type: 'jump', streams: 'ETH/USD', percent: 10 }] });
  await live.advance(5);
  await live.runner.set([
    { type: 'crash', streams: 'ETH/USD', percent: 30, over: '5s' },
    { type: 'rotate' },
    { type: 'outage', for: '3s', recovery: 'backfill', at: '20s' },
  ]);
  await live.runner.set([{ type: 'fault', fault: { kind: 'status', status: 503 } }]);
  await live.advance(10);
  await live.runner.set([{ type: 'clear' }]);
  await live.advance(15);
  const record = JSON.parse(JSON.stringify(live.runner.record()));
  expect(record).toEqual({
    seed: 'test',
    at: '2026-03-13T14:30:00Z',
    speed: 1,
    past: '0s',
    streams: [{ pair: 'ETH/USD', kind: 'CexPrice' }],
    events: [
      { at: '3s', type: 'jump', streams: 'ETH/USD', percent: 10 },
      { at: '6s', type: 'crash', streams: 'ETH/USD', percent: 30, over: '5s' },
      { at: '6s', type: 'rotate' },
      { at: '6s', type: 'fault', fault: { kind: 'status', status: 503 } },
      { at: '16s', type: 'clear' },
      { at: '20s', type: 'outage', for: '3s', recovery: 'backfill' },
    ],
  });
  const again = await startSampleRunner(record);
  await again.advance(30);
  await Promise.all([live.runner.stop(), again.runner.stop()]);
  expect(again.lines).toEqual(live.lines);
  expect(live.acts).toMatchObject([{ kind: 'rotate', second: sampleStart + 6 }]);
  expect(again.acts).toEqual(live.acts);
  expect(secondsOf(live.lines).slice(17, 25)).toEqual([18, 19, 20, 21, 22, 23, 24, 25]);
});

test('scenario runner: what is set at once is in force from the next second on, faults also while time is paused', async () => {
  const { runner, clock, advance, lines } = await startSampleRunner({ events: [] });
  await advance(2);
  const before = lines.length;
  expect(await runner.set([{ type: 'level', streams: ['ETH/USD'], price: 1 }])).toMatchObject([
    { type: 'level', time: '2026-03-13T14:30:03Z' },
  ]);
  await runner.set([{ type: 'fault', fault: { kind: 'reset', id: 'mine' } }]);
  expect(runner.state()).toMatchObject({ paused: true, faults: [{ id: 'mine', state: 'active' }] });
  expect(lines.length).toBe(before);
  await runner.set([{ type: 'speed', speed: 100 }, { type: 'resume' }]);
  expect(runner.state()).toMatchObject({ paused: false, speed: 100 });
  await clock.waitUntil((sampleStart + 40) * 1_000);
  await runner.set([{ type: 'pause' }]);
  expect(runner.state().paused).toBe(true);
  expect(await runner.removeFault('mine')).toBe(true);
  await runner.stop();
});

test('scenario runner: events of a scenario happen at their second, and a fault that cannot be set then is a problem, no failure', async () => {
  const { runner, advance, acts } = await startSampleRunner({
    name: 'Three things',
    events: [
      { at: '2s', type: 'fault', fault: { kind: 'reset', id: 'one' } },
      { at: '3s', type: 'fault', fault: { kind: 'reset', id: 'one' } },
      { at: '5s', type: 'decommission', streams: 'ETH/USD', in: '3s' },
      { at: '2026-03-13T15:00:00Z', type: 'speed', speed: 2 },
    ],
  });
  expect(runner.state().scenario).toMatchObject({
    name: 'Three things',
    events: 4,
    done: 0,
    next: { type: 'fault' },
  });
  await advance(10);
  const { scenario, faults, problems } = runner.state();
  expect(scenario).toMatchObject({ done: 3, next: { type: 'speed', time: '2026-03-13T15:00:00Z' } });
  expect(faults.map(({ id }) => id)).toEqual(['one']);
  expect(problems[0]).toContain('2026-03-13T14:30:03Z: id is "one", expected one that no other fault has.');
  expect(acts.map(({ kind, second }) => [kind, second - sampleStart])).toEqual([
    ['announce', 5],
    ['decommission', 8],
  ]);
  await runner.stop();
});

test('scenario runner: a pause of the scenario ends a step there, and a speed does not', async () => {
  const { runner, advance } = await startSampleRunner({
    events: [
      { at: '5s', type: 'speed', speed: 3 },
      { at: '20s', type: 'pause' },
    ],
  });
  await advance(60);
  expect(runner.state()).toMatchObject({ speed: 3, paused: true });
  expect(runner.state().timeMs).toBeLessThan((sampleStart + 59) * 1_000);
  await runner.stop();
});

test('scenario runner: an event that cannot be changes nothing, and the error names its field', async () => {
  const { runner, advance } = await startSampleRunner({ events: [] });
  await advance(5);
  const rejected = async (events: Parameters<typeof runner.set>[0]) =>
    runner.set(events).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
  expect(await rejected([{ type: 'jump', streams: ['ETH/USD', 'DOGE/USD'], percent: 1 }])).toBe(
    'streams[1]: No stream is named "DOGE/USD". Streams: ETH/USD-Streams-CexPrice.',
  );
  expect(await rejected([{ type: 'rotate' }, { type: 'rotate', at: '2s' }])).toBe(
    '[1].at: is 2s, expected 2026-03-13T14:30:06Z or later.',
  );
  expect(await rejected([{ type: 'rotate', at: '2020-01-01T00:00:00Z' }])).toContain('which is before the start');
  expect(runner.state().set).toEqual([]);
  await runner.set([{ type: 'fault', fault: { kind: 'reset', id: 'one' } }]);
  expect(await rejected([{ type: 'fault', fault: { kind: 'reset', id: 'one' } }])).toContain('fault.id: id is "one"');
  await runner.stop();
});

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: Error) => error.message,
  );
const faultOf = (line: string) => ({ type: 'fault', fault: parseFault(line) }) as const;

test('scenario runner: a list with a fault that cannot be set changes nothing, also not the signers', async () => {
  const { runner, advance, lines, acts } = await startSampleRunner({ events: [] });
  await advance(2);
  await runner.set([faultOf('reset,id=one')]);
  const { set, faults } = runner.state();
  const rejected = [
    await messageOf(runner.set([faultOf('status=503,stream=NOPE/USD'), { type: 'rotate' }])),
    await messageOf(runner.set([{ type: 'rotate' }, faultOf('reset,id=two'), faultOf('reset,id=one')])),
    await messageOf(runner.set([{ type: 'clear' }, faultOf('reset,id=two'), faultOf('reset,id=two')])),
    await messageOf(runner.set([{ ...faultOf('reset,stream=NOPE/USD'), at: '50s' }])),
  ];
  const paths = ['[0].fault.stream: ', '[2].fault.id: ', '[2].fault.id: ', 'fault.stream: '];
  expect(rejected.map((message, i) => message.slice(0, paths[i]?.length))).toEqual(paths);
  expect(runner.state()).toMatchObject({ set, faults });
  await runner.set([{ type: 'clear' }, faultOf('reset,id=one')]);
  expect(runner.state().faults.map(({ id }) => id)).toEqual(['one']);
  await advance(3);
  await runner.stop();
  const digests = lines.map((line) => decodeFullReport(JSON.parse(line).fullReport).context.configDigest);
  expect([digests.length, new Set(digests).size, acts]).toEqual([5, 1, []]);
});

test('scenario runner: a fault that is removed is in the record as removed', async () => {
  const live = await startSampleRunner({ events: [{ at: '9s', type: 'remove', id: 'never' }] });
  await live.runner.set([faultOf('reset,id=mine'), faultOf('status=503'), { type: 'remove', id: 'f1', at: '15s' }]);
  await live.advance(5);
  expect([await live.runner.removeFault('mine'), await live.runner.removeFault('mine')]).toEqual([true, false]);
  expect(await messageOf(live.runner.set([{ type: 'rotate' }, { type: 'remove', id: 'mine' }]))).toBe(
    '[1].id: id is "mine", expected the ID of a fault that is set.',
  );
  expect(live.runner.state().faults.map(({ id }) => id)).toEqual(['f1']);
  await live.advance(15);
  expect(live.runner.state()).toMatchObject({
    faults: [],
    problems: ['2026-03-13T14:30:09Z: id is "never", expected the ID of a fault that is set.'],
  });
  const record = JSON.parse(JSON.stringify(live.runner.record()));
  expect(record.events).toEqual([
    { at: '1s', type: 'fault', fault: { kind: 'reset', id: 'mine' } },
    { at: '1s', type: 'fault', fault: { kind: 'status', status: 503 } },
    { at: '6s', type: 'remove', id: 'mine' },
    { at: '9s', type: 'remove', id: 'never' },
    { at: '15s', type: 'remove', id: 'f1' },
  ]);
  const again = await startSampleRunner(record);
  await again.advance(5);
  expect(again.runner.state().faults.map(({ id }) => id)).toEqual(['mine', 'f1']);
  await again.advance(5);
  expect(again.runner.state().faults.map(({ id }) => id)).toEqual(['f1']);
  await Promise.all([live.runner.stop(), again.runner.stop()]);
});

test('scenario runner: an ID may be used again at the start once its fault is removed', async () => {
  const events = ['fault', 'remove', 'fault'].map((type) =>
    type === 'fault' ? { at: '0s', type, fault: 'reset,id=one' } : { at: '0s', type, id: 'one' },
  );
  const { runner } = await startSampleRunner({ events });
  expect(runner.state()).toMatchObject({ faults: [{ id: 'one' }], problems: [] });
  await runner.stop();
});

test('scenario runner: a step is alone in its list, since what is after it would be late', async () => {
  const { runner, clock, acts } = await startSampleRunner({ events: [] });
  expect(await messageOf(runner.set([{ type: 'rotate' }, { type: 'step', by: '10s' }]))).toBe(
    '[1].type: is "step", which cannot be in a list with other events. Send it alone.',
  );
  expect([clock.nowMs(), runner.state().set, acts]).toEqual([sampleStart * 1_000, [], []]);
  await runner.stop();
});

test('scenario runner: what is at the start is done when it has started, and a later fault begins at its second', async () => {
  const { runner, clock, advance, acts } = await startSampleRunner({
    events: [
      { at: '0s', type: 'fault', fault: 'reset,id=first,for=10s' },
      { at: '0s', type: 'rotate' },
      { at: '7s', type: 'fault', fault: 'reset,id=later,from=1s,for=2s' },
    ],
  });
  const start = sampleStart * 1_000;
  expect(clock.nowMs()).toBe(start);
  expect(runner.state().faults).toMatchObject([{ id: 'first', fromMs: start, toMs: start + 10_000 }]);
  expect(acts).toEqual([{ kind: 'rotate', second: sampleStart }]);
  await advance(30);
  expect(runner.state().faults[1]).toMatchObject({ id: 'later', fromMs: start + 8_000, toMs: start + 10_000 });
  expect(acts.length).toBe(1);
  await runner.stop();
});

test('scenario runner: a scenario with a moment, stream or ID that cannot be does not start, and the error names the field', async () => {
  const started = (...events: readonly unknown[]) => messageOf(startSampleRunner({ events }));
  const fault = (line: string, at = '0s') => ({ at, type: 'fault', fault: line });
  expect(await started({ at: '999999999d', type: 'rotate' })).toContain('events[0].at: is 999999999d, expected a time');
  expect(await started(fault('reset,from=999999999d'))).toContain('events[0].fault.from: from is "999999999d"');
  expect(await started(fault('status=500,stream=NOPE/USD', '9s'))).toContain(
    'events[0].fault.stream: stream: No stream is named "NOPE',
  );
  expect(await started(fault('reset,id=a'), fault('status=500,id=a'))).toContain(
    'events[1].fault.id: is "a", expected',
  );
  const { runner } = await startSampleRunner({ events: [] });
  expect(await messageOf(runner.set([{ type: 'rotate', at: '999999999d' }]))).toContain('at: is 999999999d, expected');
  expect(await messageOf(runner.set([faultOf('reset,from=999999999d')]))).toContain('fault.from: from is');
  expect(runner.state().set).toEqual([]);
  await runner.stop();
});

test('scenario runner: with as many events as a scenario may have, no more are set, and time is still controlled', async () => {
  const later = { at: '1h', type: 'speed', speed: 1 };
  const { runner, clock, advance } = await startSampleRunner({ events: Array(9_998).fill(later) });
  await runner.set([{ type: 'speed', speed: 2 }, { type: 'rotate' }]);
  const full = 'This sandbox has 10000 events, as many as a scenario may have. Start another one.';
  expect(await messageOf(runner.set([{ type: 'rotate' }]))).toBe(full);
  expect(await messageOf(runner.set([{ type: 'pause' }, { type: 'pause', at: '1h' }]))).toBe(full);
  await advance(3);
  expect(clock.nowMs()).toBe((sampleStart + 3) * 1_000);
  await runner.set([{ type: 'speed', speed: 0.5 }, { type: 'resume' }]);
  expect(runner.state()).toMatchObject({ speed: 0.5, paused: false });
  await runner.set([{ type: 'pause' }]);
  expect(runner.state().paused).toBe(true);
  expect(runner.state().set.map(({ type }) => type)).toEqual(['speed', 'rotate', 'speed', 'pause']);
  expect(runner.record().events).toHaveLength(10_000);
  await runner.stop();
});

test('scenario runner: time control leaves room in the record for what changes reports', async () => {
  const later = { at: '1h', type: 'speed', speed: 1 };
  const { runner } = await startSampleRunner({ events: Array(9_998).fill(later) });
  for (let i = 0; i < 3; i += 1) await runner.set([{ type: 'resume' }, { type: 'pause' }]);
  await runner.set([{ type: 'speed', speed: 2 }, { type: 'rotate' }, { type: 'speed', speed: 3 }, { type: 'rotate' }]);
  expect(runner.state().speed).toBe(3);
  expect(runner.record().events).toHaveLength(10_000);
  await runner.stop();
});
