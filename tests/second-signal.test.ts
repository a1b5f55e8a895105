// A second signal while the real program drains: it exits at once with 130, the log says so, and what it acknowledged is there at the next start.
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createWorld,
  fetchSigned,
  isAlive,
  type Server,
  startCommand,
  startServer,
  type World,
} from './support/real-program.ts';
import { createSignedReports } from './support/signed-reports.ts';

const { report } = await createSignedReports();
const ingestToken = 'token-of-the-tests';
let world: World;
let second = Math.floor(Date.now() / 1_000);

beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.remove());

const serve = (args: readonly string[]): Promise<Server> =>
  startServer(world, ['--drain-ms', '300000', '--ahead-max-ms', '600000', ...args], {
    SEALPOST_INGEST_TOKEN: ingestToken,
  });

/** Sends the next report; resolves with its second when it is acknowledged. */
const ingestNext = async ({ opsUrl }: Server): Promise<number> => {
  second += 1;
  const { fullReport } = report(world.feedId, second, second);
  const body = `${JSON.stringify({ fullReport: `0x${Buffer.from(fullReport).toString('hex')}` })}\n`;
  const headers = { Authorization: `Bearer ${ingestToken}` };
  const answer = await fetch(`${opsUrl}/ingest`, { method: 'POST', headers, body });
  expect(await answer.text()).toContain('"result":"stored"');
  return second;
};

const readLatest = async ({ url }: Server): Promise<unknown> => {
  const answer = await fetchSigned(url, `/api/v1/reports/latest?feedID=${world.feedId}`, world);
  return (await answer.json()).report.observationsTimestamp;
};

/** A request whose body never ends, which a drain waits for. Resolves when the server has begun to read it. */
const beginRequest = async ({ opsUrl }: Pick<Server, 'opsUrl'>): Promise<Socket> => {
  const socket = connect(Number(new URL(opsUrl).port), '127.0.0.1').on('error', () => {});
  const lines = ['POST /ingest/resume HTTP/1.1', 'Host: a', `Authorization: Bearer ${ingestToken}`];
  socket.write(`${[...lines, 'Content-Length: 100', 'Expect: 100-continue'].join('\r\n')}\r\n\r\n`);
  await new Promise((resolve) => socket.once('data', resolve)); // 100 Continue
  return socket.resume();
};

/** The process and all that it started. */
const family = (pid: number): readonly number[] => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => family(Number(child))))];
};

/** Whether a process has a handler for SIGHUP, the first signal. */
const catchesHangup = (pid: number): boolean =>
  /^SigCgt:\s+[0-9a-f]+[13579bdf]$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

// Longer than a signal counts as the same key press, from when the first one was handled.
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1_100));

test.skipIf(process.platform !== 'linux').each([
  ['SIGTERM', 'SIGTERM', []],
  ['SIGTERM', 'SIGINT', ['--workers', '2']],
] as const)('second signal: %s, then %s ends a node that drains with 130 (%j)', async (first, next, args) => {
  const server = await serve(args);
  const pids = family(Number(server.child.pid));
  expect(pids.length).toBeGreaterThan(args.length);
  const acknowledged = await ingestNext(server);
  const held = await beginRequest(server);
  server.child.kill(first);
  await server.printed(new RegExp(`"event":"draining","reason":"${first}"`));
  await pause();
  expect(server.child.exitCode).toBe(null); // it waits for the request
  server.child.kill(next);
  const { code, stdout } = await server.finished;
  held.destroy();
  expect(code).toBe(130);
  expect(stdout).toMatch(/"level":"error",.*"event":"stopped","clean":false\}\n$/);
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);

  const again = await serve([]);
  expect(await readLatest(again)).toBe(acknowledged);
  const { code: clean, stdout: log } = await again.stop();
  expect(clean).toBe(0);
  expect(log).toMatch(/"event":"stopped","clean":true\}\n$/);
  expect(log.match(/"event":"stopped"/g)).toHaveLength(1);
});

test.skipIf(process.platform !== 'linux')(
  'second signal: SIGHUP ends a node neither at its start nor while it drains',
  async () => {
    const where = ['--store', world.store, '--key-file', world.keyFile, '--listen', '127.0.0.1:0'];
    const program = startCommand(['serve', ...where, '--ops-listen', '127.0.0.1:0'], world.folder, {
      SEALPOST_INGEST_TOKEN: ingestToken,
    });
    await expect.poll(() => family(Number(program.child.pid)).every(catchesHangup)).toBe(true);
    program.child.kill('SIGHUP');
    const [, opsUrl = ''] = await program.printed(/"private":"([^"]+)"/);
    const held = await beginRequest({ opsUrl });
    program.child.kill('SIGTERM');
    await program.printed(/"event":"draining"/);
    program.child.kill('SIGHUP');
    await pause();
    expect(program.child.signalCode).toBe(null);
    held.destroy();
    const { code, stdout } = await program.finished;
    expect(code).toBe(0);
    expect(stdout).toMatch(/"event":"stopped","clean":true\}\n$/);
  },
);
