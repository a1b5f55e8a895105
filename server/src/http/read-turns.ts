// Lets connections take turns when many send at once. Node handles whatever is ready in one turn of its loop, and accepts a single connection in each:
// while a thousand clients were busy, new ones waited for a tenth of a second each, and the last of many for longer than a signature is valid. With
// more than 1,024 of them a turn may not end for seconds, and no timer runs. So in a turn with many requests, a connection is not read again until
// all others that are busy had their turn (D229).
import type { Socket } from 'node:net';

/** Requests of a turn beyond which connections wait: while connections are accepted, the same where each costs a handshake, and while none is. */
export const turnRequests = { accepting: 8, handshaking: 32, otherwise: 1_000 } as const;
/** No request blocks the loop for longer (D140): what is beyond it in the time between two was a stall, or work that is not a request's. */
const requestMaxMs = 5;

export type TurnSocket = Pick<Socket, 'pause' | 'resume'>;

export type ReadTurns = {
  /**
   * Counts a request that begins now. Returns how long others kept it waiting, in time that requests took: since its turn began, or since its
   * connection was last read. A request that is handed over has no socket here, and its connection does not wait.
   */
  readonly begin: (socket: TurnSocket | undefined, nowMs: number) => number;
  /** Counts a connection that was accepted, or has shaken hands. */
  readonly accepted: () => void;
  /** From now on no connection waits: one that does looks idle, and would be closed with a request that nobody has read. */
  readonly drain: () => void;
};

export const createReadTurns = (isTls: boolean): ReadTurns => {
  /** A clock that counts what requests take. */
  let busyMs = 0;
  let [isOpen, requests, beganBusyMs] = [false, 0, 0];
  /** When the last request of this turn began; undefined when something else came after it. */
  let lastMs: number | undefined;
  let isDraining = false;
  /** Were connections accepted in the last turn, and in this one? There may be more of them. */
  let [isAccepting, hasAccepted] = [false, false];
  /** Connections that are not read, first in, first out, and when they began to wait. */
  const waiting = new Map<TurnSocket, number>();
  /** Those that are read again in this turn, and since when they had waited. */
  let resumed = new Map<TurnSocket, number>();

  const accepting = isTls ? turnRequests.handshaking : turnRequests.accepting;
  const limit = (): number => {
    if (isDraining) return Number.POSITIVE_INFINITY;
    return isAccepting ? accepting : turnRequests.otherwise;
  };
  const open = (): void => {
    [isOpen, requests, beganBusyMs, lastMs] = [true, 0, busyMs, undefined];
    setImmediate(end); // runs after what this turn reads
  };
  const end = (): void => {
    isOpen = false;
    [isAccepting, hasAccepted] = [hasAccepted, false];
    if (resumed.size > 0) resumed = new Map(); // not cleared: D232
    const most = limit();
    for (const [socket, sinceMs] of waiting) {
      if (resumed.size === most) break;
      waiting.delete(socket);
      resumed.set(socket, sinceMs);
      socket.resume();
    }
    if (resumed.size > 0 || isAccepting) open(); // a turn without a new connection ends the short ones, also one without a request
  };
  // Node reads on once a request is complete, which is after its handler has begun.
  const queue = (socket: TurnSocket): void => {
    if (!waiting.has(socket)) waiting.set(socket, busyMs);
    socket.pause(); // also one that waits: Node reads on when a large answer was taken
  };
  return {
    begin: (socket, nowMs) => {
      if (!isOpen) open();
      if (lastMs !== undefined) busyMs += Math.min(nowMs - lastMs, requestMaxMs);
      lastMs = nowMs;
      requests += 1;
      if (socket === undefined) return busyMs - beganBusyMs;
      const sinceMs = waiting.get(socket) ?? resumed.get(socket) ?? beganBusyMs;
      if (requests > limit() || (isAccepting && waiting.size > 0 && !isDraining)) process.nextTick(queue, socket);
      return busyMs - sinceMs;
    },
    accepted: () => {
      if (!isOpen) open();
      isAccepting = true;
      hasAccepted = true;
      lastMs = undefined; // what it took is no request's
    },
    drain: () => {
      isDraining = true;
      if (!isOpen) open();
    },
  };
};
