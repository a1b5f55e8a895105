// What /readyz says of a node that serves, but not with everything it has.
import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createWorld, type Server, startServer } from './support/real-program.ts';

const probe = async ({ opsUrl }: Server) => (await (await fetch(`${opsUrl}/readyz`)).json()) as object;

test('readiness: while a worker cannot be replaced, the node is ready and says so, and no more once it is', async () => {
  const world = await createWorld();
  const server = await startServer(world, ['--workers', '2', '--verifier-threads', '1']);
  try {
    await fetch(`${server.url}/time`);
    const [, pid] = await server.printed(/"pid":(\d+),"event":"request"/);
    rmSync(world.keyFile);
    process.kill(Number(pid), 'SIGKILL');
    await server.printed(/"code":"worker_ended".*No key-encryption key/);
    expect(await probe(server)).toMatchObject({ ready: true, degraded: ['1 of 2 workers not running; see the log'] });
    writeFileSync(world.keyFile, `${world.key}\n`, { mode: 0o600 });
    await expect.poll(() => probe(server)).not.toHaveProperty('degraded');
  } finally {
    await server.stop();
    world.remove();
  }
});
