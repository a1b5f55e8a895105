import { expect, test } from 'vitest';
import { at, createStart, t0 } from './started.fixture.ts';

const start = createStart();

test('advance: a fault of a scenario whose ID is taken is a problem; time runs on, and no second lacks its report', async () => {
  const fault = { type: 'fault', fault: 'latency=1ms,id=mine' };
  const scenario = { at, streams: ['BTC/USD'], events: [10, 20].map((second) => ({ ...fault, at: `${second}s` })) };
  const sandbox = await start({ scenario });
  const { advance, now, client } = sandbox;
  await advance('15s');
  expect(sandbox.problems).toEqual([]);
  await advance('15s');
  expect(now()).toEqual(new Date((t0 + 30) * 1_000));
  expect((await client.page('BTC/USD', t0, 100)).reports.map((report) => report.observationsTimestamp - t0)).toEqual(
    Array.from({ length: 31 }, (_, second) => second),
  );
  expect(sandbox.problems).toEqual([
    '2026-03-13T14:30:20Z: id is "mine", expected one that no other fault has. Remove that one first.',
  ]);
});

const closed = { name: 'SandboxError', argument: 'sandbox', message: 'The sandbox is closed. Start another one.' };

test.each(['memory', 'folder'] as const)('advance: closed meanwhile, it is rejected as closed (%s)', async (store) => {
  const sandbox = await start({ simulated: ['BTC/USD'], at, store });
  const advanced = sandbox.advance('1h');
  const settled = expect(advanced).rejects.toMatchObject(closed);
  await expect.poll(() => sandbox.now().getTime(), { interval: 1 }).toBeGreaterThan(t0 * 1_000);
  await sandbox.close();
  await settled;
});

test('advance: closed at any point of a rotation, it is rejected as closed', { timeout: 30_000 }, async () => {
  const events = Array.from({ length: 50 }, (_, i) => ({ at: `${i + 1}s`, type: 'rotate' }));
  for (let turns = 0; turns < 20; turns += 1) {
    const sandbox = await start({ scenario: { at, streams: ['BTC/USD'], events } });
    const settled = expect(sandbox.advance('60s')).rejects.toMatchObject(closed);
    for (let i = 0; i < turns; i += 1) await new Promise((resolve) => setImmediate(resolve));
    await sandbox.close();
    await settled;
  }
});
