import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createWorld, fetchSigned, processesOf, sealpost, startProgram, startServer } from '../support/real-program.ts';

test('log: a node whose log nobody takes any more serves on, and its metrics count what is lost', async () => {
  const world = await createWorld();
  const server = await startServer(world, ['--verifier-threads', '1']);
  const lost = async (): Promise<number> => {
    const text = await (await fetch(`${server.opsUrl}/metrics`)).text();
    return Number(/^sealpost_warnings_total\{code="log_lines_dropped"\} (\d+)$/m.exec(text)?.[1]);
  };
  try {
    expect(await lost()).toBe(0);
    server.child.stdout?.destroy();
    await expect
      .poll(async () => {
        const { status } = await fetchSigned(server.url, `/api/v1/reports/latest?feedID=${world.feedId}`, world);
        expect(status).toBe(200);
        return lost();
      })
      .toBeGreaterThan(0);
  } finally {
    await server.stop();
    world.remove();
  }
});

/** A named pipe, which blocks where the pipes of `spawn` do not. */
const makePipe = (path: string) => {
  execFileSync('mkfifo', [path]);
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const chunk = Buffer.alloc(65_536);
  let text = '';
  const read = (): string => {
    try {
      text += chunk.toString('utf8', 0, readSync(descriptor, chunk));
    } catch {} // nothing there
    return text;
  };
  return { read, close: () => closeSync(descriptor) };
};

test.runIf(process.platform === 'linux')(
  'log: a node with workers ends at SIGTERM although nobody reads its outputs, with code 0',
  async () => {
    const world = await createWorld();
    const path = join(world.folder, 'pipe');
    const pipe = makePipe(path);
    const ports = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
    const store = ['--store', world.store, '--key-file', world.keyFile, '--verifier-threads', '1', '--workers', '2'];
    const command = [process.execPath, sealpost, 'serve', ...store, ...ports];
    const script = ['-c', 'exec "$@" >"$0" 2>&1', path, ...command];
    const { child, finished } = startProgram(script, world.folder, {}, '/bin/sh');
    try {
      await expect.poll(pipe.read, { timeout: 60_000 }).toMatch(/Sealpost answers at/);
      const url = /Sealpost answers at (\S+),/.exec(pipe.read())?.[1] ?? '';
      for (let i = 0; i < 500; i += 1)
        await (await fetchSigned(url, `/api/v1/reports/latest?feedID=${world.feedId}`, world)).text(); // 64 KB fill the pipe
      child.kill('SIGTERM');
      expect((await finished).code).toBe(0);
    } finally {
      if (child.exitCode === null) for (const pid of processesOf(child)) process.kill(pid, 'SIGKILL');
      pipe.close();
      world.remove();
    }
  },
);
