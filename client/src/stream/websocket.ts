// Live reports over a WebSocket: paused while the consumer is behind, closed when it is silent.
import { paths } from '../request/paths.ts';
import { parseMessage, stepMsOf } from './received-report.ts';
import type { OpenSocket } from './socket.ts';
import {
  createWatchdog,
  handshakeMs,
  handshakeTimedOut,
  originHeaders,
  silentFor,
  type Transport,
  toRefusal,
} from './transport.ts';

/** Version 1 of the socket sends one report per stream and second, so streams in milliseconds need version 2. */
const socketTarget = (feedIds: readonly string[]): string => {
  const path = feedIds.some((feedId) => stepMsOf(feedId) === 1) ? paths.socketMs : paths.socket;
  return `${path}?feedIDs=${feedIds.join(',')}`;
};

/** Not every server pings: after a third of the allowed silence, the client does. */
const createPingingWatchdog = (silenceMs: number, ping: () => void, ring: () => void) => {
  const watchdog = createWatchdog(silenceMs, ring);
  const quiet = createWatchdog(silenceMs / 3, () => {
    ping();
    quiet.touch();
  });
  return {
    touch: (): void => {
      watchdog.touch();
      quiet.touch();
    },
    stop: (): void => {
      watchdog.stop();
      quiet.stop();
    },
  };
};

/** Limits the whole handshake: a socket's own limit may be one of inactivity, which a byte every few seconds extends for hours. */
const limitHandshake =
  (openSocket: OpenSocket): OpenSocket =>
  (url, headers, handlers) => {
    const watchdog = createWatchdog(handshakeMs, () => {
      socket.expire();
      handlers.closed(handshakeTimedOut);
    });
    const opened = (): void => {
      watchdog.stop();
      handlers.opened();
    };
    const socket = openSocket(url, headers, { ...handlers, opened });
    const close = (): void => {
      watchdog.stop();
      socket.close();
    };
    watchdog.touch();
    return { ...socket, close };
  };

/** The transport on a given WebSocket. */
export const createWebSocketTransport =
  (openSocket: OpenSocket): Transport =>
  async (request, handlers) => {
    const { wsUrl, feedIds, origin, sign, nowMs, backpressure, silenceMs, signal } = request;
    const target = socketTarget(feedIds);
    const headers = { ...(await sign('GET', target)), ...originHeaders(origin) };
    if (signal.aborted) return 'aborted';
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (settle: () => void): void => {
        if (isOver) return;
        isOver = true;
        watchdog.stop();
        stopListening();
        signal.removeEventListener('abort', onAbort);
        socket.close();
        settle();
      };
      const watchdog = createPingingWatchdog(
        silenceMs,
        () => socket.ping(),
        () => end(() => resolve(silentFor(silenceMs))),
      );
      const onAbort = (): void => end(() => resolve('aborted'));
      const read = (text: string): void => {
        if (isOver) return;
        // Reports are ASCII: a character is a byte.
        handlers.received(text.length);
        // Messages that were in flight when the socket was paused still arrive; the watchdog stays stopped.
        if (!backpressure.isFull()) watchdog.touch();
        try {
          handlers.report(parseMessage(text), undefined);
        } catch {
          end(() => resolve('the server sent something that is not a report'));
        }
      };
      const onBackpressure = (full: boolean): void => {
        if (full) {
          // A paused socket receives no ping, so silence means nothing.
          watchdog.stop();
          socket.pause();
        } else {
          watchdog.touch();
          socket.resume();
        }
      };
      const stopListening = backpressure.onChange(onBackpressure);
      // Each of `refused` and `closed` ends the connection, which closes the socket.
      const socket = limitHandshake(openSocket)(`ws${wsUrl.slice('http'.length)}${target}`, headers, {
        opened: () => {
          if (isOver) return;
          onBackpressure(backpressure.isFull());
          handlers.opened();
        },
        message: read,
        alive: () => {
          if (!isOver && !backpressure.isFull()) watchdog.touch();
        },
        refused: (answer) => end(() => reject(toRefusal(answer, wsUrl, nowMs))),
        closed: (reason) => end(() => resolve(reason)),
      });
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort);
    });
  };
