// Two real programs: one server copies the other through its public API, and a terminal watches it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toReportJson } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../server/src/store/open.ts';
import { createWorld, runCommand, type Server, startCommand, startServer, type World } from './support/real-program.ts';
import { createSignedReports } from './support/signed-reports.ts';

const token = 'a-token-of-the-test';
const folder = mkdtempSync(join(tmpdir(), 'sealpost-follow-'));
let world: World;
let server: Server;
let access: NodeJS.ProcessEnv;

beforeAll(async () => {
  world = await createWorld();
  server = await startServer(world, [], { SEALPOST_INGEST_TOKEN: token });
  access = { SEALPOST_URL: server.url, SEALPOST_USER_ID: world.userId, SEALPOST_SECRET: world.secret };
});

afterAll(async () => {
  await server.stop();
  world.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Gives the server a report of the present second or later, in at its private listener. */
const sendReport = async (second: number): Promise<void> => {
  const { report } = await createSignedReports();
  const stored = report(world.feedId, second, second);
  const line = toReportJson(world.feedId, stored, `0x${Buffer.from(stored.fullReport).toString('hex')}`);
  const response = await fetch(`${server.opsUrl}/ingest`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: `${JSON.stringify(line)}\n`,
  });
  expect(JSON.parse((await response.text()).trim())).toMatchObject({ result: 'stored' });
};

const secondsOf = async (store: string): Promise<readonly number[]> => {
  const opened = await openStore(store, 'read');
  const { reports } = await opened.reports.page(world.feedId, 0, 1_000);
  await opened.close();
  return reports.map(({ observationsMs }) => observationsMs / 1_000);
};

const nowSecond = () => Math.floor(Date.now() / 1_000);

test('follow: the past and the present are copied, verified, and it goes on where it stopped', async () => {
  const copy = join(folder, 'copy');
  const args = ['follow', server.url, '--store', copy, '--json'];
  const first = startCommand([...args, '--adopt', '--from', '-1h'], folder, access);
  await first.printed(/"line":10,"result":"stored"/);
  await sendReport(nowSecond());
  await first.printed(/"line":11,"result":"stored"/);
  first.child.kill('SIGINT');
  expect((await first.finished).code).toBe(130);

  await sendReport(nowSecond() + 1); // while nobody follows
  const second = startCommand(args, folder, access);
  await second.printed(/"line":1,"result":"stored"/);
  second.child.kill('SIGINT');
  expect((await second.finished).code).toBe(130);

  expect(await secondsOf(copy)).toEqual(await secondsOf(world.store));
  expect((await runCommand(['store', 'verify', '--signatures', '--store', copy], folder)).code).toBe(0);
});

test('follow: without --adopt nothing is trusted that was not registered', async () => {
  const { code, stderr } = await runCommand(['follow', server.url, '--store', join(folder, 'strict')], folder, access);
  expect(code).toBe(1);
  expect(stderr).toContain('No stream is registered');
});

test('follow: a wrong secret is told with what to do, and the secret is not', async () => {
  const env = { ...access, SEALPOST_SECRET: 'not-the-secret' };
  const { code, stderr } = await runCommand(['follow', server.url, '--store', join(folder, 'none')], folder, env);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error: unauthorized: .+/);
  expect(stderr).not.toContain('not-the-secret');
});

test('watch: each report is a line of JSON in a pipe, as it comes', async () => {
  const watching = startCommand(['watch', world.feedId], folder, access);
  // Its first line may come only once it is connected: reports are sent until it has seen one.
  const seen = watching.printed(/^\{.*"price":"1(\.0+)?".*\}$/m);
  let done = false;
  void seen.then(() => {
    done = true;
  });
  for (let second = nowSecond() + 3; !done && second < nowSecond() + 30; second += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, (second - 3) * 1_000 - Date.now())));
    await sendReport(second);
  }
  const line = JSON.parse((await seen)[0]);
  expect(line).toMatchObject({ feedID: world.feedId, bid: expect.any(String), ask: expect.any(String) });
  watching.child.kill('SIGINT');
  expect((await watching.finished).code).toBe(130);
});
