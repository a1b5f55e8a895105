// A bad network between a node's store and PostgreSQL: far away, slow, silent, cut in the middle of an answer, or refused. Everything that is asked gets an
// answer or an error with its code, and afterwards there is each report that was acknowledged, once.
import { afterAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import { migratePostgres } from '../../server/src/store/postgres/schema.ts';
import type { Store, StoredReport } from '../../server/src/store/store.ts';
import { countOf, tally } from '../support/full-count.ts';
import { openShapedProxy, type Shape } from '../support/proxies/shaped-proxy.ts';
import { startPostgres } from '../support/running-postgres.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
afterAll(server.stop);

const seconds = countOf(1, 30);
const stream = secondStream(1);
const t0 = 1_763_200_000;
const connections = 8;

const networks: Readonly<Record<string, Shape>> = {
  'half a second away': { delayMs: 250 },
  '1 KB per second': { bytesPerSecond: 1_024 },
  silent: { isSilent: true },
  'cut in the middle of an answer': { cutAfterBytes: 4_000 },
  refused: { isRefused: true },
};

/** What a store may say while its database is out of reach. */
const codes = ['store_unavailable', 'store_outcome_unknown', 'store_busy'];

type Tried = { readonly acknowledged: StoredReport[]; readonly unsure: StoredReport[]; wrong: number; failed: number };

const isNamed = (error: unknown): boolean => codes.includes(String(Object(error).code));

const read = async (store: Store, tried: Tried): Promise<void> => {
  try {
    const [found] = await store.reports.at([stream], t0);
    if (found === undefined || Buffer.compare(found.fullReport, report(stream, t0, t0).fullReport) !== 0)
      tried.wrong += 1;
  } catch (error) {
    tried.failed += 1;
    if (!isNamed(error)) tried.wrong += 1;
  }
};

const append = async (store: Store, tried: Tried, second: number): Promise<void> => {
  const one = report(stream, second, second);
  try {
    const [outcome] = await store.reports.append([one]);
    if (outcome === 'stored') tried.acknowledged.push(one);
    else tried.wrong += 1;
  } catch (error) {
    tried.failed += 1;
    if (isNamed(error)) tried.unsure.push(one);
    else tried.wrong += 1;
  }
};

/** Again until it is answered: a bound of this test, not of the store. */
const eventually = async <T>(act: () => Promise<T>): Promise<T> => {
  for (let tries = 0; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (tries === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
};

test.for(Object.entries(networks))(
  'network: %s, every call ends by name, and afterwards each acknowledged report is there once',
  { timeout: 600_000 },
  async ([name, shape]) => {
    const schema = `network_${Object.keys(networks).indexOf(name)}`;
    await migratePostgres(server.url(schema));
    const proxy = await openShapedProxy(server.port);
    const parameters = `connections=${connections}&read_ms=1500&write_ms=3000`;
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres?schema=${schema}&${parameters}`;
    const store = await openStore(url, 'write');
    const tried: Tried = { acknowledged: [], unsure: [], wrong: 0, failed: 0 };
    try {
      await append(store, tried, t0);
      proxy.shape(shape);
      const until = performance.now() + seconds * 1_000;
      for (let second = t0 + 1; performance.now() < until || second < t0 + 3; second++)
        await Promise.all([append(store, tried, second), ...Array.from({ length: 10 }, () => read(store, tried))]);
      proxy.shape({});
      const again = await eventually(async () =>
        tried.unsure.length === 0 ? [] : await store.reports.append(tried.unsure),
      );
      expect(again.filter((outcome) => outcome !== 'stored' && outcome !== 'duplicate')).toEqual([]);
      const all = [...tried.acknowledged, ...tried.unsure];
      const page = await eventually(() => store.reports.page(stream, t0, all.length + 10));
      const found = page.reports.map((one) => Buffer.from(one.fullReport).toString('hex'));
      const sent = all
        .toSorted((a, b) => a.observationsMs - b.observationsMs)
        .map((one) => Buffer.from(one.fullReport).toString('hex'));
      expect(found).toEqual(sent);
      expect(await store.reports.position()).toBe(all.length);
      tally({ acknowledged: tried.acknowledged.length, 'failed by name': tried.failed, 'wrong answers': tried.wrong });
      expect(tried.wrong).toBe(0);
    } finally {
      await store.close();
      await proxy.close();
    }
    const database = server.connect();
    const left = async (): Promise<number> =>
      (await database`SELECT 1 FROM pg_stat_activity WHERE application_name = 'sealpost'`).length;
    await expect.poll(left).toBe(0);
    await database.end();
  },
);
