import { afterAll } from 'vitest';
import { countOf } from '../../../../tests/support/full-count.ts';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { openStore } from '../open.ts';
import { testStoreModel } from '../store-model.contract.ts';
import { migratePostgres } from './schema.ts';

const server = await startPostgres();
const database = server.connect();
afterAll(() => server.stop());

let schemas = 0;

// Partitions of five minutes: commands span an hour, and cross their borders.
const createEngine = async () => {
  // It may run for hours beside everything else, at the lowest priority: no time limit ends a statement.
  const url = server.url(`model_${++schemas}`, 'read_ms=600000&write_ms=600000');
  await migratePostgres(url, 300_000);
  return {
    writers: 'many' as const,
    open: (mode: 'read' | 'write') => openStore(url, mode),
    crash: async () => {
      await database`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sealpost'`;
    },
    remove: async () => {},
  };
};

testStoreModel('postgres', createEngine, countOf(1, 100));
