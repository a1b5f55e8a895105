import { createStoreMemory, openStore } from '../open.ts';
import { testStoreModel } from '../store-model.contract.ts';

const createEngine = async () => {
  const memory = createStoreMemory();
  return {
    writers: 'one' as const,
    open: (mode: 'read' | 'write') => openStore('memory:', mode, { memory }),
    crash: async () => {}, // what is kept is in this process, which does not end
    remove: async () => {},
  };
};

testStoreModel('memory', createEngine, 2);
