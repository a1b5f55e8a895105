// The contract of store.ts as tests, run on every engine.
import { afterEach, beforeEach, test } from 'vitest';
import type { Store } from './store.ts';
import { testAppending, testCandles } from './store-candles.contract.ts';
import { testPages, testReports } from './store-reports.contract.ts';
import type { EngineUnderTest } from './store-samples.fixture.ts';
import { testAdministration, testFollowing, testRetention } from './store-upkeep.contract.ts';
import { testNodes, testUsage } from './store-usage.contract.ts';

export const testStoreContract = (name: string, createEngine: () => Promise<EngineUnderTest>): void => {
  let engine: EngineUnderTest;
  let store: Store;
  const contract = (sentence: string, check: () => Promise<void>) => test(`${name} store: ${sentence}`, check);

  beforeEach(async () => {
    engine = await createEngine();
    store = await engine.open('write');
  });
  afterEach(async () => {
    await store.close();
    await engine.remove();
  });
  const reopen = async () => {
    await store.close();
    store = await engine.open('write');
  };

  testReports(contract, () => store, reopen);
  testPages(contract, () => store);
  testCandles(contract, () => store, reopen);
  testAppending(contract, () => store, reopen);
  testFollowing(
    contract,
    () => store,
    () => engine,
    reopen,
  );
  testRetention(contract, () => store, reopen);
  testAdministration(
    contract,
    () => store,
    () => engine,
    reopen,
  );
  testUsage(
    contract,
    () => store,
    () => engine,
    reopen,
  );
  testNodes(
    contract,
    () => store,
    () => engine,
  );
};
