// Owns which transport a stream uses, and that it goes on over another where the first turns out not to pass.
import { SealpostError } from './errors.ts';
import type { OpenSocket } from './socket.ts';
import { serverSentEvents } from './stream-sse.ts';
import type { Transport } from './stream-transport.ts';
import { createWebSocketTransport } from './stream-websocket.ts';

export type TransportName = 'auto' | 'websocket' | 'sse';

/** The transport by its name; `auto` is a WebSocket where there is one. */
export const chooseTransport = async (
  wanted: TransportName,
  load: () => Promise<OpenSocket | undefined>,
): Promise<Transport> => {
  const openSocket = wanted === 'sse' ? undefined : await load();
  if (openSocket !== undefined) {
    const sockets = createWebSocketTransport(openSocket);
    return wanted === 'auto' ? createFallback(sockets, serverSentEvents) : sockets;
  }
  if (wanted !== 'websocket') return serverSentEvents;
  throw new SealpostError(
    'invalid_option',
    'transport is websocket, which needs the package ws in Node and cannot be had in a browser. Use sse, or install ws.',
  );
};

/** The first, until the server is seen not to get the upgrade: a proxy that does not know WebSockets leaves it out, and always will. */
const createFallback = (first: Transport, second: Transport): Transport => {
  let current = first;
  return (request, handlers) => {
    const used = current;
    return used(request, handlers).catch((error: unknown) => {
      if (used === second || !(error instanceof SealpostError) || error.code !== 'upgrade_required') throw error;
      current = second;
      return second(request, handlers);
    });
  };
};
