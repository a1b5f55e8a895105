// More connections than the process has descriptors for: it goes on, says so, and serves again as soon as there are some.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOf, tally } from '../support/full-count.ts';
import {
  createWorld,
  fetchSigned,
  processesOf,
  type Server,
  sealpost,
  startProgram,
  startServer,
  type World,
} from '../support/real-program.ts';

let world: World;
let server: Server;
beforeAll(async () => {
  world = await createWorld();
  server = await startServer(world);
});
afterAll(async () => {
  await server.stop();
  world.remove();
});

const connections = countOf(400, 1_000);
const descriptors = 256;

/** Open until the server or the test closes it. */
const dial = (port = server.port): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.on('error', () => resolve(socket));
  });

const ask = async (): Promise<number> => {
  const target = `/api/v1/reports/latest?feedID=${world.feedId}`;
  return (await fetchSigned(server.url, target, world).catch(() => ({ status: 0 }))).status;
};

test.skipIf(!existsSync('/usr/bin/prlimit'))(
  `descriptors: ${connections} connections to a process with ${descriptors} descriptors do not end it, and it serves again once they are closed`,
  async () => {
    for (const pid of processesOf(server.child))
      execFileSync('prlimit', ['--pid', String(pid), `--nofile=${descriptors}:`]);
    const sockets = await Promise.all(Array.from({ length: connections }, () => dial()));
    let isSaid = false;
    void server.printed(/no_descriptors/).then(() => {
      isSaid = true;
    });
    // Something may have had one more descriptor for a moment: then all connections that wait were closed, and one is left until the next comes.
    while (!isSaid) {
      sockets.push(await dial());
      await delay(100);
    }
    const open = (): number =>
      sockets.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length;
    await expect.poll(open).toBeLessThan(descriptors); // those that it closes arrive here one by one
    for (const socket of sockets) socket.destroy();
    const startedMs = performance.now();
    await expect.poll(ask, { interval: 20 }).toBe(200);
    const againMs = Math.round(performance.now() - startedMs);
    await expect.poll(async () => (await fetch(`${server.opsUrl}/readyz`)).text()).not.toContain('descriptors');
    const ended = server.child.exitCode === null ? 0 : 1;
    tally({ connections, 'ms until it serves again': againMs }, { 'ms until it serves again': 2_000 });
    expect(ended).toBe(0);
    const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^process_open_fds \d+$/m);
  },
  300_000,
);

test.each(['0', '1'])(
  'descriptors: with few from the start, 400 clients leave some for the private listener and for new clients, and the log says so; %s workers',
  async (workers) => {
    const other = await createWorld();
    const { folder, store, keyFile } = other;
    const settings = ['--store', store, '--key-file', keyFile, '--workers', workers, '--listen', '127.0.0.1:0'];
    const command = [process.execPath, sealpost, 'serve', '--json', ...settings, '--ops-listen', '127.0.0.1:0'];
    const program = startProgram(['-c', `ulimit -n ${descriptors}; exec "$0" "$@"`, ...command], folder, {}, '/bin/sh');
    const sockets: Socket[] = [];
    try {
      const [, url = '', opsUrl = ''] = await program.printed(/^\{"url":"([^"]+)","opsUrl":"([^"]+)"/m);
      await program.printed(/"code":"few_descriptors","message":"[^"]* 256 /);
      while (sockets.length < 400) sockets.push(await dial(Number(new URL(url).port)));
      // With workers, a burst waits in the first process until they have taken it: for that moment, it may have no descriptor.
      const probe = async (): Promise<unknown> => (await fetch(`${opsUrl}/readyz`).catch(Response.error)).json();
      await expect.poll(() => probe().catch(String)).toEqual({ ready: true, reasons: [] });
      await expect.poll(async () => (await fetch(`${opsUrl}/livez`).catch(Response.error)).status).toBe(200);
      const target = `/api/v1/reports/latest?feedID=${other.feedId}`;
      expect((await fetchSigned(url, target, other)).status).toBe(200);
      const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
      expect(metrics).toMatch(/^sealpost_connections_dropped_total\{reason="connections"\} [1-9]/m);
      expect(metrics).toMatch(/^sealpost_connections_dropped_total\{reason="accept"\} 0$/m);
    } finally {
      for (const socket of sockets) socket.destroy();
      program.child.kill('SIGTERM');
      await program.finished;
      other.remove();
    }
  },
);
