// The guard of the event loop when more requests come than it can answer. Connections take turns, so that new ones are accepted and timers run (D229).
// Requests that others kept waiting for too long are shed, and their rejections are held back (D142).
import type { Socket } from 'node:net';
import type { RouteName } from '@sealpost/protocol';

/** 0: nothing is shed. 1: what reads or renders much. 2: everything but /time and /status.json. */
export type LoadLevel = 0 | 1 | 2;

export type TurnSocket = Pick<Socket, 'pause' | 'resume'>;

export type Load = {
  /** Counts a request that begins now, and says what is shed. A request that is handed over has no socket here, and its connection does not wait. */
  readonly begin: (socket: TurnSocket | undefined, nowMs: number) => LoadLevel;
};

/** Watches the requests of this process. A server is overloaded once others kept a request waiting for more than `eventLoopLagMaxMs`. */
export function watchLoad(eventLoopLagMaxMs: number) {
  const turns = createReadTurns();
  const judge = createOverload(eventLoopLagMaxMs);
  const begin: Load['begin'] = (socket, nowMs) => judge(turns.begin(socket, nowMs), nowMs);
  return { begin, accepted: turns.accepted, drain: turns.drain };
}

/** Requests of a turn of the loop beyond which connections wait: while connections are accepted, of which Node takes one in each turn, and while none is. */
export const turnRequests = { accepting: 32, otherwise: 1_000 } as const;
/** No request blocks the loop for longer (D140): what is beyond it in the time between two was a stall, or work that is not a request's. */
const requestMaxMs = 5;

/**
 * Node handles whatever is ready in one turn of its loop: while a thousand clients were busy, new ones waited for seconds, and no timer ran. So in a turn with
 * many requests, a connection is not read again until all others that are busy had their turn.
 */
export function createReadTurns() {
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

  const limit = (): number => {
    if (isDraining) return Number.POSITIVE_INFINITY;
    return isAccepting ? turnRequests.accepting : turnRequests.otherwise;
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
    /** Counts a request. Returns how long others kept it waiting, in time that requests took: since its turn began, or since its connection was last read. */
    begin: (socket: TurnSocket | undefined, nowMs: number): number => {
      if (!isOpen) open();
      if (lastMs !== undefined) busyMs += Math.min(nowMs - lastMs, requestMaxMs);
      lastMs = nowMs;
      requests += 1;
      if (socket === undefined) return busyMs - beganBusyMs;
      const sinceMs = waiting.get(socket) ?? resumed.get(socket) ?? beganBusyMs;
      if (requests > limit() || (isAccepting && waiting.size > 0 && !isDraining)) process.nextTick(queue, socket);
      return busyMs - sinceMs;
    },
    /** Counts a connection that was accepted, or has shaken hands. */
    accepted: (): void => {
      if (!isOpen) open();
      isAccepting = true;
      hasAccepted = true;
      lastMs = undefined; // what it took is no request's
    },
    /** From now on no connection waits: one that does looks idle, and would be closed with a request that nobody has read. */
    drain: (): void => {
      isDraining = true;
      if (!isOpen) open();
    },
  };
}

/** Shed first: they read many reports, or render much. */
const expensive: ReadonlySet<RouteName> = new Set<RouteName>([
  'reportCandles',
  'reportCandlesMany',
  'reportCoverage',
  'reportCoverageMany',
  'reportPage',
  'reportBulk',
  'reportLatestMany',
  'reportStream',
  'discovery',
  'feeds',
  'signers',
  'openapi',
  'docs',
]);

/** Never shed: clients set their clocks by one, people look for problems in the other. Rejecting either costs as much as answering. */
const indispensable: ReadonlySet<RouteName> = new Set<RouteName>(['time', 'status']);

/** Whether a request is shed at this level. The explorer's files never are: a browser does not retry a style sheet. */
export function isShed(route: RouteName, level: LoadLevel): boolean {
  if (level === 0) return false;
  return level === 1 ? expensive.has(route) : !indispensable.has(route);
}

/** Once overloaded, a server sheds requests that waited for more than these shares of the bound, so that it stays well below it. */
const answeredShare = 1 / 2;
const expensiveShare = 1 / 3;
/** A server is no longer overloaded when no request waited for more than the larger share for this long. */
const calmMs = 1_000;

/** Judges how long requests were kept waiting by others. One stall, or work that is not a request's, sheds nothing: shedding would not lessen it. */
export function createOverload(eventLoopLagMaxMs: number) {
  let overloadedMs = Number.NEGATIVE_INFINITY;
  return (waitedMs: number, nowMs: number): LoadLevel => {
    if (waitedMs <= eventLoopLagMaxMs && nowMs - overloadedMs > calmMs) return 0;
    if (waitedMs <= expensiveShare * eventLoopLagMaxMs) return 0;
    if (waitedMs <= answeredShare * eventLoopLagMaxMs) return 1;
    overloadedMs = nowMs;
    return 2;
  };
}

/** No rejection waits for longer. */
const waitMaxMs = 4_000;
/** As many as this in a second take no time worth saving: one does not wait where there are few. */
const perSecondMin = 200;
/** More than this are rejected at once: each holds a request and its response. */
export const heldMax = 8_192;
const tickMs = 20;

/**
 * Holds back rejections. One costs nearly as much as an answer, and a client that gets it at once may ask again at once: thousands would keep a server busy
 * with rejections alone. They go out in the order in which requests came, evenly, and faster once more of them are held.
 */
export function createRejections<T>(monotonicMs: () => number, isUrgent: () => boolean, reject: (shed: T) => void) {
  let held: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  let [lastMs, due, perMs] = [0, 0, 0];
  const release = (): void => {
    const nowMs = monotonicMs();
    perMs = Math.max(perMs, held.length / waitMaxMs);
    due += Math.max(nowMs - lastMs, tickMs) * perMs;
    lastMs = nowMs;
    const count = isUrgent() ? held.length : Math.min(Math.floor(due), held.length);
    due -= count;
    const released = held.slice(0, count);
    held = held.slice(count);
    if (held.length === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    for (const shed of released) reject(shed);
  };
  return (shed: T): void => {
    if (held.length >= heldMax || isUrgent()) return void reject(shed);
    held.push(shed);
    if (timer !== undefined) return;
    [lastMs, due, perMs] = [monotonicMs(), 0, perSecondMin / 1_000];
    timer = setInterval(release, tickMs);
  };
}
