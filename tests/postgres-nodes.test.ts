// Several real nodes on one PostgreSQL: what one takes in, all serve and push; what is changed anywhere holds everywhere.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { type Body, toReportJson } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { openStore } from '../server/src/store/open.ts';
import { isFull, tally } from './support/full-count.ts';
import { openSocket } from './support/live-clients.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from './support/real-program.ts';
import { act, testStream } from './support/running-ingest.ts';
import { type RunningPostgres, startPostgres } from './support/running-postgres.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const token = 'a-token-for-two-nodes';
const { report } = await createSignedReports();
let postgres: RunningPostgres;
let world: World;
let nodes: readonly [Server, Server];

beforeAll(async () => {
  postgres = await startPostgres({ durable: true });
  world = await createWorld(postgres.url('nodes', 'read_ms=3000&write_ms=5000'));
  const env = { SEALPOST_INGEST_TOKEN: token };
  nodes = [await startServer(world, [], env), await startServer(world, ['--workers', '2'], env)];
});
afterAll(async () => {
  for (const node of nodes ?? []) await node.stop();
  world?.remove();
  await postgres?.stop();
});

const send = async ({ opsUrl }: Server, observed: number) => {
  const one = report(world.feedId, observed, observed);
  const line = toReportJson(world.feedId, one, `0x${Buffer.from(one.fullReport).toString('hex')}`);
  const response = await fetch(`${opsUrl}/ingest`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: `${JSON.stringify(line)}\n`,
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
};
const latestOf = async ({ url }: Server): Promise<number> => {
  const response = await fetchSigned(url, `/api/v1/reports/latest?feedID=${world.feedId}`, world);
  return ((await response.json()) as { report: { observationsTimestamp: number } }).report.observationsTimestamp;
};
/** How many processes of a node logged an event. */
const saidBy = ({ output }: Server, event: string): number =>
  new Set([...output().matchAll(new RegExp(`"pid":(\\d+),"event":"${event}"`, 'g'))].map(([, pid]) => pid)).size;
const until = async (isSo: () => Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
};

test('postgres nodes: latest of several streams is the newest of each in the order asked for, at every node', async () => {
  const [silent, other] = [secondStream(2), secondStream(3)];
  const [store, now] = [await openStore(world.store, 'write'), Math.floor(Date.now() / 1_000)];
  try {
    await store.admin.update('stream', [silent, other], () => [silent, other].map((id) => testStream(id)), act);
    await store.reports.append([report(other, now - 2, now - 2), report(other, now - 1, now - 1)]);
  } finally {
    await store.close();
  }
  const ask = async (node: Server, ids: readonly string[]) => {
    const target = `/api/v1/reports/latest?feedIDs=${ids.join(',')}&missing=true`;
    const response = await fetchSigned(node.url, target, world);
    const body = (await response.json()) as Partial<Body<'PartialReports'>>; // compared below
    const reports = body.reports?.map(({ feedID, observationsTimestamp }) => [feedID, observationsTimestamp]);
    return { status: response.status, reports, missing: body.missing };
  };
  for (const node of nodes) {
    // The other node learns of the streams by itself.
    await until(async () => (await ask(node, [silent, other])).status === 206);
    const newest = await latestOf(node);
    expect(await ask(node, [other, world.feedId, other])).toEqual({
      status: 200,
      reports: [
        [other, now - 1],
        [world.feedId, newest],
      ],
      missing: undefined,
    });
    expect(await ask(node, [world.feedId, silent, other])).toEqual({
      status: 206,
      reports: [
        [world.feedId, newest],
        [other, now - 1],
      ],
      missing: [{ feedID: silent, reason: 'no_reports' }],
    });
    expect(await ask(node, [world.feedId, secondStream(99)])).toMatchObject({ status: 401, reports: undefined });
  }
});

test('postgres nodes: a report that comes in at one is pushed and answered by the other, both ways', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const sockets = [];
  for (const { url } of nodes) sockets.push(await openSocket(url, `/api/v1/ws?feedIDs=${world.feedId}`, world));
  for (const [i, node] of nodes.entries()) {
    const observed = now + i;
    const pushed = sockets.map(({ webSocket }) => once(webSocket, 'message'));
    expect((await send(node, observed)).text).toContain('"result":"stored"');
    await Promise.all(pushed);
    for (const { reports } of sockets) expect(reports().at(-1)?.observationsTimestamp).toBe(observed);
    for (const other of nodes) await until(async () => (await latestOf(other)) === observed);
  }
  expect((await send(nodes[0], now + 1)).text).toContain('"result":"duplicate"');
  for (const { webSocket, closed } of sockets) {
    webSocket.close();
    await closed;
  }
});

test('postgres nodes: candles and coverage of several streams have what those of one have, at every node', async () => {
  const [other, silent] = [secondStream(4), secondStream(5)];
  const from = Math.floor(Date.now() / 1_000) - 3_000; // seconds that no other test reads
  const ids = [other, silent, world.feedId];
  const store = await openStore(world.store, 'write');
  try {
    await store.admin.update('stream', [silent, other], () => [silent, other].map((id) => testStream(id)), act);
    await store.reports.append([0, 1, 2, 7, 60, 61].map((i) => ({ ...report(other, from + i, from + i), price: 1n })));
  } finally {
    await store.close();
  }
  for (const node of nodes) {
    const ask = async (path: string, query: string) => {
      const target = `/api/v1/reports/${path}?${query}&from=${from}&to=${from + 100}`;
      const response = await fetchSigned(node.url, target, world);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }; // compared below
    };
    const several = `feedIDs=${ids.join(',')}`;
    await until(async () => (await ask('coverage/bulk', several)).status === 200); // it learns of the streams by itself
    const candles = await ask('candles/bulk', `${several}&resolution=1`);
    const coverage = await ask('coverage/bulk', several);
    const own = [];
    for (const feedID of ids) {
      const { body } = await ask('candles', `feedID=${feedID}&resolution=1`);
      const { coveredSeconds } = (await ask('coverage', `feedID=${feedID}`)).body;
      own.push({ candles: { feedID, ...body }, coverage: { feedID, coveredSeconds } });
    }
    expect(candles.body.streams).toEqual(own.map((one) => one.candles));
    expect(coverage.body.streams).toMatchObject(own.map((one) => one.coverage));
    expect(own[0]).toMatchObject({ candles: { candles: { length: 6 } }, coverage: { coveredSeconds: 6 } });
  }
});

test('postgres nodes: an account that is disabled by a command is refused by every node', async () => {
  const { store, userId } = world;
  const command = (act: string) => runCommand(['account', act, userId, '--store', store]);
  const asked = async ({ url }: Server) => (await fetchSigned(url, '/api/v1/feeds', world)).status;
  for (const node of nodes) expect(await asked(node)).toBe(200);
  expect(await command('disable')).toMatchObject({ code: 0 });
  for (const node of nodes) await until(async () => (await asked(node)) === 401);
  expect(await command('enable')).toMatchObject({ code: 0 });
  for (const node of nodes) await until(async () => (await asked(node)) === 200);
});

// Once more, because a busy machine may not ask for all that the limit allows.
test('postgres nodes: an account has its limit once, however many nodes it asks', { retry: 2 }, async () => {
  const { store, userId } = world;
  const [limit, forMs] = [20, isFull ? 8_000 : 4_000];
  const setLimit = (count: number) =>
    runCommand(['account', 'limit', userId, '--limit', `feeds=${count}`, '--store', store]);
  expect(await setLimit(limit)).toMatchObject({ code: 0 });
  const limitOf = async ({ url }: Server) =>
    Number((await fetchSigned(url, '/api/v1/feeds', world)).headers.get('RateLimit-Limit'));
  for (const node of nodes) await until(async () => (await limitOf(node)) === limit);
  await new Promise((resolve) => setTimeout(resolve, 3_000)); // a bucket refills with time, and every request would take a token
  const startedMs = performance.now();
  const counts = await Promise.all(
    nodes.map(async ({ url }) => {
      let allowed = 0;
      // At most 40 times a second at each node: twice what it may give.
      for (; performance.now() - startedMs < forMs; await new Promise((resolve) => setTimeout(resolve, 25)))
        if ((await fetchSigned(url, '/api/v1/feeds', world)).status === 200) allowed += 1;
      return allowed;
    }),
  );
  const rightful = limit * (1 + (performance.now() - startedMs) / 1_000);
  const allowed = counts.reduce((sum, count) => sum + count);
  tally({ 'times the limit granted by two nodes on PostgreSQL': allowed / rightful });
  expect(allowed / rightful).toBeGreaterThan(0.9);
  expect(allowed / rightful).toBeLessThan(1.1);
  expect(await setLimit(1_000)).toMatchObject({ code: 0 });
});

test('postgres nodes: a damaged report is missing, and shows in the log, in /readyz and in the metric of every node that came across it', async () => {
  const database = postgres.connect();
  const now = Math.floor(Date.now() / 1_000);
  const at = (second: number) => `/api/v1/reports?feedID=${world.feedId}&timestamp=${second}`;
  // Seconds long past: other tests ask for newer ones.
  const [bad, good] = [now - 600, now - 599];
  const store = await openStore(world.store, 'write');
  try {
    await store.reports.append([report(world.feedId, bad, bad), report(world.feedId, good, good)]);
    await store.reports.append([report(world.feedId, now, now)]);
    // A node that has the newest one has followed those before it, and comes across them no more by itself.
    for (const node of nodes) await until(async () => (await latestOf(node)) >= now);
    await database`UPDATE nodes.reports SET record = set_byte(record, 20, 255 - get_byte(record, 20))
      WHERE observations = ${bad * 1_000}`;
    for (const node of nodes) {
      const degraded = async () => (await fetch(`${node.opsUrl}/readyz`)).json() as Promise<{ degraded?: string[] }>;
      const metric = async () =>
        /^sealpost_store_damaged_records (\d+)$/m.exec(await (await fetch(`${node.opsUrl}/metrics`)).text())?.[1];
      expect([(await degraded()).degraded, await metric()]).toEqual([undefined, '0']);
      const missing = await fetchSigned(node.url, at(bad), world);
      expect([missing.status, await missing.text()]).toEqual([404, expect.stringContaining('is damaged in the store')]);
      expect((await fetchSigned(node.url, at(good), world)).status).toBe(200);
      await until(async () => (await degraded()).degraded !== undefined);
      expect(await degraded()).toMatchObject({
        degraded: [expect.stringContaining(`store: reports ${world.feedId}/${bad * 1_000}: `)],
      });
      await until(async () => (await metric()) === '1'); // workers send their metrics a few times a second
      await node.printed(/"event":"damaged","table":"reports"/);
    }
    expect(await store.reports.append([report(world.feedId, bad, bad)])).toEqual(['stored']);
    for (const node of nodes) expect((await fetchSigned(node.url, at(bad), world)).status).toBe(200);
  } finally {
    await store.close();
    await database.end();
  }
});

test('postgres nodes: while the database is away history is 503 with Retry-After, latest and liveness go on, and so does all after', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const history = `/api/v1/reports?feedID=${world.feedId}&timestamp=${now - 5}`;
  const statusOf = async (url: string) => (await fetch(url)).status;
  await postgres.kill();
  for (const node of nodes) {
    const away = await fetchSigned(node.url, history, world);
    expect([away.status, Number(away.headers.get('Retry-After')) > 0]).toEqual([503, true]);
    expect(await latestOf(node)).toBeGreaterThan(0);
    expect([await statusOf(`${node.opsUrl}/livez`), await statusOf(`${node.opsUrl}/readyz`)]).toEqual([200, 503]);
    const refused = await send(node, now + 10);
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '1']);
  }
  await postgres.start();
  for (const node of nodes) {
    await until(async () => (await fetchSigned(node.url, history, world)).status !== 503);
    await until(async () => (await send(node, now + 2)).status === 200);
    await until(async () => (await latestOf(node)) === now + 2);
  }
});

test('postgres nodes: a process that learns of nothing new for 10 s is in the log, in /readyz and in the metrics, until it does', {
  timeout: 120_000,
}, async () => {
  const look = async ({ opsUrl }: Server) => {
    const { reasons, degraded = [] } = (await (await fetch(`${opsUrl}/readyz`)).json()) as {
      readonly reasons: readonly string[];
      readonly degraded?: readonly string[];
    };
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
    const value = /^sealpost_store_following_stopped (\d)$/m.exec(metrics)?.[1];
    return { said: [...reasons, ...degraded].filter((one) => /new reports/.test(one)), value };
  };
  const session = await postgres.connect().reserve();
  await session`BEGIN`;
  await session.unsafe('LOCK TABLE nodes.appended IN ACCESS EXCLUSIVE MODE');
  try {
    for (const [i, node] of nodes.entries()) await until(async () => saidBy(node, 'followingStopped') === [1, 3][i]);
    const why = 'new reports and changes are not read from the database: The database';
    const [single, several] = [await look(nodes[0]), await look(nodes[1])];
    expect(single).toEqual({ said: [expect.stringMatching(`^store: ${why}`)], value: '1' });
    expect(several.value).toBe('1');
    expect(several.said).toEqual([
      'workers: no worker learns of new reports; see the log',
      ...['', 'worker \\d+: ', 'worker \\d+: '].map((name) => expect.stringMatching(`^${name}${why}`)),
    ]);
  } finally {
    await session`ROLLBACK`;
    session.release();
  }
  for (const [i, node] of nodes.entries()) {
    await until(async () => saidBy(node, 'followingResumed') === [1, 3][i]);
    await until(async () => (await look(node)).said.length === 0);
    expect((await look(node)).value).toBe('0');
  }
});

test('postgres nodes: a database that is restored to an older state is in the log, in /readyz and in the metrics of every node', {
  timeout: 120_000,
}, async () => {
  const now = Math.floor(Date.now() / 1_000);
  const inFolder = (command: string) => execFileSync('sh', ['-c', command], { cwd: postgres.folder });
  const look = async ({ opsUrl }: Server) => {
    const { ready, degraded } = (await (await fetch(`${opsUrl}/readyz`)).json()) as {
      readonly ready: boolean;
      readonly degraded?: readonly string[];
    };
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
    return { ready, degraded, value: /^sealpost_store_commits_lost (\d)$/m.exec(metrics)?.[1] };
  };
  const stored = async (observed: number): Promise<void> => {
    await until(async () => /"(stored|duplicate)"/.test((await send(nodes[0], observed)).text));
    for (const node of nodes) await until(async () => (await latestOf(node)) === observed);
  };
  await stored(now + 1);
  await postgres.kill();
  inFolder('cp -a data older');
  await postgres.start();
  await stored(now + 2);
  for (const node of nodes) expect((await look(node)).value).toBe('0');
  await postgres.kill();
  inFolder('rm -r data && mv older data');
  await postgres.start();
  const why =
    /^(?:worker \d+: )?store: the database lost reports that it had acknowledged, .* Send the reports again, .* restart this node\.$/;
  for (const node of nodes) {
    // Processes that had not read it yet know nothing of a loss.
    await until(async () => saidBy(node, 'commitsLost') > 0);
    const degraded = expect.arrayContaining([expect.stringMatching(why)]);
    expect(await look(node)).toMatchObject({ ready: true, degraded, value: '1' });
  }
  await until(async () => (await send(nodes[1], now + 2)).text.includes('"result":"stored"'));
});
