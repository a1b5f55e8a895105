import { expect, test } from 'vitest';
import { readJson } from '../../../../tests/support/source-tree.ts';
import { createChainUpdate, requireEvm } from './local-chain.ts';

const silence =
  'warning: the local chain has not answered for 0.02 s. The sandbox continues; the signer sets of the chain are updated when it answers.\n';

test('local chain: a chain that does not answer is warned about once, and delays only the first update', async () => {
  const warnings: string[] = [];
  const waiting: (() => void)[] = [];
  const update = createChainUpdate({
    update: () => new Promise((resolve) => waiting.push(resolve)),
    warn: (text) => warnings.push(text),
    maxMs: 20,
  });
  await update();
  expect(warnings).toEqual([silence]);
  for (let i = 0; i < 10; i += 1) await update();
  expect([waiting.length, warnings]).toEqual([11, [silence]]);
  for (const resolve of waiting.splice(0)) resolve();
  await new Promise(setImmediate); // the chain answers again
  await update();
  expect(warnings).toEqual([silence, silence]);
});

test('local chain: an update that fails is warned about, and the sandbox continues', async () => {
  const warnings: string[] = [];
  const update = createChainUpdate({
    update: () => Promise.reject(new Error('A transaction reverted.')),
    warn: (text) => warnings.push(text),
  });
  await update();
  expect(warnings).toEqual([
    'warning: the signer sets of the local chain are not up to date: A transaction reverted. Start the sandbox again to repair it.\n',
  ]);
});

test('local chain: if EDR is missing, the error says what to install, in the version that the package asks for', async () => {
  const failed = requireEvm(() => import('@nomicfoundation/edr-that-is-not-there' as string));
  const { peerDependencies } = readJson('sandbox/package.json') as { peerDependencies: Record<string, string> };
  const install = `npm install @nomicfoundation/edr@${peerDependencies['@nomicfoundation/edr']}`;
  await expect(failed).rejects.toThrow(`which is not installed. Install it next to sealpost: ${install} (with -g`);
  await expect(requireEvm(() => Promise.reject(new Error('Unsupported OS: aix')))).rejects.toThrow(
    'which cannot be loaded (Unsupported OS: aix). Install it next to',
  );
});
