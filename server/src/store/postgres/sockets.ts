// The sockets of database clients: chooses the host, backs off, and closes every socket with its client. The driver itself always starts with the first
// host, retries without a pause when a connection is closed early, and leaves connections that are being opened behind when a client ends.
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '@sealpost/protocol';

/** The driver's target: hosts with their ports, or a socket file. */
type Where = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };

/** The state of the hosts, shared by one client after another. */
export type HostChoice = {
  /** The host to try now; resolves after a pause where several have failed in a row. */
  readonly next: (hosts: number) => Promise<number>;
  readonly failed: (host: number, hosts: number) => void;
  readonly lasted: () => void;
};

const pauseMinMs = 10;
const pauseMaxMs = 250;

export function createHostChoice(): HostChoice {
  let current = 0;
  let failures = 0;
  return {
    next: async (hosts) => {
      // Each host may fail once before there is a pause.
      const beyond = failures - hosts;
      if (beyond > 0) {
        await sleep(backoffMs(beyond, pauseMinMs, pauseMaxMs));
      }
      return current % hosts;
    },
    failed: (host, hosts) => {
      failures += 1;
      // Several sockets fail at once: one is enough to switch to the next host.
      if (current === host) current = (host + 1) % hosts;
    },
    lasted: () => {
      failures = 0;
    },
  };
}

export type Sockets = {
  /** Rejects once all are destroyed. */
  readonly open: (where: Where) => Promise<Socket>;
  readonly destroy: () => void;
};

/** A connection that lived shorter than this counts as failed: it was rejected, or led to a standby instead of the primary. */
const lastsMs = 1_500;

export function createDatabaseSockets(choice: HostChoice): Sockets {
  const sockets = new Set<Socket>();
  let destroyed = false;
  const watch = (socket: Socket, host: number, hosts: number): void => {
    const began = performance.now();
    // Given up, or never answered: its host may be silent.
    const hasLasted = () => !destroyed && socket.bytesRead > 0 && performance.now() - began >= lastsMs;
    const lasting = setTimeout(() => hasLasted() && choice.lasted(), lastsMs + 1).unref();
    sockets.add(socket);
    socket.once('close', () => {
      clearTimeout(lasting);
      sockets.delete(socket);
      if (!hasLasted()) choice.failed(host, hosts);
    });
  };
  return {
    open: async ({ host: hosts, port: ports, path }) => {
      const i = await choice.next(hosts.length);
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
}
