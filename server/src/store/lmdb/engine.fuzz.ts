import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { countOf } from '../../../../tests/support/full-count.ts';
import { openStore } from '../open.ts';
import { testStoreModel } from '../store-model.contract.ts';

const createFolder = () => mkdtempSync(join(tmpdir(), 'sealpost-model-'));

const createEngine = async () => {
  const folders = [createFolder()];
  const folder = () => folders.at(-1) ?? '';
  return {
    writers: 'one' as const,
    open: (mode: 'read' | 'write') => openStore(folder(), mode),
    /** What a killed process leaves is the files as they are. The locks of this one stay behind: it lives on. */
    crash: async () => {
      const found = folder();
      folders.push(createFolder());
      cpSync(found, folder(), { recursive: true, filter: (path) => !/^(lock.mdb|writer.lock)$/.test(basename(path)) });
    },
    remove: async () => {
      for (const one of folders) rmSync(one, { recursive: true, force: true });
    },
  };
};

testStoreModel('lmdb', createEngine, countOf(2, 150));
