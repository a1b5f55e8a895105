import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../open.ts';
import { testStoreContract } from '../store.contract.ts';

testStoreContract('lmdb', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-store-'));
  return {
    writers: 'one',
    open: (mode) => openStore(`lmdb:${folder}`, mode),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
});
