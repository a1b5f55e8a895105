// A TCP proxy whose network a test makes slow, far away, silent, or cuts in the middle of an answer.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What happens to bytes on their way, in either direction; nothing if it is empty. */
export type Shape = {
  readonly delayMs?: number;
  readonly bytesPerSecond?: number;
  /** Nothing passes, and nobody is told. */
  readonly isSilent?: boolean;
  /** A connection is reset after so many bytes of answers. */
  readonly cutAfterBytes?: number;
  /** New connections are reset, and those that exist. */
  readonly isRefused?: boolean;
};

export type ShapedProxy = {
  readonly port: number;
  /** From now on, for connections that exist too. */
  readonly shape: (shape: Shape) => void;
  readonly close: () => Promise<void>;
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** How often a silent network is looked at. */
const silenceStepMs = 20;

export const openShapedProxy = async (upstreamPort: number): Promise<ShapedProxy> => {
  let now: Shape = {};
  const sockets = new Set<Socket>();
  const reset = (...pair: readonly Socket[]): void => {
    for (const socket of pair) socket.resetAndDestroy();
  };
  /** Sends a chunk on as the network is at that moment. */
  const pass = async (bytes: Buffer, to: Socket): Promise<void> => {
    while (now.isSilent) await pause(silenceStepMs);
    if (now.delayMs !== undefined) await pause(now.delayMs);
    for (let rest = bytes; rest.length > 0 && !to.destroyed; ) {
      const step = now.bytesPerSecond === undefined ? rest.length : Math.ceil(now.bytesPerSecond / 10);
      to.write(rest.subarray(0, step));
      rest = rest.subarray(step);
      if (rest.length > 0) await pause(100);
    }
  };
  const server = createServer((client) => {
    if (now.isRefused) return void client.resetAndDestroy();
    const upstream = connect(upstreamPort, '127.0.0.1');
    let answered = 0;
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      let last = Promise.resolve(); // chunks stay in order
      from.on('data', (bytes) => {
        if (from === upstream) answered += bytes.length;
        const isCut = now.cutAfterBytes !== undefined && answered > now.cutAfterBytes;
        const sent = isCut ? bytes.subarray(0, Math.floor(bytes.length / 2)) : bytes;
        last = last.then(() => pass(sent, to));
        if (isCut) void last.then(() => reset(client, upstream));
      });
      from.on('error', () => reset(client, upstream));
      from.on('close', () => {
        sockets.delete(from);
        void last.then(() => to.destroy());
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port, // it listens on a port
    shape: (shape) => {
      now = shape;
      if (shape.isRefused) reset(...sockets);
    },
    close: async () => {
      now = {};
      reset(...sockets);
      server.close();
      await once(server, 'close');
    },
  };
};
