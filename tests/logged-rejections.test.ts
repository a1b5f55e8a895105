// The log of the real program at `warn`: who is rejected, by address, in one process and with workers.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorld, startServer, type World } from './support/real-program.ts';

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.remove());

test.each(['0', '1'])(
  'log: at warn, rejections have their address and a wrong token is a warning, with %s workers',
  async (workers) => {
    const settings = ['--log-level', 'warn', '--workers', workers, '--trusted-proxies', '127.0.0.1'];
    const server = await startServer(world, settings, { SEALPOST_INGEST_TOKEN: 'the-token-of-the-test' });
    try {
      const ask = (address: string) =>
        fetch(`${server.url}/api/v1/feeds`, { headers: { 'X-Forwarded-For': address, Authorization: 'nobody' } });
      for (const address of ['192.0.2.1', '2001:db8::7', '192.0.2.1']) expect((await ask(address)).status).toBe(400);
      const headers = { Authorization: 'Bearer wrong' };
      for (let i = 0; i < 3; i++) await fetch(`${server.opsUrl}/ingest`, { method: 'POST', headers, body: '\n' });
    } finally {
      await server.stop();
    }
    const { stdout } = await server.finished;
    const lines = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
    const counted = lines.filter(({ event }) => event === 'rejections').map(({ address, codes }) => [address, codes]);
    expect(Object.fromEntries(counted)).toEqual({
      '192.0.2.1': { malformed_header: 2 },
      '2001:db8:0:0::/64': { malformed_header: 1 },
      '127.0.0.1': { ingest_token_rejected: 3 },
    });
    expect(lines.filter(({ code }) => code === 'ingest_token_rejected')).toMatchObject([
      { level: 'warn', address: '127.0.0.1' },
    ]);
  },
);
