import { decodeFullReport, portableEngine, verifyReport } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createNetwork } from './network.ts';

const body = `0x${'ab'.repeat(288)}` as const;

// Keys, digest and signatures as ethers computes them.
test('the same seed gives the same keys and bytes, on every machine', async () => {
  const network = await createNetwork({ seed: 'demo' });
  expect(network.signerSet).toEqual({
    configDigest: '0x0009c17b1720ead8cc3c6fef6d85b36a11ead108e9237b4995c94a109d02d347',
    f: 1,
    addresses: [
      '0xa41cf31f91caf92a64b050065a29ba341c0c818f',
      '0xd00415d724a31c5a0b050bb6fe155d3416f1f406',
      '0xdb0866509b6e97572fa87bcb6b1ac52163126fa1',
      '0x8be9361668d3616c83365f1916c0599451e28db2',
    ],
  });
  expect(decodeFullReport(network.sign(body, 7)).signatures).toEqual([
    {
      r: '0x2d63116e6f9a269438e05e17fbb05ac4b504a649be270990e945b64139895d8c',
      s: '0x126e02503061138e034a86631e25c5db49a196d67407d821c7da17586fccda5c',
      v: 1,
    },
    {
      r: '0xdb93be5647133a67a9a5bbe36620cbbe3863f0a8cd2f781cb3f8417c3113104a',
      s: '0x40461f5f0cc5a3cd2c9fb5d394a4768ab188fc7fff1425235af1e6607c31b614',
      v: 0,
    },
  ]);
});

test('another seed or network type gives other keys and another config digest', async () => {
  const networks = await Promise.all([
    createNetwork({ seed: 'demo', networkType: 'testnet', n: 4, f: 1 }),
    createNetwork({ seed: 'demo', networkType: 'mainnet', n: 4, f: 1 }),
    createNetwork({ seed: 'other', networkType: 'testnet', n: 4, f: 1 }),
  ]);
  expect(new Set(networks.map(({ signerSet }) => signerSet.configDigest)).size).toBe(3);
  expect(new Set(networks.flatMap(({ signerSet }) => signerSet.addresses)).size).toBe(12);
});

test('a main network has 16 oracles of which 6 sign, a test network 4 of which 2 sign', async () => {
  for (const [networkType, n, signatures] of [
    ['mainnet', 16, 6],
    ['testnet', 4, 2],
  ] as const) {
    const network = await createNetwork({ seed: 'demo', networkType });
    expect(network.signerSet.addresses.length).toBe(n);
    expect(decodeFullReport(network.sign(body, 1)).signatures.length).toBe(signatures);
  }
});

test('both engines verify the signatures, and the signing oracles change from report to report', async () => {
  const { signerSet, engine, sign } = await createNetwork({ seed: 'demo' });
  const signerSets = new Map([[signerSet.configDigest, signerSet]]);
  const pairs = new Set<string>();
  for (let round = 1; round <= 60; round += 1) {
    const report = decodeFullReport(sign(body, round));
    const verification = verifyReport(report, signerSets, engine);
    if (!verification.ok) expect.fail(verification.reason);
    pairs.add([...verification.signers].sort().join());
  }
  expect(pairs.size).toBe(6); // every pair of four
  expect(verifyReport(decodeFullReport(sign(body, 1)), signerSets, portableEngine).ok).toBe(true);
});

test('the context has round, network and plugin version', async () => {
  const { context } = decodeFullReport((await createNetwork({ seed: 'demo' })).sign(body, 258));
  expect(context.configDigest.startsWith('0x0009')).toBe(true);
  expect(context.epochAndRound).toBe(`0x${'0'.repeat(61)}102`);
  expect(context.extraHash).toBe(`0x${'0'.repeat(48)}0000000300000001`);
});

test.each([
  [3, 1, 'n is 3, expected more than 3f = 3 and at most 31 oracles.'],
  [32, 5, 'n is 32, expected more than 3f = 15 and at most 31 oracles.'],
  [4, -1, 'f is -1, expected a whole number from 0 on.'],
])('a network of %i oracles with f = %i is rejected', async (n, f, message) => {
  await expect(createNetwork({ seed: 'demo', n, f })).rejects.toThrow(new RangeError(message));
});
