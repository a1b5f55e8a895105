import { decodeFullReport } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { sampleStart, startSampleDirector } from './director.fixture.ts';
import { parseFault } from './faults/parse.ts';

const secondsOf = (lines: readonly string[]): readonly number[] =>
  lines.map((line) => JSON.parse(line).observationsTimestamp - sampleStart);

test('director: the record of what happened, run as a scenario, gives the same bytes', async () => {
  const live = await startSampleDirector({ events: [{ at: '3s', type: 'jump', streams: 'ETH/USD', percent: 10 }] });
  await live.advance(5);
  await live.director.set([
    { type: 'crash', streams: 'ETH/USD', percent: 30, over: '5s' },
    { type: 'rotate' },
    { type: 'outage', for: '3s', recovery: 'backfill', at: '20s' },
  ]);
  await live.director.set([{ type: 'fault', fault: { kind: 'status', status: 503 } }]);
  await live.advance(10);
  await live.director.set([{ type: 'clear' }]);
  await live.advance(15);
  const record = JSON.parse(JSON.stringify(live.director.record()));
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
  const again = await startSampleDirector(record);
  await again.advance(30);
  await Promise.all([live.director.stop(), again.director.stop()]);
  expect(again.lines).toEqual(live.lines);
  expect(live.acts).toMatchObject([{ kind: 'rotate', second: sampleStart + 6 }]);
  expect(again.acts).toEqual(live.acts);
  expect(secondsOf(live.lines).slice(17, 25)).toEqual([18, 19, 20, 21, 22, 23, 24, 25]);
});

test('director: what is set at once is in force from the next second on, faults also while time is paused', async () => {
  const { director, clock, advance, lines } = await startSampleDirector({ events: [] });
  await advance(2);
  const before = lines.length;
  expect(await director.set([{ type: 'level', streams: ['ETH/USD'], price: 1 }])).toMatchObject([
    { type: 'level', time: '2026-03-13T14:30:03Z' },
  ]);
  await director.set([{ type: 'fault', fault: { kind: 'reset', id: 'mine' } }]);
  expect(director.state()).toMatchObject({ paused: true, faults: [{ id: 'mine', state: 'active' }] });
  expect(lines.length).toBe(before);
  await director.set([{ type: 'speed', speed: 100 }, { type: 'resume' }]);
  expect(director.state()).toMatchObject({ paused: false, speed: 100 });
  await clock.waitUntil((sampleStart + 40) * 1_000);
  await director.set([{ type: 'pause' }]);
  expect(director.state().paused).toBe(true);
  expect(await director.removeFault('mine')).toBe(true);
  await director.stop();
});

test('director: events of a scenario happen at their second, and a fault that cannot be set then is a problem, no failure', async () => {
  const { director, advance, acts } = await startSampleDirector({
    name: 'Three things',
    events: [
      { at: '2s', type: 'fault', fault: { kind: 'reset', id: 'one' } },
      { at: '3s', type: 'fault', fault: { kind: 'reset', id: 'one' } },
      { at: '5s', type: 'decommission', streams: 'ETH/USD', in: '3s' },
      { at: '2026-03-13T15:00:00Z', type: 'speed', speed: 2 },
    ],
  });
  expect(director.state().scenario).toMatchObject({
    name: 'Three things',
    events: 4,
    done: 0,
    next: { type: 'fault' },
  });
  await advance(10);
  const { scenario, faults, problems } = director.state();
  expect(scenario).toMatchObject({ done: 3, next: { type: 'speed', time: '2026-03-13T15:00:00Z' } });
  expect(faults.map(({ id }) => id)).toEqual(['one']);
  expect(problems[0]).toContain('2026-03-13T14:30:03Z: id is "one", expected one that no other fault has.');
  expect(acts.map(({ kind, second }) => [kind, second - sampleStart])).toEqual([
    ['announce', 5],
    ['decommission', 8],
  ]);
  await director.stop();
});

test('director: a pause of the scenario ends a step there, and a speed does not', async () => {
  const { director, advance } = await startSampleDirector({
    events: [
      { at: '5s', type: 'speed', speed: 3 },
      { at: '20s', type: 'pause' },
    ],
  });
  await advance(60);
  expect(director.state()).toMatchObject({ speed: 3, paused: true });
  expect(director.state().timeMs).toBeLessThan((sampleStart + 59) * 1_000);
  await director.stop();
});

test('director: an event that cannot be changes nothing, and the error names its field', async () => {
  const { director, advance } = await startSampleDirector({ events: [] });
  await advance(5);
  const rejected = async (events: Parameters<typeof director.set>[0]) =>
    director.set(events).then(
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
  expect(director.state().set).toEqual([]);
  await director.set([{ type: 'fault', fault: { kind: 'reset', id: 'one' } }]);
  expect(await rejected([{ type: 'fault', fault: { kind: 'reset', id: 'one' } }])).toContain('fault.id: id is "one"');
  await director.stop();
});

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: Error) => error.message,
  );
const faultOf = (line: string) => ({ type: 'fault', fault: parseFault(line) }) as const;

test('director: a list with a fault that cannot be set changes nothing, also not the signers', async () => {
  const { director, advance, lines, acts } = await startSampleDirector({ events: [] });
  await advance(2);
  await director.set([faultOf('reset,id=one')]);
  const { set, faults } = director.state();
  const rejected = [
    await messageOf(director.set([faultOf('status=503,stream=NOPE/USD'), { type: 'rotate' }])),
    await messageOf(director.set([{ type: 'rotate' }, faultOf('reset,id=two'), faultOf('reset,id=one')])),
    await messageOf(director.set([{ type: 'clear' }, faultOf('reset,id=two'), faultOf('reset,id=two')])),
    await messageOf(director.set([{ ...faultOf('reset,stream=NOPE/USD'), at: '50s' }])),
  ];
  const paths = ['[0].fault.stream: ', '[2].fault.id: ', '[2].fault.id: ', 'fault.stream: '];
  expect(rejected.map((message, i) => message.slice(0, paths[i]?.length))).toEqual(paths);
  expect(director.state()).toMatchObject({ set, faults });
  await director.set([{ type: 'clear' }, faultOf('reset,id=one')]);
  expect(director.state().faults.map(({ id }) => id)).toEqual(['one']);
  await advance(3);
  await director.stop();
  const digests = lines.map((line) => decodeFullReport(JSON.parse(line).fullReport).context.configDigest);
  expect([digests.length, new Set(digests).size, acts]).toEqual([5, 1, []]);
});

test('director: a fault that is removed is in the record as removed', async () => {
  const live = await startSampleDirector({ events: [{ at: '9s', type: 'remove', id: 'never' }] });
  await live.director.set([faultOf('reset,id=mine'), faultOf('status=503'), { type: 'remove', id: 'f1', at: '15s' }]);
  await live.advance(5);
  expect([await live.director.removeFault('mine'), await live.director.removeFault('mine')]).toEqual([true, false]);
  expect(await messageOf(live.director.set([{ type: 'rotate' }, { type: 'remove', id: 'mine' }]))).toBe(
    '[1].id: id is "mine", expected the ID of a fault that is set.',
  );
  expect(live.director.state().faults.map(({ id }) => id)).toEqual(['f1']);
  await live.advance(15);
  expect(live.director.state()).toMatchObject({
    faults: [],
    problems: ['2026-03-13T14:30:09Z: id is "never", expected the ID of a fault that is set.'],
  });
  const record = JSON.parse(JSON.stringify(live.director.record()));
  expect(record.events).toEqual([
    { at: '1s', type: 'fault', fault: { kind: 'reset', id: 'mine' } },
    { at: '1s', type: 'fault', fault: { kind: 'status', status: 503 } },
    { at: '6s', type: 'remove', id: 'mine' },
    { at: '9s', type: 'remove', id: 'never' },
    { at: '15s', type: 'remove', id: 'f1' },
  ]);
  const again = await startSampleDirector(record);
  await again.advance(5);
  expect(again.director.state().faults.map(({ id }) => id)).toEqual(['mine', 'f1']);
  await again.advance(5);
  expect(again.director.state().faults.map(({ id }) => id)).toEqual(['f1']);
  await Promise.all([live.director.stop(), again.director.stop()]);
});

test('director: an ID may be used again at the start once its fault is removed', async () => {
  const events = ['fault', 'remove', 'fault'].map((type) =>
    type === 'fault' ? { at: '0s', type, fault: 'reset,id=one' } : { at: '0s', type, id: 'one' },
  );
  const { director } = await startSampleDirector({ events });
  expect(director.state()).toMatchObject({ faults: [{ id: 'one' }], problems: [] });
  await director.stop();
});

test('director: a step is alone in its list, since what is after it would be late', async () => {
  const { director, clock, acts } = await startSampleDirector({ events: [] });
  expect(await messageOf(director.set([{ type: 'rotate' }, { type: 'step', by: '10s' }]))).toBe(
    '[1].type: is "step", which cannot be in a list with other events. Send it alone.',
  );
  expect([clock.nowMs(), director.state().set, acts]).toEqual([sampleStart * 1_000, [], []]);
  await director.stop();
});

test('director: what is at the start is done when it has started, and a later fault begins at its second', async () => {
  const { director, clock, advance, acts } = await startSampleDirector({
    events: [
      { at: '0s', type: 'fault', fault: 'reset,id=first,for=10s' },
      { at: '0s', type: 'rotate' },
      { at: '7s', type: 'fault', fault: 'reset,id=later,from=1s,for=2s' },
    ],
  });
  const start = sampleStart * 1_000;
  expect(clock.nowMs()).toBe(start);
  expect(director.state().faults).toMatchObject([{ id: 'first', fromMs: start, toMs: start + 10_000 }]);
  expect(acts).toEqual([{ kind: 'rotate', second: sampleStart }]);
  await advance(30);
  expect(director.state().faults[1]).toMatchObject({ id: 'later', fromMs: start + 8_000, toMs: start + 10_000 });
  expect(acts.length).toBe(1);
  await director.stop();
});

test('director: a scenario with a moment, stream or ID that cannot be does not start, and the error names the field', async () => {
  const started = (...events: readonly unknown[]) => messageOf(startSampleDirector({ events }));
  const fault = (line: string, at = '0s') => ({ at, type: 'fault', fault: line });
  expect(await started({ at: '999999999d', type: 'rotate' })).toContain('events[0].at: is 999999999d, expected a time');
  expect(await started(fault('reset,from=999999999d'))).toContain('events[0].fault.from: from is "999999999d"');
  expect(await started(fault('status=500,stream=NOPE/USD', '9s'))).toContain(
    'events[0].fault.stream: stream: No stream is named "NOPE',
  );
  expect(await started(fault('reset,id=a'), fault('status=500,id=a'))).toContain(
    'events[1].fault.id: is "a", expected',
  );
  const { director } = await startSampleDirector({ events: [] });
  expect(await messageOf(director.set([{ type: 'rotate', at: '999999999d' }]))).toContain(
    'at: is 999999999d, expected',
  );
  expect(await messageOf(director.set([faultOf('reset,from=999999999d')]))).toContain('fault.from: from is');
  expect(director.state().set).toEqual([]);
  await director.stop();
});

test('director: with as many events as a scenario may have, no more are set, and time is still controlled', async () => {
  const later = { at: '1h', type: 'speed', speed: 1 };
  const { director, clock, advance } = await startSampleDirector({ events: Array(9_998).fill(later) });
  await director.set([{ type: 'speed', speed: 2 }, { type: 'rotate' }]);
  const full = 'This sandbox has 10000 events, as many as a scenario may have. Start another one.';
  expect(await messageOf(director.set([{ type: 'rotate' }]))).toBe(full);
  expect(await messageOf(director.set([{ type: 'pause' }, { type: 'pause', at: '1h' }]))).toBe(full);
  await advance(3);
  expect(clock.nowMs()).toBe((sampleStart + 3) * 1_000);
  await director.set([{ type: 'speed', speed: 0.5 }, { type: 'resume' }]);
  expect(director.state()).toMatchObject({ speed: 0.5, paused: false });
  await director.set([{ type: 'pause' }]);
  expect(director.state().paused).toBe(true);
  expect(director.state().set.map(({ type }) => type)).toEqual(['speed', 'rotate', 'speed', 'pause']);
  expect(director.record().events).toHaveLength(10_000);
  await director.stop();
});

test('director: time control leaves room in the record for what changes reports', async () => {
  const later = { at: '1h', type: 'speed', speed: 1 };
  const { director } = await startSampleDirector({ events: Array(9_998).fill(later) });
  for (let i = 0; i < 3; i += 1) await director.set([{ type: 'resume' }, { type: 'pause' }]);
  await director.set([
    { type: 'speed', speed: 2 },
    { type: 'rotate' },
    { type: 'speed', speed: 3 },
    { type: 'rotate' },
  ]);
  expect(director.state().speed).toBe(3);
  expect(director.record().events).toHaveLength(10_000);
  await director.stop();
});
