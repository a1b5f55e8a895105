// The contract of the store on a real PostgreSQL, in a schema for each test. Partitions of five minutes instead of one day: retention then
// has as fine a grain as the contract's samples, and pages cross partitions.
import { afterAll } from 'vitest';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { openStore } from '../open.ts';
import { testStoreContract } from '../store.contract.ts';
import { migratePostgres } from './schema.ts';

const server = await startPostgres();
afterAll(() => server.stop());

let schemas = 0;

testStoreContract('postgres', async () => {
  const url = server.url(`contract_${++schemas}`);
  await migratePostgres(url, 300_000);
  return { writers: 'many', open: (mode) => openStore(url, mode), remove: async () => {} };
});
