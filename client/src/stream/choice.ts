// Chooses the transport of a stream, and falls back to another if the server, or a proxy in front of it, does not support the first.
import { SealpostError } from '../errors.ts';
import { isAbsent } from '../request/extensions.ts';
import { polling } from './poll.ts';
import { serverSentEvents } from './sse.ts';
import type { Transport } from './transport.ts';

export type TransportName = 'auto' | 'websocket' | 'sse' | 'poll';

/**
 * The transport by its name. `auto` tries a WebSocket, then server-sent events, then polling; `sse` starts with server-sent events.
 * `websocket` and `poll` do not fall back.
 */
export async function chooseTransport(
  name: TransportName,
  load: () => Promise<Transport | undefined>,
): Promise<Transport> {
  if (name === 'poll') return polling;
  const socket = await load();
  const sockets = socket === undefined ? [] : [socket];
  if (name === 'auto') return createFallback([...sockets, serverSentEvents, polling]);
  if (name === 'sse') return createFallback([serverSentEvents, ...sockets, polling]);
  if (socket !== undefined) return socket;
  throw new SealpostError(
    'invalid_option',
    'transport is websocket, which needs the package ws in Node and does not work in browsers. Use sse, or install ws.',
  );
}

/** A proxy in front of the server drops the Upgrade header, and always will. */
const isWithoutUpgrade = (error: unknown): boolean => error instanceof SealpostError && error.status === 426;

/** Uses the first transport until the server turns out not to support it, then the next for good. One that has worked is kept. */
const createFallback = (transports: readonly Transport[]): Transport => {
  let [current, hasWorked] = [0, false];
  const run: Transport = async (request, handlers) => {
    const used = current;
    const opened = (): void => {
      hasWorked = true;
      handlers.opened();
    };
    try {
      return await (transports[used] as Transport)(request, { ...handlers, opened }); // never beyond the last
    } catch (error) {
      const isMissing = isWithoutUpgrade(error) || (!hasWorked && isAbsent(error));
      if (!isMissing || used === transports.length - 1) throw error;
      // Of several connections only the first moves on.
      current = Math.max(current, used + 1);
      return run(request, handlers);
    }
  };
  return run;
};
