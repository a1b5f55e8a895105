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
  readonly thaw: () => void;
  /** Drops every connection whose head holds a text. */
  readonly drop: (text: string) => void;
  readonly close: () => Promise<void>;
};

export const openCuttingProxy = async (port: number): Promise<CuttingProxy> => {
  const pairs = new Map<Socket, { readonly upstream: Socket; readonly head: string }>();
  const waiting: (() => void)[] = [];
  let isFrozen = false;

  const join = (client: Socket, first: Buffer): void => {
    const head = String(first);
    if ([...proxy.downOrigins].some((origin) => head.includes(`X-Cll-Origin: ${origin}`))) return void client.destroy();
    const upstream = connect(proxy.upstreamPort, '127.0.0.1');
    pairs.set(client, { upstream, head });
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
    thaw: () => {
      isFrozen = false;
      eachSocket((socket) => void socket.resume());
      for (const go of waiting.splice(0)) go();
    },
    drop: (text) => {
      for (const [client, { head }] of pairs) if (head.includes(text)) client.destroy();
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
