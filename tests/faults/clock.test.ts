// Nodes on one database of which one has a clock that is an hour ahead, and one that is an hour behind: who signs with the right time is
// answered by the node that has it, and what is stored, its order and its age are the same for all.
import { toReportJson } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import { migratePostgres } from '../../server/src/store/postgres/schema.ts';
import { type EventClient, openEvents, openSocket } from '../support/live-clients.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from '../support/real-program.ts';
import { type RunningPostgres, startPostgres } from '../support/running-postgres.ts';
import { createSignedReports } from '../support/signed-reports.ts';

const token = 'a-token-for-three-nodes';
const [hour, day] = [3_600, 86_400];
const { report } = await createSignedReports();
/** The second after those that the world begins with. */
let now: number;
/** Seconds of reports: too old for every clock, and too old for the one that is ahead alone. */
let [tooOld, oldForOne] = [0, 0];

type Node = Server & { readonly offsetMs: number };
let postgres: RunningPostgres;
let world: World;
let [right, ahead, behind]: Node[] = [];
const nodes = (): readonly [Node, Node, Node] => [right as Node, ahead as Node, behind as Node]; // opened before all tests

/** Makes a program live at another time. */
const shiftClock = (offsetMs: number): NodeJS.ProcessEnv => {
  const shifted = `const Real = Date; const now = () => Real.now() + ${offsetMs};
    globalThis.Date = class extends Real { constructor(...given) { super(...(given.length === 0 ? [now()] : given)); } static now() { return now(); } };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shifted)}` };
};
const openNode = async (offsetSeconds: number): Promise<Node> => {
  const offsetMs = offsetSeconds * 1_000;
  const env = { SEALPOST_INGEST_TOKEN: token, ...(offsetMs !== 0 && shiftClock(offsetMs)) };
  return { ...(await startServer(world, ['--retention-days', '1'], env)), offsetMs };
};

const stored = async (seconds: number): Promise<boolean> => {
  const store = await openStore(world.store, 'read');
  const [found] = await store.reports.at([world.feedId], seconds);
  await store.close();
  return found !== undefined;
};

beforeAll(async () => {
  postgres = await startPostgres();
  const address = postgres.url('clocks');
  await migratePostgres(address, 60_000); // a table for each minute: what is old is dropped at once
  world = await createWorld(address);
  now = Math.floor(Date.now() / 1_000);
  [tooOld, oldForOne] = [now - day - 2 * hour, now - day + hour / 2];
  const store = await openStore(address, 'write');
  await store.reports.append([tooOld, oldForOne].map((at) => report(world.feedId, at, at)));
  await store.close();
  ahead = await openNode(hour);
  // By the first round of the node that is ahead, while it is alone.
  while (await stored(tooOld));
  right = await openNode(0);
  behind = await openNode(-hour);
});
afterAll(async () => {
  for (const node of [right, ahead, behind]) await node?.stop();
  world?.remove();
  await postgres?.stop();
});

/** Asks as a client does that has the node's own time. */
const ask = async (node: Node, path: string): Promise<{ readonly status: number; readonly text: string }> => {
  const response = await fetchSigned(node.url, `/api/v1/reports${path}`, world, Date.now() + node.offsetMs);
  return { status: response.status, text: await response.text() };
};
const latest = (node: Node) => ask(node, `/latest?feedID=${world.feedId}`);
const send = async ({ opsUrl }: Node, seconds: number): Promise<unknown> => {
  const one = report(world.feedId, seconds, seconds);
  const line = toReportJson(world.feedId, one, `0x${Buffer.from(one.fullReport).toString('hex')}`);
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(`${opsUrl}/ingest`, { method: 'POST', headers, body: `${JSON.stringify(line)}\n` });
  return response.json();
};

test('clock: who signs with the right time is refused by name where the clock is off, and answered by the other node', async () => {
  const target = `/api/v1/reports/latest?feedID=${world.feedId}`;
  expect((await fetchSigned((right as Node).url, target, world)).status).toBe(200);
  for (const node of [ahead, behind] as Node[]) {
    const refused = await fetchSigned(node.url, target, world);
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([400, 'clock_skew']);
    const socket = openSocket(node.url, `/api/v1/ws?feedIDs=${world.feedId}`, world);
    await expect(socket).rejects.toMatchObject({ status: 400, body: expect.stringContaining('clock_skew') });
    const { serverTimeMs } = (await (await fetch(`${node.url}/time`)).json()) as { serverTimeMs: number };
    expect(Math.round((serverTimeMs - Date.now()) / 60_000)).toBe(node.offsetMs / 60_000);
  }
});

test('clock: what comes in at the right node is the same at all of them, by latest, at a time and in pages', async () => {
  const observed = now + 1;
  expect(await send(right as Node, observed)).toMatchObject({ result: 'stored' });
  const paths = [
    `/latest?feedID=${world.feedId}`,
    `?feedID=${world.feedId}&timestamp=${observed}`,
    `/page?feedID=${world.feedId}&startTimestamp=${observed - 5}&limit=3`,
  ];
  for (const path of paths) {
    const { text } = await ask(right as Node, path);
    expect(text).toContain('"fullReport"');
    for (const node of nodes()) await expect.poll(() => ask(node, path)).toEqual({ status: 200, text });
  }
});

test('clock: a clock that is behind refuses the present as ahead of it, one that is ahead stores it like any other', async () => {
  const observed = now + 2;
  expect(await send(behind as Node, observed)).toMatchObject({ result: 'refused', code: 'ahead_of_clock' });
  expect(await stored(observed)).toBe(false);
  expect(await send(ahead as Node, observed)).toMatchObject({ result: 'stored' });
  expect(await send(right as Node, observed)).toMatchObject({ result: 'duplicate' });
  // Known already, it needs no clock.
  expect(await send(behind as Node, observed)).toMatchObject({ result: 'duplicate' });
  const { text } = await latest(right as Node);
  expect(JSON.parse(text).report.observationsTimestamp).toBe(observed);
  for (const node of nodes()) await expect.poll(() => latest(node)).toEqual({ status: 200, text });
});

test('clock: live readers of all nodes get the same reports in the same order, under the same ids', async () => {
  const target = `/api/v1/reports/stream?feedIDs=${world.feedId}`;
  const readers: EventClient[] = [];
  for (const { url, offsetMs } of nodes()) readers.push(await openEvents(url, target, world, Date.now() + offsetMs));
  const seconds = [3, 4, 5, 6].map((ahead) => now + ahead);
  for (const [i, observed] of seconds.entries())
    expect(await send(i % 2 === 0 ? (right as Node) : (ahead as Node), observed)).toMatchObject({ result: 'stored' });
  for (const reader of readers) {
    await expect.poll(() => reader.reports().length).toBe(seconds.length);
    expect(reader.reports().map(({ observationsTimestamp }) => observationsTimestamp)).toEqual(seconds);
    expect(reader.events).toEqual(readers[0]?.events);
    reader.close();
  }
});

test('clock: the node that is ahead says that reports are late, and no balancer has to send anyone there', async () => {
  // The tests above have sent the seconds up to this one.
  await expect.poll(() => Math.floor(Date.now() / 1_000)).toBeGreaterThan(now + 6);
  expect(await send(right as Node, Math.floor(Date.now() / 1_000))).toMatchObject({ result: 'stored' });
  const ready = await Promise.all(nodes().map(async ({ opsUrl }) => (await fetch(`${opsUrl}/readyz`)).json()));
  expect(ready[0]).toMatchObject({ ready: true });
  expect(ready[1]).toMatchObject({
    ready: false,
    reasons: [expect.stringMatching(/^ingest: the newest report is 3[56]/)],
  });
});

test('clock: what is inside retention stays, though it is too old for the node that is ahead', async () => {
  const path = `?feedID=${world.feedId}&timestamp=${oldForOne}`;
  expect((await ask(right as Node, path)).status).toBe(200);
  expect((await ask(behind as Node, path)).status).toBe(200);
  expect(await ask(ahead as Node, path)).toMatchObject({ status: 400 });
  // The control: by its own clock alone it would be gone for all.
  const store = await openStore(world.store, 'write');
  await store.reports.trim({ beforeMs: Date.now() + hour * 1_000 - day * 1_000, bytesMax: Number.POSITIVE_INFINITY });
  await store.close();
  expect((await ask(right as Node, path)).status).toBe(404);
});
