import { verify } from '@sealpost/client';
import { expect, test } from 'vitest';
import { at, createStart } from './started.fixture.ts';

const start = createStart();

const sizes = { oracles: 16, faulty: 5 };

test.each([
  ['the usual size', {}, 4, 2],
  ['a main network', sizes, 16, 6],
  ['one oracle', { oracles: 1 }, 1, 1],
])('signers: reports of %s verify, pushed and simulated', async (_, size, oracles, signatures) => {
  const sandbox = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD'], ...size });
  expect(Object.values(sandbox.signers).map(({ addresses }) => addresses.length)).toEqual([oracles]);
  await sandbox.advance('2s');
  const pushed = await sandbox.push('ETH/USD', '4200.55');
  const { report: simulated } = await sandbox.client.latest('BTC/USD');
  for (const report of [pushed, simulated]) {
    const verdict = verify(report, sandbox.signers);
    expect(verdict.ok && verdict.signers).toHaveLength(signatures);
  }
  expect(sandbox.signers).toEqual((await sandbox.client.signers()).signers);
});

test('signers: those of a rotation are added, as large as before', async () => {
  const scenario = { at, streams: ['ETH/USD'], events: [{ at: '2s', type: 'rotate' }] };
  const sandbox = await start({ scenario, ...sizes });
  const [before] = Object.keys(sandbox.signers);
  await sandbox.advance('5s');
  expect(Object.values(sandbox.signers).map(({ f, addresses }) => [f, addresses.length])).toEqual([
    [5, 16],
    [5, 16],
  ]);
  const verdict = verify((await sandbox.client.latest('ETH/USD')).report, sandbox.signers);
  expect(verdict).toMatchObject({ ok: true, configDigest: expect.not.stringContaining(String(before)) });
});
