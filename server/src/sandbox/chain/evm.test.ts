import { expect, test } from 'vitest';
import { readJson } from '../../../../tests/support/source-tree.ts';
import { EvmMissingError, loadEdr } from './evm.ts';

test('evm: if EDR is missing, the error says what to install, in the version that the package asks for', async () => {
  const load = () => import('@nomicfoundation/edr-that-is-not-there' as string);
  const failed = loadEdr(load);
  await expect(failed).rejects.toBeInstanceOf(EvmMissingError);
  const { peerDependencies } = readJson('server/package.json') as { peerDependencies: Record<string, string> };
  const install = `npm install @nomicfoundation/edr@${peerDependencies['@nomicfoundation/edr']}`;
  await expect(failed).rejects.toThrow(`which is not installed. Install it next to sealpost: ${install} (with -g`);
});

test('evm: if EDR cannot be loaded, the error says why', async () => {
  const load = () => Promise.reject(new Error('Unsupported OS: aix'));
  await expect(loadEdr(load)).rejects.toThrow('which cannot be loaded (Unsupported OS: aix). Install it next to');
});
