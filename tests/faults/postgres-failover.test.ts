// A primary that is killed and a standby that takes its place: what was acknowledged is there, and latest never goes back.
import { afterEach, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import type { Store, StoredReport } from '../../server/src/store/store.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { failoverPlans, runFailover } from './failover.ts';
import { openPostgresPair, type PostgresPair } from './postgres-pair.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const openPair = async (isSynchronous: boolean): Promise<PostgresPair> => {
  const pair = await openPostgresPair(isSynchronous);
  closing.push(pair.close);
  return pair;
};

const openAt = async (url: string): Promise<Store> => {
  const store = await openStore(`${url}${url.includes('?') ? '&' : '?'}read_ms=1500&write_ms=2000`, 'write');
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

const failOver = async ({ kill, promote }: PostgresPair): Promise<void> => {
  await kill();
  await promote();
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

const count = countOf(120, 400);

test('failover: with a synchronous standby nothing acknowledged is lost, and latest never goes back', async () => {
  const pair = await openPair(true);
  const [writer, reader] = [await openAt(pair.url), await openAt(pair.url)];
  const { acknowledged, sendUntil } = createSender(writer);
  const seen: number[] = [];
  reader.reports.onAppended(() => seen.push(reader.reports.latest(stream)?.observationsMs ?? 0));
  await sendUntil(count / 2);
  const rest = sendUntil(count);
  await failOver(pair);
  await rest;
  expect(await lostOf(writer, acknowledged)).toBe(0);
  expect((await writer.reports.stats()).reports).toBe(count);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  while (reader.reports.latest(stream)?.observationsMs !== (t0 + count - 1) * 1_000)
    await new Promise<void>((resolve) => void reader.reports.onAppended(resolve));
});

test('failover: of two hosts the primary is written and read, and the standby only once it is the primary', async () => {
  const pair = await openPair(false);
  const writer = await openAt(pair.hostsUrl);
  const { acknowledged, sendUntil } = createSender(writer);
  await sendUntil(50);
  await pair.kill();
  await expect(writer.reports.at([stream], t0)).rejects.toMatchObject({ code: 'store_unavailable' });
  await pair.promote();
  await sendUntil(70);
  expect(await lostOf(writer, acknowledged.slice(50))).toBe(0);
});

const plans = failoverPlans(countOf(1, 6));

test('failover: two nodes under load lose nothing, answer nothing wrong, and need no restart', async () => {
  for (const plan of plans) {
    const figures = await runFailover(plan);
    const { acknowledged, lost, wrong, latestWentBack, nodesEnded, longestWithoutMs, awayMs } = figures;
    tally({
      acknowledged,
      lost,
      'wrong answers': wrong,
      'times `latest` went back': latestWentBack,
      'nodes that ended': nodesEnded,
      'ms until the standby was promoted': awayMs,
      ...Object.fromEntries(
        Object.entries(longestWithoutMs).map(([what, ms]) => [`ms without ${what}`, Math.round(ms)]),
      ),
    });
    expect(figures, JSON.stringify(plan)).toMatchObject({ lost: 0, latestWentBack: 0, wrong: 0, nodesEnded: 0 });
    if (plans.length === 1) expect(figures).toMatchObject({ refused: 0, acknowledged: figures.sent });
  }
}, 7_200_000);

test('failover: the control, a standby that nobody waits for, loses what was acknowledged', async () => {
  const pair = await openPair(false);
  const writer = await openAt(pair.url);
  const { acknowledged, sendUntil } = createSender(writer);
  await sendUntil(50);
  await pair.cutOff();
  await sendUntil(70);
  await failOver(pair);
  const after = await openAt(pair.url);
  const lost = await lostOf(after, acknowledged);
  tallyControl({ lost });
  expect(lost).toBeGreaterThan(0);
});
