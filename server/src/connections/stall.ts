// Detects clients that do not read: none of a connection's waiting bytes were sent for a while.
import type { Socket } from 'node:net';

/** A client that takes nothing for this long is gone. With a thousand of them it takes up to 3 s more until that is seen: they are closed within 10 s. */
const stalledMaxMs = 7_000;
/** A client that reads slower than `bytesPerSecondMin` is cut once it has kept us waiting for this long. */
const slowAfterMs = 30_000;
const bytesPerSecondMin = 1_024;

/** What node's TCP handle counts, on every release that we run on: bytes given to it, and those that the kernel has not taken yet. */
type CountingHandle = { readonly bytesWritten?: number; readonly writeQueueSize?: number };

/** Bytes that wait in this process. `raw` is the connection under a TLS socket, or the socket itself. */
export const bytesWaiting = (front: Socket, raw: Socket): number =>
  front.writableLength + (front === raw ? 0 : (handleOf(raw)?.writeQueueSize ?? 0));

/** Bytes that the kernel has taken. The stream's own counters move only when a whole chunk, a page of 2 MB say, is gone. */
const bytesGone = (front: Socket, raw: Socket): number => {
  const { bytesWritten, writeQueueSize } = handleOf(raw) ?? {};
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize;
  return front.bytesWritten - front.writableLength;
};

const handleOf = (socket: Socket): CountingHandle | null | undefined =>
  (socket as { readonly _handle?: CountingHandle | null })._handle; // node's own field, which its types leave out

export type StallWatch = {
  /** To be called about once a second. True: the client is gone, or reads too slowly. */
  readonly isStalled: (nowMs: number) => boolean;
  /** When something was sent last, or nothing waited. */
  readonly movedMs: () => number;
};

/** Watches one connection from now on. */
export const createStallWatch = (front: Socket, raw: Socket, nowMs: number, patienceMs = stalledMaxMs): StallWatch => {
  let movedMs = nowMs;
  let seen = -1;
  let since = { ms: nowMs, gone: bytesGone(front, raw) };
  return {
    isStalled: (now) => {
      const gone = bytesGone(front, raw);
      if (bytesWaiting(front, raw) === 0) since = { ms: now, gone };
      if (since.ms === now || gone !== seen) {
        seen = gone;
        movedMs = now;
      }
      const waitedMs = now - since.ms;
      const isSlow = waitedMs >= slowAfterMs && ((gone - since.gone) / waitedMs) * 1_000 < bytesPerSecondMin;
      return isSlow || now - movedMs >= patienceMs;
    },
    movedMs: () => movedMs,
  };
};
