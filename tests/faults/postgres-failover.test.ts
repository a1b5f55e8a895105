// A primary that is killed and a standby that takes its place: what was acknowledged is there, and latest never goes back.
import { afterEach, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import type { Store, StoredReport } from '../../server/src/store/store.ts';
import { type CuttingProxy, openCuttingProxy } from '../cutting-proxy.ts';
import { type RunningPostgres, startPostgres, startStandby } from '../running-postgres.ts';
import { createSignedReports, secondStream } from '../signed-reports.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

type Pair = { readonly primary: RunningPostgres; readonly standby: RunningPostgres; readonly proxy: CuttingProxy };

/** A primary, its standby, and the one address that leads to whichever is the primary. */
const openPair = async (isSynchronous: boolean): Promise<Pair> => {
  const primary = await startPostgres();
  closing.push(primary.stop);
  const standby = await startStandby(primary);
  closing.push(standby.stop);
  const proxy = await openCuttingProxy(primary.port);
  closing.push(proxy.close);
  const database = primary.connect();
  if (isSynchronous) {
    await database`ALTER SYSTEM SET synchronous_standby_names = 'standby'`;
    await database`SELECT pg_reload_conf()`;
  }
  const wanted = isSynchronous ? 'sync' : 'async';
  while ((await database`SELECT sync_state FROM pg_stat_replication`)[0]?.sync_state !== wanted);
  await database.end();
  return { primary, standby, proxy };
};

const openAt = async ({ url }: CuttingProxy): Promise<Store> => {
  const address = `postgres://postgres@127.0.0.1:${new URL(url).port}/postgres`;
  const store = await openStore(`${address}?read_ms=1500&write_ms=2000`, 'write');
  closing.push(store.close);
  return store;
};

/** Appends reports one second after the other, each again until it is acknowledged. */
const createSender = ({ reports }: Store) => {
  const acknowledged: StoredReport[] = [];
  const send = async (): Promise<void> => {
    const one = report(stream, t0 + acknowledged.length, t0 + acknowledged.length);
    for (let done = false; !done; ) {
      done = await reports.append([one]).then(
        ([outcome]) => outcome === 'stored' || outcome === 'duplicate',
        () => new Promise<false>((resolve) => setTimeout(resolve, 50, false)),
      );
    }
    acknowledged.push(one);
  };
  return {
    acknowledged,
    sendUntil: async (count: number) => {
      while (acknowledged.length < count) await send();
    },
  };
};

const promote = async ({ primary, standby, proxy }: Pair): Promise<void> => {
  await primary.kill();
  const database = standby.connect();
  await database`SELECT pg_promote(true)`;
  await database.end();
  proxy.upstreamPort = standby.port;
  proxy.drop('');
};

const lostOf = async ({ reports }: Store, acknowledged: readonly StoredReport[]): Promise<number> => {
  const stored = new Map<number, string>();
  for (let from = t0, more = true; more; ) {
    const page = await reports.page(stream, from, 1_000);
    for (const one of page.reports) stored.set(one.observationsMs, Buffer.from(one.fullReport).toString('hex'));
    more = page.more;
    from = (page.reports.at(-1)?.observationsMs ?? 0) / 1_000 + 1;
  }
  return acknowledged.filter(
    ({ observationsMs, fullReport }) => stored.get(observationsMs) !== Buffer.from(fullReport).toString('hex'),
  ).length;
};

test('failover: with a synchronous standby nothing acknowledged is lost, and latest never goes back', async () => {
  const pair = await openPair(true);
  const [writer, reader] = [await openAt(pair.proxy), await openAt(pair.proxy)];
  const { acknowledged, sendUntil } = createSender(writer);
  const seen: number[] = [];
  reader.reports.onAppended(() => seen.push(reader.reports.latest(stream)?.observationsMs ?? 0));
  await sendUntil(200);
  const rest = sendUntil(400);
  await promote(pair);
  await rest;
  expect(await lostOf(writer, acknowledged)).toBe(0);
  expect((await writer.reports.stats()).reports).toBe(400);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  while (reader.reports.latest(stream)?.observationsMs !== (t0 + 399) * 1_000)
    await new Promise<void>((resolve) => void reader.reports.onAppended(resolve));
}, 120_000);

test('failover: the control, a standby that nobody waits for, loses what was acknowledged', async () => {
  const pair = await openPair(false);
  const writer = await openAt(pair.proxy);
  const { acknowledged, sendUntil } = createSender(writer);
  await sendUntil(50);
  const [primary, standby] = [pair.primary.connect(), pair.standby.connect()];
  await standby`ALTER SYSTEM SET primary_conninfo = ''`;
  await standby`SELECT pg_reload_conf()`;
  while ((await primary`SELECT 1 FROM pg_stat_replication`).length > 0);
  await Promise.all([primary.end(), standby.end()]);
  await sendUntil(70);
  await promote(pair);
  const after = await openAt(pair.proxy);
  expect(await lostOf(after, acknowledged)).toBeGreaterThan(0);
}, 120_000);
