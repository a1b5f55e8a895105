// One connection of a load generator: a request at a time, on a socket that is opened again when it was closed.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export type Answer = { readonly status: string; readonly retryAfter: boolean; readonly closes: boolean };
export type Connection = {
  /** Resolves once it is open. */
  readonly open: () => Promise<void>;
  readonly send: (bytes: Buffer, onEnd: (answer: Answer | undefined) => void) => void;
  readonly close: () => void;
};

const headOf = (text: string): Answer => ({
  status: text.slice(9, 12),
  retryAfter: /\r\nretry-after:/i.test(text),
  closes: /\r\nconnection: close/i.test(text),
});

/** A server closes a connection that is idle for longer than it says: 10 s here. A request that is sent then would be lost, so a client stops before. */
const usualIdleMaxMs = 8_000;

/** One request at a time on a connection that is opened again when it was closed, or idle for long. */
export const openConnection = (port: number, idleMaxMs = usualIdleMaxMs): Connection => {
  let socket: Socket | undefined;
  let [expected, received, answer] = [0, 0, undefined as Answer | undefined];
  let usedMs = 0;
  let ended: ((answer: Answer | undefined) => void) | undefined;
  const end = (result: Answer | undefined): void => {
    const act = ended;
    ended = undefined;
    act?.(result);
  };
  const read = (chunk: Buffer): void => {
    if (expected === 0) {
      const head = chunk.indexOf('\r\n\r\n'); // heads are small and come whole
      const text = chunk.toString('latin1', 0, head + 2);
      answer = headOf(text);
      expected = head + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    }
    received += chunk.length;
    if (received < expected) return;
    if (answer?.closes) drop();
    usedMs = performance.now();
    end(answer);
  };
  const drop = (): void => {
    const closed = socket;
    socket = undefined;
    closed?.destroy();
  };
  const open = (): Socket => {
    const made = connect({ port, host: '127.0.0.1', noDelay: true });
    made.on('data', read);
    made.on('error', () => {});
    made.on('close', () => {
      if (socket !== made) return;
      socket = undefined;
      end(undefined);
    });
    return made;
  };
  return {
    open: async () => {
      socket = open();
      await once(socket, 'connect');
      usedMs = performance.now();
    },
    send: (bytes, onEnd) => {
      if (performance.now() - usedMs > idleMaxMs) drop();
      [expected, received, ended] = [0, 0, onEnd];
      socket ??= open();
      socket.write(bytes);
    },
    close: () => void socket?.destroy(),
  };
};
