import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countOf } from '../../../../tests/bars/tally.ts';
import { openStore } from '../open.ts';
import { testStoreModel } from '../store-model.contract.ts';

const createEngine = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-model-'));
  return {
    writers: 'one' as const,
    open: (mode: 'read' | 'write') => openStore(folder, mode),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
};

testStoreModel('lmdb', createEngine, Math.ceil(countOf('37') * 0.6));
