// Reports whose fields no release knows, through the real programs: everything that delivers or verifies a report does so, and what needs fields says
// `unknown_schema` or leaves them out (D246).
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient, decode, verify } from '@sealpost/client';
import { verifyCalldata } from '@sealpost/client/onchain';
import { type ReportJson, toReportJson } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { openStore } from '../server/src/store/open.ts';
import { undecodedBody, undecodedLayouts, undecodedStream } from './support/exports/undecoded-bodies.ts';
import { openEvents, openSocket } from './support/live-clients.ts';
import { createWorld, type Server, startCommand, startServer, type World } from './support/real-program.ts';
import { act, testStream } from './support/running-ingest.ts';

const token = 'a-token-of-the-test';
const folder = mkdtempSync(join(tmpdir(), 'sealpost-undecoded-'));
const network = await createNetwork({ seed: 'tests' });
const feedIds = undecodedLayouts.map((layout) => undecodedStream(layout));
const from = Math.floor(Date.now() / 1_000) - 100;

/** Reports of every stream, a second apart. */
const reports: readonly ReportJson[] = undecodedLayouts.flatMap((layout) =>
  [0, 1, 2].map((i) => {
    const body = undecodedBody(layout, { validFrom: from + i, observations: from + i });
    const window = { validFromMs: (from + i) * 1_000, observationsMs: (from + i) * 1_000 };
    return toReportJson(undecodedStream(layout), window, network.sign(body, i));
  }),
);
const ofStream = (feedId: string): readonly ReportJson[] => reports.filter(({ feedID }) => feedID === feedId);
const lines = (some: readonly ReportJson[]): string => some.map((report) => `${JSON.stringify(report)}\n`).join('');

let world: World;
let server: Server;
let access: NodeJS.ProcessEnv;
let client: Client;

beforeAll(async () => {
  world = await createWorld();
  const store = await openStore(world.store, 'write');
  await store.admin.update(
    'stream',
    feedIds,
    () => feedIds.map((feedId, i) => testStream(feedId, { name: `F${i}/USD` })),
    act,
  );
  await store.close();
  server = await startServer(world, [], { SEALPOST_INGEST_TOKEN: token });
  const { userId, secret } = world;
  access = { SEALPOST_URL: server.url, SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
  client = createClient({ baseUrl: server.url, userId, secret });
});

afterAll(async () => {
  await server.stop();
  world.remove();
  rmSync(folder, { recursive: true, force: true });
});

test('reports of unknown fields: ingest accepts them, and every way to read or follow delivers what was signed', async () => {
  const ids = feedIds.join(',');
  const socket = await openSocket(server.url, `/api/v1/ws?feedIDs=${ids}`, world);
  const events = await openEvents(server.url, `/api/v1/reports/stream?feedIDs=${ids}`, world);
  const answer = await fetch(`${server.opsUrl}/ingest`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: lines(reports),
  });
  const results = (await answer.text()).trim().split('\n');
  expect(results.map((line) => JSON.parse(line).result)).toEqual(reports.map(() => 'stored'));

  const sorted = (some: readonly unknown[]) => some.map((one) => JSON.stringify(one)).sort();
  for (const live of [socket, events]) {
    await expect.poll(() => live.reports().length, { timeout: 20_000 }).toBe(reports.length);
    expect(sorted(live.reports())).toEqual(sorted(reports));
  }
  socket.webSocket.close();
  events.close();

  for (const feedId of feedIds) {
    const own = ofStream(feedId);
    expect((await client.latest(feedId)).report).toEqual(own.at(-1));
    expect((await client.at(feedId, from)).report).toEqual(own[0]);
    expect((await client.page(feedId, from, 10)).reports).toEqual(own);
    expect((await client.candles(feedId, { from: from - 60, to: from + 60, resolution: 60 })).candles).toEqual([]);
    expect((await client.candles(feedId, { from, to: from + 2, resolution: 1 })).candles).toEqual([]);
    expect((await client.coverage(feedId, { from, to: from + 2 })).coverage).toMatchObject({ gaps: [] });
  }
  expect((await client.bulk(feedIds, from + 1)).reports).toHaveLength(feedIds.length);
  const streamed: ReportJson[] = [];
  for await (const report of client.stream(feedIds, { from })) if (streamed.push(report) === reports.length) break;
  expect(sorted(streamed)).toEqual(sorted(reports));
});

test('reports of unknown fields: a mirror copies them, and the copy verifies', async () => {
  const copy = join(folder, 'copy');
  const args = ['follow', server.url, ...feedIds, '--store', copy, '--adopt', '--from', '-1h', '--json'];
  const mirror = startCommand(args, folder, access);
  await mirror.printed(new RegExp(`"line":${reports.length},"result":"stored"`));
  mirror.child.kill('SIGINT');
  await mirror.finished;
  expect((await runCommand(['store', 'verify', '--signatures', '--store', copy], { cwd: folder })).code).toBe(0);
  const exported = await runCommand(['export', '--all', '--store', copy], { cwd: folder });
  expect([exported.code, exported.stdout.trim().split('\n').sort()]).toEqual([
    0,
    lines(reports).trim().split('\n').sort(),
  ]);
});

test('reports of unknown fields: verified by command line and client, decoded by neither', async () => {
  const [file, signers] = [join(folder, 'reports.ndjson'), join(folder, 'signers.json')];
  writeFileSync(file, lines(reports));
  writeFileSync(signers, JSON.stringify((await client.signers()).signers));
  expect((await runCommand(['report', 'verify', file, '--signers', signers], { cwd: folder })).code).toBe(0);
  const { signers: sets } = await client.signers();
  for (const report of reports) {
    expect(verify(report, sets)).toMatchObject({ ok: true, decoded: undefined });
    expect(() => decode(report)).toThrow(expect.objectContaining({ code: 'unknown_schema' }));
    expect(verifyCalldata(report)).toContain(report.fullReport.slice(2 + 8 * 64, 2 + 14 * 64));
  }
  const shown = await runCommand(['report', 'latest', String(feedIds[0])], { cwd: folder, env: access });
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('(unknown_schema)')]);
});

test('reports of unknown fields: an export of fields names them and keeps the others', async () => {
  for (const feedId of feedIds) {
    const out = join(folder, `out-${feedId}`);
    const args = ['export', feedId, '--url', server.url, '--format', 'csv', '--out', out];
    const named = await runCommand(args, { cwd: folder, env: access });
    expect([feedId, named.code === 0, named.stderr]).toEqual([
      feedId,
      false,
      expect.stringContaining('unknown_schema'),
    ]);
  }
  const all = join(folder, 'all');
  const args = ['export', '--all', '--url', server.url, '--format', 'csv', '--out', all];
  const { code, stderr } = await runCommand(args, { cwd: folder, env: access });
  expect([code, stderr]).toEqual([1, expect.stringContaining('unknown_schema')]);
  const file = readdirSync(all).find((name) => name.endsWith('.csv')) ?? '';
  expect(readFileSync(join(all, file), 'utf8').split('\n').length).toBeGreaterThan(9); // the stream that is decoded
});
