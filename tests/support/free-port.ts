// A port of this machine that a program may leave and take again.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A free port below those that the system gives by itself. One of these would not stay free while a server is away: whoever tries to
 * connect to it is given ports in turn, in the end that very one, and is then connected to himself.
 */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
};
