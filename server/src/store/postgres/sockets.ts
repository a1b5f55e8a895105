// The sockets of the database's clients: which host they lead to, how soon one is tried again, and that none outlives its client.
// The driver by itself begins with the first host each time, tries again without a pause where a connection is closed before it is one,
// and leaves behind what is on its way when a client is ended: that comes alive, and stays for a minute.
import { connect, type Socket } from 'node:net';

/** Where the driver wants to go: hosts with their ports, or a socket file. */
type Where = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };

/** What is known of the hosts, for one client after the other. */
export type Route = {
  /** The host to try now; resolves after a pause where several have failed in a row. */
  readonly next: (hosts: number) => Promise<number>;
  readonly failed: (host: number, hosts: number) => void;
  readonly lasted: () => void;
};

const pauseMinMs = 10;
const pauseMaxMs = 250;

export const createRoute = (): Route => {
  let current = 0;
  let failures = 0;
  return {
    next: async (hosts) => {
      // Each of them may fail once before there is a pause.
      const beyond = failures - hosts;
      if (beyond > 0) {
        const ms = Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(beyond, 10));
        await new Promise((resolve) => setTimeout(resolve, ms));
      }
      return current % hosts;
    },
    failed: (host, hosts) => {
      failures += 1;
      // Several fail at once: one of them is enough to go on to the next.
      if (current === host) current = (host + 1) % hosts;
    },
    lasted: () => {
      failures = 0;
    },
  };
};

export type Sockets = {
  /** Rejects once all are destroyed. */
  readonly open: (where: Where) => Promise<Socket>;
  readonly destroy: () => void;
};

/** A connection that lived shorter than this was none: it was refused, or led to a standby where the primary is wanted. */
const lastsMs = 1_500;

export const createDatabaseSockets = (route: Route): Sockets => {
  const sockets = new Set<Socket>();
  let destroyed = false;
  const watch = (socket: Socket, host: number, hosts: number): void => {
    const began = performance.now();
    // Given up, or never answered: its host may be silent.
    const hasLasted = () => !destroyed && socket.bytesRead > 0 && performance.now() - began >= lastsMs;
    const lasting = setTimeout(() => hasLasted() && route.lasted(), lastsMs + 1).unref();
    sockets.add(socket);
    socket.once('close', () => {
      clearTimeout(lasting);
      sockets.delete(socket);
      if (!hasLasted()) route.failed(host, hosts);
    });
  };
  return {
    open: async ({ host: hosts, port: ports, path }) => {
      const i = await route.next(hosts.length);
      if (destroyed) throw new Error('The client was ended.');
      const [host, port] = [hosts[i] ?? '', ports[i] ?? 0];
      const socket = path ? connect(path) : connect(port, host);
      watch(socket, i, hosts.length);
      // The driver names the host in errors, and to TLS.
      return Object.assign(socket, { host, port });
    },
    destroy: () => {
      destroyed = true;
      for (const socket of sockets) socket.destroy();
    },
  };
};
