// Owns the sockets of one client of the database. The driver by itself tries again without a pause when a connection is closed before
// it is one, and when a client is ended it leaves behind what is on its way just then: that comes alive, and stays for a minute.
import { connect, type Socket } from 'node:net';

/** Where the driver wants to go: hosts with their ports, or a socket file. */
export type Where = {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false;
};

export type Sockets = {
  /** The next of the hosts in turn, at once or after a pause; rejects once all are destroyed. */
  readonly open: (where: Where) => Promise<Socket>;
  readonly destroy: () => void;
};

/** A connection that lived shorter than this was none. */
const livedMs = 1_000;
const pauseMinMs = 10;
const pauseMaxMs = 250;

export const createSockets = (): Sockets => {
  const sockets = new Set<Socket>();
  let [turn, failures] = [0, 0];
  let destroyed = false;
  const watch = (socket: Socket): Socket => {
    const began = performance.now();
    sockets.add(socket);
    return socket.once('close', () => {
      sockets.delete(socket);
      failures = performance.now() - began < livedMs ? failures + 1 : 0;
    });
  };
  return {
    open: async ({ host, port, path }) => {
      // Each host may fail once before there is a pause.
      const tries = Math.max(0, failures - host.length);
      if (tries > 0)
        await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(tries, 8))));
      if (destroyed) throw new Error('The client was ended.');
      const i = turn++ % host.length;
      const socket = watch(path ? connect(path) : connect(port[i] ?? 0, host[i]));
      // The driver names the host in errors, and to TLS.
      return Object.assign(socket, { host: host[i], port: port[i] });
    },
    destroy: () => {
      destroyed = true;
      for (const socket of sockets) socket.destroy();
    },
  };
};
