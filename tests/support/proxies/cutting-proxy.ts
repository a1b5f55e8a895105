// A TCP proxy whose network a test can freeze, cut, and close for one origin.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type CuttingProxy = {
  readonly url: string;
  /** Where connections go from now on. */
  upstreamPort: number;
  /** Connections that name one of these origins are dropped at once. */
  readonly downOrigins: Set<string>;
  /** Nothing passes any more, and nobody is told. */
  readonly freeze: () => void;
  /** The same for one connection, the oldest that is open. */
  readonly freezeOne: () => void;
  /** How many connections there have been. */
  readonly opened: () => number;
  readonly thaw: () => void;
  /** Drops every connection whose last request has a text in its head, in any case. */
  readonly drop: (text: string) => void;
  readonly close: () => Promise<void>;
};

const requestLine = /^[A-Z]+ \S+ HTTP\/1\.1\r\n/;

export const openCuttingProxy = async (port: number): Promise<CuttingProxy> => {
  const pairs = new Map<Socket, { readonly upstream: Socket; head: string }>();
  const waiting: (() => void)[] = [];
  let isFrozen = false;
  let opened = 0;

  const isDown = (head: string): boolean => proxy.downOrigins.has(/^x-cll-origin: *(\S+)/im.exec(head)?.[1] ?? '');
  const join = (client: Socket, first: Buffer): void => {
    const head = String(first);
    if (isDown(head)) return void client.destroy();
    const upstream = connect(proxy.upstreamPort, '127.0.0.1');
    const pair = { upstream, head };
    pairs.set(client, pair);
    client.on('data', (bytes) => {
      if (!requestLine.test(String(bytes))) return;
      pair.head = String(bytes); // browsers send several requests over one connection
      if (isDown(pair.head)) drop();
    });
    const drop = (): void => {
      pairs.delete(client);
      client.destroy();
      upstream.destroy();
    };
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (bytes) => void to.write(bytes));
      from.on('error', drop);
      from.on('close', drop);
    }
    upstream.write(first);
  };
  const accepted = new Set<Socket>(); // browsers open connections before they need them
  const server = createServer((client) => {
    accepted.add(client);
    opened += 1;
    client.on('error', () => client.destroy());
    client.on('close', () => accepted.delete(client));
    client.once('data', (first) => {
      client.pause();
      const go = (): void => {
        client.resume();
        join(client, first);
      };
      if (isFrozen) waiting.push(go);
      else go();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const eachSocket = (act: (socket: Socket) => void): void => {
    for (const [client, { upstream }] of pairs) [client, upstream].forEach(act);
  };
  const proxy: CuttingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on a port
    upstreamPort: port,
    downOrigins: new Set(),
    freeze: () => {
      isFrozen = true;
      eachSocket((socket) => void socket.pause());
    },
    freezeOne: () => {
      const [oldest] = pairs;
      oldest?.[0].pause();
      oldest?.[1].upstream.pause();
    },
    opened: () => opened,
    thaw: () => {
      isFrozen = false;
      eachSocket((socket) => void socket.resume());
      for (const go of waiting.splice(0)) go();
    },
    drop: (text) => {
      for (const [client, { head }] of pairs) if (head.toLowerCase().includes(text.toLowerCase())) client.destroy();
    },
    close: async () => {
      eachSocket((socket) => void socket.destroy());
      for (const client of accepted) client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
};
